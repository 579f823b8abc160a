"""What accounts for the differences, in sentences and in a table."""

from dataclasses import replace

from syrupy.assertion import SnapshotAssertion

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.scenario import Cell
from harness.report import markdown
from harness.report.blocks import Where
from harness.report.sections import attribution
from tests.factories import ENVIRONMENTS, cell, cells, rounds, run, scenario
from tests.report.sections import reading

#: Means in ms of a step where neither change does much alone.
TIMES = dict(zip(cells(), [0.00708, 0.00733, 0.00751, 0.0217], strict=True))


def make_section(times=TIMES, of=None, **changes):
    launches = rounds(times, **{"spread": 0.0, **changes})
    return reading.made(attribution.make_sections, of or run(times), launches)


def find_table(section):
    (table,) = reading.tables(section)
    return table


def find_notes(section):
    """Return what is said of the cells, and what the columns mean."""
    return reading.told(section, Where.DETAILS, notes=True)[-2:]


def run_calls(times, count):
    calls = [f"call{at}" for at in range(count)]
    return run(times, scenarios=[scenario(axes={**scenario().axes, "call": calls})])


def make_many(count):
    """Return the section of so many calls, of which each takes longer than the one before."""
    names = [f"call{at}" for at in range(count)]
    times = {of: 0.01 * 1.1 ** int(of.axes["call"][4:]) for of in cells(calls=names)}
    return make_section(times, run_calls(times, count))


def test_lines_are_changes_then_interactions():
    table = find_table(make_section())
    assert reading.heads(table) == ["change", "time ratio", "verdict", "remarks"]
    assert [row[:3] for row in reading.rows(table)] == [
        ["tf2.0 vs tf1.14", "1.77× (1.77 to 1.77)", "slower"],
        ["eager vs graph", "1.73× (1.73 to 1.73)", "slower"],
        ["tf2.0 × eager: additional factor", "2.79× (2.79 to 2.79)", "slower"],
    ]


def test_sentences_and_notes(snapshot: SnapshotAssertion):
    alone, crossed = (dict(zip(cells(), times, strict=True)) for times in ((0.01, 0.02) * 2, (0.01, 0.02, 0.02, 0.01)))
    left_out = dict.fromkeys(cells(calls=("fit", "train_on_batch")), 0.01)
    del left_out[cell(call="fit", mode="eager")]
    one_left_out = {of: at for of, at in left_out.items() if of.axes != cell().axes}
    tiny = dict(zip(cells(), (0.01, 0.01, 1e-7, 1e-7), strict=True))
    sections = {
        "two changes that depend on each other": make_section(),
        "one change": make_section(alone),
        "no change": make_section(dict.fromkeys(cells(), 0.01)),
        "changes that cancel on average": make_section(crossed),
        "a tiny ratio": make_section(tiny),
        "six calls": make_many(6),
        "checked work": make_section(fingerprint={"parameters": 1}),
        "two rounds": make_section(count=2),
        "one round": make_section(count=1),
        "cells left out": make_section(left_out, run(left_out)),
        "one cell left out": make_section(one_left_out, run(one_left_out)),
    }
    assert {
        name: [*reading.told(section, Where.DETAILS), find_notes(section)[0]] for name, section in sections.items()
    } == snapshot


def test_the_sentence_alone_is_pasted_and_the_rest_stands_beside_it_in_the_details():
    section = make_section()
    (text,) = reading.told(section, Where.PASTE)
    assert (len(reading.shown(section, Where.PASTE)), len(reading.shown(section, Where.TERMINAL))) == (1, 0)
    assert text in reading.told(section, Where.DETAILS)


def test_few_rounds_have_ratios_only_and_nothing_to_paste():
    few = make_section(count=2)
    assert reading.shown(few, Where.PASTE) == reading.shown(few, Where.TERMINAL) == []
    assert "verdict" not in reading.heads(find_table(few))
    assert "Verdicts" not in find_notes(few)[1]
    assert reading.rows(find_table(make_section(count=1)))[0][:2] == ["tf2.0 vs tf1.14", "1.77×"]


def test_a_dozen_interactions_are_shown_and_the_others_counted():
    many = make_many(10)
    assert len(find_table(many).lines) == 1 + 9 + 1 + 12
    assert "7 interactions are not shown: 7 same." in find_notes(many)[0]
    assert "call (10, call0 to call9)" in find_notes(many)[0]
    assert "not shown" not in find_notes(make_many(4))[0]


def test_interactions_beyond_the_margin_are_shown_first():
    times = dict.fromkeys(cells(calls=[f"call{at}" for at in range(20)], modes=["graph"]), 0.01)
    times[cell("tf2.0", call="call19")] = 0.02
    rows = reading.rows(find_table(make_section(times, run_calls(times, 20))))
    slower = [row[0] for row in rows if "×" in row[0] and row[2] == "slower"]
    assert slower == ["tf2.0 × call19: additional factor"] == [rows[-1][0]]


def test_another_python_is_remarked():
    newer = [ENVIRONMENTS[0], replace(ENVIRONMENTS[1], python="3.11")]
    rows = reading.rows(find_table(make_section(of=run(environments=newer))))
    assert [row[-1] for row in rows[:2]] == ["Python 3.11 vs 3.7", ""]


def test_devices_and_scenarios_are_told_apart_and_have_one_legend():
    members = [replace(of, device=device) for device in Device for of in cells()]
    devices = make_section(dict.fromkeys(members, 0.01), run(members))
    assert reading.headings(devices) == reading.headings(devices, Where.PASTE) == ["cpu", "gpu"]
    captions = [table.caption for table in reading.tables(devices)]
    assert captions == ["Effects, One training step, cpu", "Effects, One training step, gpu"]
    other = scenario("other", title="Another")
    times = {**TIMES, **{Cell("other", of.environment, of.device, of.axes): 0.01 for of in cells()}}
    section = make_section(times, run(times, scenarios=[scenario(), other]))
    assert reading.headings(section) == ["One training step", "Another"]
    texts = reading.told(section, Where.DETAILS, notes=True)
    assert sum("from 4 cells" in text for text in texts) == 2
    assert sum("geometric mean" in text for text in texts) == 1


def test_that_environments_differ_in_all_they_hold_is_said_where_they_vary():
    times = dict.fromkeys(cells(["tf1.14"], calls=("fit", "train_on_batch")), 0.01)
    both, one = (find_notes(section)[1].count("environment") for section in (make_section(), make_section(times)))
    assert both == one + 1


def test_the_control_takes_verdicts_away():
    times = dict(zip(cells(), [0.01, 0.0105, 0.02, 0.021], strict=True))
    for factor, has_verdicts in ((1.03, True), (1.5, False)):
        launches = rounds(times, spread=0.008, controls={cell(): 0.01 * factor})
        section = reading.made(attribution.make_sections, run(controlled=True), launches)
        assert ("verdict" in reading.heads(find_table(section))) == has_verdicts
        assert bool(reading.shown(section, Where.PASTE)) == has_verdicts
        texts = reading.told(section, Where.DETAILS)
        assert any("no verdicts" in text for text in texts) != has_verdicts


def test_a_run_in_which_one_axis_varies_has_no_such_part():
    times = dict.fromkeys(cells(modes=["graph"]), 0.01)
    assert list(attribution.make_sections(Results(run(times), rounds(times)))) == []


def test_many_effects_are_folded():
    for count in (8, 40):
        times = dict.fromkeys(cells(calls=[f"call{at}" for at in range(count)]), 0.01)
        text = markdown.render_full([make_section(times, run_calls(times, count), count=3)])
        assert (" effects</summary>" in text) == (count > 8), count


def test_strange_values_are_harmless():
    axes = {"size": ["a|b", "`c`\n# d"], "mode": ["graph", "<script>alert(1)</script>"]}
    members = [
        Cell("step", "tf1.14", Device.CPU, {"size": size, "mode": mode})
        for size in axes["size"]
        for mode in axes["mode"]
    ]
    times = dict(zip(members, [0.01, 0.02, 0.03, 0.08], strict=True))
    of = run(members, scenarios=[scenario(axes=axes, default={}, compare=[])])
    text = markdown.render_full([make_section(times, of)])
    assert "\\`c\\` # d × &lt;script&gt;alert(1)&lt;/script&gt;: additional factor" in text
    assert "size (a\\|b, \\`c\\` # d)" in text
    assert "\\`c\\` # d vs a\\|b" in text
    assert "<script" not in text

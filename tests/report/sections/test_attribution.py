"""What accounts for the differences, in sentences and in a table."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.scenario import Cell
from harness.report import markdown
from harness.report.blocks import Where
from harness.report.comparisons import HOLM
from harness.report.sections import attribution
from tests.factories import ENVIRONMENTS, cell, cells, rounds, run, scenario
from tests.report.sections import reading

#: Means in ms of a step where neither change does much alone.
TIMES = dict(zip(cells(), [0.00708, 0.00733, 0.00751, 0.0217], strict=True))


def section(times=TIMES, asked=None, **changes):
    return reading.made(attribution.make_sections, asked or run(times), rounds(times, **{"spread": 0.0, **changes}))


def sentence(made):
    (only,) = reading.told(made, Where.PASTE)
    return only


def table(made):
    (only,) = reading.tables(made)
    return only


def notes(made):
    """What is said of the cells, and what the columns mean."""
    return reading.told(made, Where.DETAILS, notes=True)[-2:]


def test_lines_are_changes_then_interactions():
    found = table(section())
    assert reading.heads(found) == ["change", "time ratio", "verdict", "remarks"]
    assert reading.rows(found) == [
        ["tf2.0 vs tf1.14", "1.77× (1.77 to 1.77)", "slower", ""],
        ["eager vs graph", "1.73× (1.73 to 1.73)", "slower", ""],
        [
            "tf2.0 × eager: additional factor",
            "2.79× (2.79 to 2.79)",
            "slower",
            "tf2.0 takes 1.06× (1.06 to 1.06) as long as tf1.14 with graph, and 2.96× (2.96 to 2.96) as long with "
            "eager. Both changes together: 3.06× (3.06 to 3.06)",
        ],
    ]


def test_the_sentence_names_what_is_beyond_the_margin_and_what_depends():
    assert sentence(section()) == (
        "Averaged over the other axes, 2 changes make a difference of more than 3 %: tf2.0 takes 1.77× (1.77 to 1.77) "
        "as long as tf1.14, and eager takes 1.73× (1.73 to 1.73) as long as graph. The effect of tf2.0 vs tf1.14 "
        "depends on the mode: tf2.0 takes 1.06× (1.06 to 1.06) as long as tf1.14 with graph, and 2.96× (2.96 to 2.96) "
        "as long with eager. Both changes together: 3.06× (3.06 to 3.06)."
    )


def test_the_sentence_alone_is_pasted_and_the_rest_stands_beside_it_in_the_details():
    made = section()
    assert (len(reading.shown(made, Where.PASTE)), len(reading.shown(made, Where.TERMINAL))) == (1, 0)
    assert sentence(made) in reading.told(made, Where.DETAILS)


def test_one_change_is_named_alone():
    times = dict(zip(cells(), [0.01, 0.02, 0.01, 0.02], strict=True))
    assert sentence(section(times)) == (
        "Averaged over the other axes, only one change makes a difference of more than 3 %: eager takes 2.00× "
        "(2.00 to 2.00) as long as graph."
    )


def test_nothing_beyond_the_margin_is_said():
    assert sentence(section(dict.fromkeys(cells(), 0.01))) == (
        "Averaged over the other axes, no change is shown to make a difference of more than 3 %."
    )


def test_changes_of_opposite_directions_that_cancel_on_average_still_depend():
    times = dict(zip(cells(), [0.01, 0.02, 0.02, 0.01], strict=True))
    assert sentence(section(times)).endswith(
        "more than 3 %. The effect of tf2.0 vs tf1.14 depends on the mode: tf2.0 takes 2.00× (2.00 to 2.00) as long "
        "as tf1.14 with graph, and 0.500× (0.500 to 0.500) as long with eager. Both changes together: "
        "1.00× (1.00 to 1.00)."
    )


def test_few_rounds_have_ratios_only_and_nothing_to_paste():
    few = section(count=2)
    assert reading.shown(few, Where.PASTE) == reading.shown(few, Where.TERMINAL) == []
    assert reading.told(few, Where.DETAILS)[0] == "Too few rounds (2 of 3) for a verdict on these effects."
    assert "verdict" not in reading.heads(table(few))
    cells_told, legend = notes(few)
    assert "Holm" not in cells_told
    assert " Each interval on its own has 98.3 % confidence." in cells_told
    assert "Verdicts" not in legend
    once = section(count=1)
    assert reading.rows(table(once))[0][:2] == ["tf2.0 vs tf1.14", "1.77×"]
    assert "in 1 round." in notes(once)[0]


def many(calls, modes=("graph", "eager")):
    names = [f"call{index}" for index in range(calls)]
    times = {of: 0.01 * 1.1 ** int(of.axes["call"][4:]) for of in cells(calls=names, modes=modes)}
    return section(times, run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]))


def test_the_two_largest_of_many_changes_are_named():
    told = sentence(many(6))
    assert "5 changes make a difference of more than 3 %. The largest: call5 takes 1.61× (1.61 to 1.61) as long" in told
    assert told.endswith("as call0, and call4 takes 1.46× (1.46 to 1.46) as long as call0.")


def test_a_dozen_interactions_are_shown_and_the_others_counted():
    found = many(10)
    assert len(table(found).lines) == 1 + 9 + 1 + 12
    assert "7 interactions are not shown: 7 same." in notes(found)[0]
    assert "not shown" not in notes(many(4))[0]


def test_interactions_beyond_the_margin_are_shown_first():
    names = [f"call{index}" for index in range(20)]
    times = dict.fromkeys(cells(calls=names, modes=["graph"]), 0.01)
    times[cell("tf2.0", call="call19")] = 0.02
    found = table(section(times, run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})])))
    slower = [row[0] for row in reading.rows(found) if "×" in row[0] and row[2] == "slower"]
    assert slower == ["tf2.0 × call19: additional factor"] == [reading.rows(found)[-1][0]]


def test_the_cells_are_told():
    assert notes(section())[0] == (
        "The effects are calculated from 4 cells: every combination of environment (tf1.14, tf2.0) and mode (graph, "
        "eager), in 5 rounds that all of these cells have. Not all of these cells could be checked for doing the same "
        f"work. All verdicts on the 3 effects are correct with 95 % confidence. {HOLM} Each interval on its "
        "own has 98.3 % confidence. The intervals of two changes that depend on each other (remarks) have 98.3 % each, "
        "so that all of them together have 95 %. Each variance is adjusted towards the variance of all these cells "
        "(Smyth 2004)."
    )
    assert "same work" not in notes(section(fingerprint={"parameters": 1}))[0]


def test_what_is_left_out_and_held_is_told():
    times = dict.fromkeys(cells(calls=("fit", "train_on_batch")), 0.01)
    del times[cell(call="fit", mode="eager")]
    told = notes(section(times, run(times)))[0]
    assert ", with train_on_batch, in 5 rounds" in told
    assert "The other 3 cells with a result are left out, so that no combination is missing." in told
    del times[cell(call="fit")], times[cell("tf2.0", call="fit")]
    assert "The other cell with a result is left out, so" in notes(section(times, run(times)))[0]


def test_many_levels_are_counted():
    assert "call (10, call0 to call9)" in notes(many(10))[0]


def test_another_python_is_remarked():
    newer = [
        replace(environment, python="3.11") if environment.name == "tf2.0" else environment
        for environment in ENVIRONMENTS[:2]
    ]
    found = reading.rows(table(section(asked=run(environments=newer))))
    assert [row[-1] for row in found[:2]] == ["Python 3.11 vs 3.7", ""]


def test_devices_are_told_apart():
    members = [replace(of, device=device) for device in Device for of in cells()]
    made = section(dict.fromkeys(members, 0.01), run(members))
    assert reading.headings(made) == reading.headings(made, Where.PASTE) == ["cpu", "gpu"]
    assert [entry.caption for entry in reading.tables(made)] == [
        "Effects, One training step, cpu",
        "Effects, One training step, gpu",
    ]


def test_that_environments_differ_in_all_they_hold_is_said_where_they_vary():
    times = dict.fromkeys(cells(["tf1.14"], calls=("fit", "train_on_batch")), 0.01)
    assert "a change of all its contents" in notes(section())[1]
    assert "a change of all its contents" not in notes(section(times))[1]


@pytest.mark.parametrize(("differs", "has_verdicts"), [(1.03, True), (1.5, False)])
def test_the_control_takes_verdicts_away(differs, has_verdicts):
    times = dict(zip(cells(), [0.01, 0.0105, 0.02, 0.021], strict=True))
    launches = rounds(times, spread=0.008, controls={cell(): 0.01 * differs})
    made = reading.made(attribution.make_sections, run(controlled=True), launches)
    assert ("verdict" in reading.heads(table(made))) == has_verdicts
    assert bool(reading.shown(made, Where.PASTE)) == has_verdicts
    none = "There are no verdicts on these effects, because two identical cells differed by more than the margin."
    assert (none in reading.told(made, Where.DETAILS)) != has_verdicts


def test_a_run_in_which_one_axis_varies_has_no_such_part():
    times = dict.fromkeys(cells(modes=["graph"]), 0.01)
    assert list(attribution.make_sections(Results(run(times), rounds(times)))) == []


def test_two_scenarios_have_one_section_and_one_legend():
    other = scenario("other", title="Another")
    times = {**TIMES, **{Cell("other", of.environment, of.device, of.axes): 0.01 for of in cells()}}
    made = section(times, run(times, scenarios=[scenario(), other]))
    assert reading.headings(made) == ["One training step", "Another"]
    told = reading.told(made, Where.DETAILS, notes=True)
    assert sum("The effects are calculated from 4 cells" in entry for entry in told) == 2
    assert sum("geometric mean" in entry for entry in told) == 1


@pytest.mark.parametrize("calls", [8, 40])
def test_many_effects_are_folded(calls):
    names = [f"call{index}" for index in range(calls)]
    times = dict.fromkeys(cells(calls=names), 0.01)
    made = section(times, run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]), count=4)
    text = markdown.render_full([made])
    assert (" effects</summary>" in text) == (calls > 8)


def test_strange_values_are_harmless():
    axes = {"size": ["a|b", "`c`\n# d"], "mode": ["graph", "<script>alert(1)</script>"]}
    members = [
        Cell("step", "tf1.14", Device.CPU, {"size": size, "mode": mode})
        for size in axes["size"]
        for mode in axes["mode"]
    ]
    asked = run(members, scenarios=[scenario(axes=axes, default={}, compare=[])])
    text = markdown.render_full([section(dict(zip(members, [0.01, 0.02, 0.03, 0.08], strict=True)), asked)])
    assert "\\`c\\` # d × &lt;script&gt;alert(1)&lt;/script&gt;: additional factor" in text
    assert "size (a\\|b, \\`c\\` # d)" in text
    assert "\\`c\\` # d vs a\\|b" in text
    assert "<script" not in text

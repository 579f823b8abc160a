"""Two runs side by side."""

import json
from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.analysis.runs import Pair
from harness.model.environment import Device
from harness.report import changes, markdown
from harness.report.blocks import Items, Table, Text
from tests.factories import cell, launch, scenario
from tests.quantified import quantified, quantified_run
from tests.two_runs import CELLS, MARGIN, all_but, first, pair, second

ONE = CELLS[2]


def words(one, other):
    """The paragraphs and items, one after the other."""
    (section,) = changes.make_sections(pair(one, other))
    told = []
    for block in section.blocks:
        told += [block.words] if isinstance(block, Text) else list(block.items) if isinstance(block, Items) else []
    return told


def lines(one, other):
    """The table's lines as text, by the cell's name, and its headings."""
    (section,) = changes.make_sections(pair(one, other))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    rows = [[entry.text for entry in line.entries] for line in table.lines]
    return {row[0]: row[1:] for row in rows}, [head.text for head in table.heads]


def test_it_names_the_runs_and_counts_the_verdicts():
    told = words(first(), second(all_but(ONE, 1.3)))
    assert told[0] == "A: 2026-11-20T04-10-00Z-aaaa, started 2026-11-21T04:10:00Z"
    assert told[2] == "6 cells have a result in both runs. B vs A: 1 slower, 5 same."
    assert told[3].startswith("Shift: 0.999× (0.998 to 1.00), the median change of the 6 cells")
    assert told[3].endswith("the same within 3 %, so changes of single cells have other causes than the machine.")
    assert any(entry.startswith("Nothing else differs: machine, engine") for entry in told)


def test_a_line_has_the_times_and_the_ratios_of_its_cell():
    found, headings = lines(first(spread=0.0), second(all_but(ONE, 1.3), spread=0.0))
    assert headings == ["cell", "A, ms", "B, ms", "B / A", "without the shift", "verdict", "remarks"]
    ratio = "1.30× (1.30 to 1.30)"
    assert found["tf1.14, b"] == ["10.0 ± 0.1", "13.0 ± 0.1", ratio, ratio, "slower", "work not checked"]


def test_what_changed_comes_first_and_what_did_not_last():
    found, _ = lines(first(), second(all_but(ONE, 1.3) | {CELLS[4]: 0.008}))
    assert [line[4] for line in found.values()] == ["slower", "faster", "same", "same", "same", "same"]


def test_cells_are_named_by_what_tells_them_apart():
    cells = [cell(), cell(device=Device.GPU), cell(of="other", mode="eager")]
    taken = dict.fromkeys(cells, 0.01)
    both = [scenario(), scenario("other")]
    found, _ = lines(first(taken, scenarios=both), second(taken, scenarios=both))
    assert set(found) == {"step, tf1.14, cpu", "step, tf1.14, gpu", "other, tf1.14, cpu"}


def test_a_slower_day_is_told_as_the_machines():
    days = first(), second(all_but(ONE, 1.3, seconds=0.012))
    told = words(*days)[3]
    assert "the 6 cells whose software is the same in both runs" in told
    assert "the machine or the measurement changed" in told
    found, _ = lines(*days)
    assert "slower without the shift" in found["tf1.14, b"][-1]
    assert "same without the shift" in found["tf1.14, a"][-1]


def test_where_the_software_changed_too_the_machine_is_not_blamed():
    told = words(first(), second(dict.fromkeys(CELLS, 0.012), sources={"step": "cd34"}))
    assert "the 6 cells that are judged" in told[3]
    assert "the effects of the machine and of the software can't be separated" in told[3]
    assert "scenario step: its file, or the kit, has changed" in told


def test_of_few_cells_no_shift_is_told():
    few = first(dict.fromkeys(CELLS[:2], 0.01)), second(dict.fromkeys(CELLS[:2], 0.01))
    needs = "The shift is unknown: it needs 5 judged cells with at least 4 rounds in each run, but the runs share "
    assert words(*few)[3].startswith(f"{needs}2.")
    assert "without the shift" not in lines(*few)[1]
    # a change this large has a verdict after three rounds, but isn't used for the shift
    short = first(count=3), second(dict.fromkeys(CELLS, 0.02), count=3)
    assert words(*short)[2].endswith("B vs A: 6 slower.")
    assert words(*short)[3].startswith(f"{needs}none.")


@pytest.mark.parametrize(("count", "said"), [(3, "too few rounds (3 of 4) for a verdict"), (5, "work not checked")])
def test_a_line_says_what_its_verdict_rests_on(count, said):
    assert said in lines(first(count=count), second())[0]["tf1.14, a"][-1]


def test_another_machine_is_told_before_all_else():
    asked, launches = second()
    told = words(first(), (replace(asked, host={**asked.host, "cpu": "Another CPU"}), launches))
    assert told[2].startswith("These runs come from different machines: CPU Some CPU → Another CPU.")


def test_different_work_has_no_ratio():
    one, other = (
        (asked, [launch(entry.cell, entry.mean, entry.round, fingerprint={"parameters": n}) for entry in launches])
        for n, (asked, launches) in enumerate((first(), second()))
    )
    line = lines(one, other)[0]["tf1.14, a"]
    assert (line[2], line[3]) == ("", "different work")
    assert "parameters: difference of 1" in line[4]


def test_cells_of_one_run_are_named_by_the_others_reason():
    asked, launches = second()
    other = asked, [entry for entry in launches if entry.cell != ONE]
    assert f"No result in B (interrupted): {ONE}." in words(first(), other)
    more = cell("tf2.1")
    told = words(other, first({**dict.fromkeys(CELLS, 0.01), more: 0.01}))
    assert f"No result in A (interrupted): {ONE}." in told
    assert f"No result in A (not requested): {more}." in told


def test_environments_with_the_same_differences_are_told_together():
    asked, launches = second()
    pins = {name: {**known, "numpy": "1.18.0"} for name, known in asked.pins.items()}
    images = dict.fromkeys(asked.images, "sha256:cd")
    told = words(first(), (replace(asked, pins=pins, images=images), launches))
    assert told[-1] == "environment tf1.14, tf2.0: a different image; numpy 1.17.4 → 1.18.0"


def test_of_many_packages_some_are_named_and_the_others_counted():
    asked, launches = second()
    pins = {name: {**known, **{f"p{i:02}": "1" for i in range(11)}} for name, known in asked.pins.items()}
    told = words(first(), (replace(asked, pins=pins), launches))[-1]
    assert "p00 none → 1; p01" in told
    assert told.endswith("p07 none → 1; and 3 more")


def test_the_facts_of_a_measurement_are_told_as_a_launchs():
    asked, launches = second()
    limits = replace(asked.plan.limits, cpus=(0, 1), memory_bytes=2**30)
    told = words(first(), (replace(asked, plan=replace(asked.plan, limits=limits)), launches))
    assert told[-1] == "measurement: CPUs of a launch 0 → 0, 1; memory of a launch none → 1.00 GiB"


def test_sizes_that_look_the_same_are_no_difference():
    def sized(stored, memory_bytes):
        asked, launches = stored
        limits = replace(asked.plan.limits, memory_bytes=memory_bytes)
        return replace(asked, plan=replace(asked.plan, limits=limits)), launches

    told = words(sized(first(), 20 * 2**30), sized(second(), 20 * 2**30 + 4096))
    assert told[-1].startswith("Nothing else differs")
    told = words(sized(first(), 20 * 2**30), sized(second(), 21 * 2**30))
    assert told[-1] == "measurement: memory of a launch 20.0 GiB → 21.0 GiB"


def test_nothing_of_an_untrusted_script_reaches_markdown():
    asked, launches = second()
    evil = "evil\x1b[31m\x07<b>"
    stored = replace(asked, folder=evil, host={**asked.host, "kernel": evil}), launches
    text = markdown.render_full(changes.make_sections(pair(first(), stored)))
    assert not {"\x1b", "\x07"} & set(text)
    assert "evil" in text
    assert "<b>" not in text


def made(one, other):
    # what is not JSON raises here
    return json.loads(json.dumps(changes.make_document(pair(one, other))))


def test_as_json_a_cell_has_its_times_its_ratio_and_what_is_said_of_it():
    told = made(first(), second(all_but(ONE, 1.3)))
    (of,) = (entry for entry in told["cells"] if entry["change"]["verdict"] == "slower")
    assert of["cell"] == {
        "scenario": "step",
        "environment": "tf1.14",
        "device": "cpu",
        "axes": dict(ONE.axes),
    }
    assert of["first"]["value"] == pytest.approx(0.01, rel=0.01)
    ratio = of["change"]["ratio"]
    assert ratio["value"] == pytest.approx(1.3, rel=0.01)
    assert ratio["interval"]["low"] < ratio["value"] < ratio["interval"]["high"]
    assert (ratio["rounds"], of["change"]["withheld"], of["same_software"]) == (5, None, True)
    assert of["without_shift"]["verdict"] == "slower"
    assert of["work"] == {"work": "not checked", "reason": ""}


def test_as_json_it_names_the_runs_and_their_shift():
    told = made(first(), second())
    assert (told["schema"], told["margin"]) == (changes.SCHEMA, MARGIN)
    assert [told[name]["id"] for name in ("first", "second")] == [first()[0].id, second()[0].id]
    shift = told["shift"]
    assert (shift["change"]["verdict"], shift["cells"], shift["unchanged"]) == ("same", 6, True)
    assert told["differences"] == told["other_machine"] == told["only_first"] == told["only_second"] == []


def test_as_json_it_tells_all_that_differs():
    asked, launches = second()
    host = {**asked.host, "cpu": "Another CPU"}
    more = {**dict.fromkeys(CELLS, 0.01), cell("tf2.1"): 0.01}
    told = made(first(more, count=1), (replace(asked, host=host), launches))
    difference = {"part": "machine", "subject": "", "name": "cpu", "first": "Some CPU", "second": "Another CPU"}
    assert told["other_machine"] == told["differences"] == [difference]
    assert told["shift"] is None
    assert told["cells"][0]["change"]["withheld"] == "few rounds"
    assert [(entry["cell"]["environment"], entry["status"]) for entry in told["only_first"]] == [("tf2.1", None)]


def test_each_other_quantity_has_a_table_of_its_own():
    asked = quantified_run("first call", "peak memory")
    both = Pair(Results(asked, quantified()), Results(asked, quantified(spread=0.02)), MARGIN)
    (section,) = changes.make_sections(both)
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert [table.caption for table in tables] == ["Cells", "Cells: first call time", "Cells: peak memory"]
    assert [table.heads[1].text for table in tables[1:]] == ["A, s", "A, MiB"]
    assert "If it is above 1, B takes more." in tables[2].legend
    assert set(json.loads(json.dumps(changes.make_document(both)))["quantities"]) == {"first call", "peak memory"}

"""Two runs side by side, as text."""

from dataclasses import replace

from harness.analysis.conditions import Part
from harness.model.environment import Device
from harness.report.changes import PACKAGES, Absent, Fact, Told, build
from tests.factories import cell, scenario
from tests.two_runs import CELLS, MARGIN, all_but, first, found, second

ONE = CELLS[2]


def view(one, other, margin=MARGIN):
    return build(one[0], other[0], found(one, other), margin)


def test_a_line_has_the_times_and_the_percentages_of_its_cell():
    made = view(first(spread=0.0), second(all_but(ONE, 1.3), spread=0.0))
    line = made.lines[0]
    assert (line.name, line.first, line.second) == ("tf1.14, b", "10.0 ± 0.1", "13.0 ± 0.1")
    assert (line.gain, line.beside) == ("-30 ± 1 %", "-30 ± 1 %")
    assert (made.unit, made.shift) == ("ms", "+0.0 ± 0.1 %")


def test_what_changed_comes_first_and_what_did_not_last():
    taken = all_but(ONE, 1.3) | {CELLS[4]: 0.008}
    made = view(first(), second(taken))
    verdicts = [line.change.change.verdict.value for line in made.lines]
    assert verdicts == ["slower", "faster", "same", "same", "same", "same"]
    assert list(made.tally.verdicts) == [("slower", 1), ("faster", 1), ("same", 4)]
    assert made.judged == 6


def test_cells_are_named_by_what_tells_them_apart():
    cells = [cell(), cell(device=Device.GPU), cell(of="other", mode="eager")]
    taken = dict.fromkeys(cells, 0.01)
    both = [scenario(), scenario("other")]
    made = view(first(taken, scenarios=both), second(taken, scenarios=both))
    assert {line.name for line in made.lines} == {"step, tf1.14, cpu", "step, tf1.14, gpu", "other, tf1.14, cpu"}


def test_cells_of_one_run_are_gathered_by_the_others_reason():
    asked, launches = second()
    other = asked, [each for each in launches if each.cell != ONE]
    more = cell("tf2.1")
    made = view(first(), (asked, other[1]))
    assert list(made.only_first) == [Absent("interrupted", [str(ONE)])]
    made = view(other, first({**dict.fromkeys(CELLS, 0.01), more: 0.01}))
    assert list(made.only_second) == [Absent("interrupted", [str(ONE)]), Absent("", [str(more)])]


def test_environments_with_the_same_differences_are_told_together():
    asked, launches = second()
    pins = {name: {**known, "numpy": "1.18.0"} for name, known in asked.pins.items()}
    images = dict.fromkeys(asked.images, "sha256:cd")
    made = view(first(), (replace(asked, pins=pins, images=images), launches))
    facts = [Fact("image", "image", "", ""), Fact("numpy", "numpy", "1.17.4", "1.18.0")]
    assert list(made.differences) == [Told(Part.ENVIRONMENT, ["tf1.14", "tf2.0"], facts, 0)]


def test_of_many_packages_some_are_named_and_the_others_counted():
    asked, launches = second()
    pins = {name: {**known, **{f"p{i:02}": "1" for i in range(11)}} for name, known in asked.pins.items()}
    (told,) = view(first(), (replace(asked, pins=pins), launches)).differences
    assert [fact.name for fact in told.facts] == [f"p{i:02}" for i in range(PACKAGES)]
    assert told.facts[0] == Fact("p00", "p00", "none", "1")
    assert told.left == 3


def test_the_facts_of_a_measurement_are_told_as_a_launchs():
    asked, launches = second()
    limits = replace(asked.plan.limits, cpus=(0, 1), memory_bytes=2**30)
    (told,) = view(first(), (replace(asked, plan=replace(asked.plan, limits=limits)), launches)).differences
    assert (told.part, list(told.subjects)) == (Part.MEASUREMENT, [])
    assert list(told.facts) == [
        Fact("cpus", "CPUs of a launch", "0", "0, 1"),
        Fact("memory_bytes", "memory of a launch", "none", "1.00 GiB"),
    ]


def test_what_a_control_resolves_is_of_this_margin():
    made = view(first(), second())
    assert made.resolutions == [None, None]
    assert made.machines == []

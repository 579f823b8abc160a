"""Curves along a sweep, and what is compared along it."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.launch import Sample
from harness.model.run import Unavailable
from tests.factories import groups, rounds
from tests.swept import CROSSING, SIZES, cell, seconds, swept_run


def find_sweeps(run, launches):
    return [sweep for _, sweep in Results(run, launches).sweeps]


def test_environments_are_compared_along_sweeps_of_several_sizes_with_enough_rounds():
    (sweep,) = find_sweeps(*swept_run(seconds(CROSSING, ("tf1.14", "tf2.0"))))
    along = [race.column.comparison.along for race in sweep.races]
    assert (along.count("variant"), along.count("environment")) == (2, 2)
    assert find_sweeps(*swept_run(seconds({"32": 2.0}))) == []
    # one round has crossings without intervals
    (sweep,) = find_sweeps(*swept_run(seconds(CROSSING), count=1))
    (crossing,) = sweep.races[0].lead.crossings
    assert (crossing.interval, sweep.races[0].rounds) == (None, 1)
    run, launches = swept_run(seconds(dict(reversed(CROSSING.items()))), count=6)
    few = [launch for launch in launches if launch.cell.axes["size"] != "32" or launch.round < 3]
    (sweep,) = find_sweeps(run, few)
    assert (sweep.races[0].sizes, sweep.races[0].rounds) == ([1.0, 1024.0, 32768.0], 6)
    assert [[point.size for point in curve.points] for curve in sweep.curves] == [[float(size) for size in SIZES]] * 2
    # only rounds that all sizes have are used
    most = [launch for launch in launches if (launch.cell, launch.round) != (cell("numpy", "32"), 2)]
    (sweep,) = find_sweeps(run, most)
    assert (sweep.races[0].sizes, sweep.races[0].rounds) == ([float(size) for size in SIZES], 5)


def test_where_the_control_lies_beyond_the_margin_its_comparisons_are_withheld():
    times = seconds(CROSSING)
    run, _ = swept_run(times, controlled=True)
    slower = {group.control: 2.0 * times[group.control] for group in run.plan.groups}
    (sweep,) = find_sweeps(run, rounds(times, 5, 0.001, controls=slower))
    assert (bool(sweep.withheld), sweep.races, len(sweep.curves)) == (True, [], 2)
    # and where a machine cannot run the first cell, too
    absent = cell("numpy", SIZES[0])
    del times[absent]
    (group,) = groups(times, ["variant", "size"], controlled=True)
    plan = {"groups": [replace(group, machine="m-1")]}
    run, _ = swept_run(times, unavailable=[Unavailable(absent, "no wheel")], asked=plan)
    slower = {group.control: 2.0 * times[group.control]}
    (sweep,) = find_sweeps(run, rounds(times, 5, 0.001, controls=slower, group=group.name))
    assert (bool(sweep.withheld), sweep.races) == (True, [])


def growing_at_the_last_size(warmups):
    """Return a run with growing steps at size 32,768. `warmups` has the number of steps before each variant's samples.

    After the same number of steps, compiled is twice as fast.
    """
    times = {**seconds(CROSSING), cell("numpy", "32768"): 1e-4, cell("compiled", "32768"): 5e-5}
    run, launches = swept_run(times, spread=0.001)
    measured = []
    for launch in launches:
        warmup = warmups[launch.cell.axes["variant"]]
        rate = [1.0 + (warmup + 10 * at + 5) / 50 if launch.cell.axes["size"] == "32768" else 1.0 for at in range(20)]
        samples = [Sample(launch.mean * one * 10, 10) for one in rate]
        measured.append(replace(launch, samples=samples, resources={"warmup_steps": float(warmup)}))
    return run, measured


def test_a_crossing_is_of_the_steps_that_both_have():
    results = Results(*growing_at_the_last_size({"numpy": 0, "compiled": 150}))
    assert {member.axes["size"] for member in results.found.trends} == {"32768"}
    ((_, sweep),) = results.sweeps
    numpy, compiled = (curve.points[-1].estimate.value for curve in sweep.curves)
    # over all of their steps, the two take about equally long
    assert compiled == pytest.approx(numpy, rel=0.05)
    (race,) = sweep.races
    assert race.verdicts[-1].verdict is Verdict.FASTER
    (crossing,) = race.crossings
    # as where they don't grow, but 1 + (150 + 25) / 50 times as long at the last size
    assert crossing.rises
    low, high = (1e-6 * 1025**0.5 / ratio for ratio in (1.0, 0.5))
    last = 1e-4 * (1.0 + 175 / 50)
    assert crossing.at == pytest.approx(1024 + (high - low) / (high - low + last / 2) * (32768 - 1024), rel=0.01)


def test_a_size_without_steps_that_both_have_is_no_part_of_a_crossing():
    results = Results(*growing_at_the_last_size({"numpy": 0, "compiled": 500}))
    ((_, sweep),) = results.sweeps
    (race,) = sweep.races
    assert race.verdicts[-1].verdict is None
    assert race.sizes == [1.0, 32.0, 1024.0]
    assert race.crossings == []
    assert len(sweep.curves[0].points) == len(SIZES)

"""The pilot of a plan that gives every length: it has none to set, and launches what it must."""

from dataclasses import replace

from harness.model.launch import BESIDE_BUILDS, SHORT, Launch, Outcome, Role, Sample, Status
from harness.model.scenario import Cell
from tests.runner.stage import Backstage, Shelf, walk
from tests.runs import plan


def of_pilot(launches: list[Launch]) -> list[str]:
    return [f"{launch.group} {launch.cell.environment}" for launch in launches if launch.role is Role.PILOT]


def test_it_launches_each_environment_once_and_each_scenario():
    backstage = Backstage()
    planned = plan(rounds=1, groups=3)
    other = [replace(cell, scenario="other") for cell in planned.groups[2].cells]
    planned = replace(planned, groups=[*planned.groups[:2], replace(planned.groups[2], cells=other)])
    launches = walk(Shelf(), backstage, planned)
    pilots = of_pilot(launches)
    assert sorted(pilots[:2]) == ["step 0 new", "step 0 old"]
    assert [pilot.rpartition(" ")[0] for pilot in pilots[2:]] == ["step 2"]
    assert all(job.sampling == SHORT for job in backstage.jobs[: len(pilots)])
    assert [launch.role for launch in launches[len(pilots) :]] == [Role.MEASURE] * 6


def test_the_control_has_no_second_one():
    planned = plan(rounds=1)
    planned = replace(planned, groups=[replace(group, control=group.cells[0]) for group in planned.groups])
    assert len(of_pilot(walk(Shelf(), Backstage(), planned))) == 2


def test_cells_that_only_observe_are_all_launched_in_it_and_never_again():
    backstage = Backstage(lambda _, job: Outcome(Status.OK, observations={"traces": 3}))
    planned = plan(rounds=3, groups=2)
    launches = walk(Shelf(), backstage, planned)
    assert [launch.role for launch in launches] == [Role.PILOT] * len(planned.cells)
    assert walk(Shelf(), backstage, planned, launches) == launches


def test_a_first_launch_looks_closer_and_finds_the_size_of_samples():
    backstage = Backstage()
    launches = walk(Shelf(), backstage, plan(rounds=2, groups=2))
    first: dict[object, bool] = {}
    for launch, job in zip(launches, backstage.jobs, strict=True):
        expected = first.setdefault(launch.cell, True)
        assert (job.thorough, job.profile_calls) == (expected, None)
        if launch.role is not Role.PILOT:
            assert job.sampling.calls_per_sample == (None if expected else 7)
        first[launch.cell] = False


def test_a_pilot_beside_builds_does_not_say_how_many_calls_make_a_sample():
    later = Outcome(Status.OK, samples=[Sample(1, 1)], calls_per_sample=7)
    beside = replace(later, calls_per_sample=3, resources={BESIDE_BUILDS: 1.0})
    backstage = Backstage(lambda count, _: beside if count <= 2 else later)
    planned = plan(rounds=2)
    launches = walk(Shelf(), backstage, planned)
    calls: dict[Cell, list[int | None]] = {cell: [] for cell in planned.cells}
    for launch, job in zip(launches, backstage.jobs, strict=True):
        if launch.round:
            calls[launch.cell].append(job.sampling.calls_per_sample)
    assert list(calls.values()) == [[None, 7]] * len(planned.cells)

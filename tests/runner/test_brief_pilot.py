"""The pilot of a plan that gives every length: it has none to set, and launches what it must."""

from dataclasses import replace

from harness.model.launch import SHORT, Launch, Outcome, Role, Status
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


def test_it_has_one_control_and_launches_all_cells_that_only_observe():
    planned = plan(rounds=1)
    planned = replace(planned, groups=[replace(group, control=group.cells[0]) for group in planned.groups])
    assert len(of_pilot(walk(Shelf(), Backstage(), planned))) == 2
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

"""The pilot of a plan that gives every length: it has none to set, and launches what it must."""

from dataclasses import replace

import pytest

from harness.model.launch import BESIDE_BUILDS, SHORT, Job, Launch, Outcome, Role, Sample, Status
from harness.model.scenario import Cell
from harness.store.folder import RunFolder
from tests.runner.stage import Backstage, interrupted_at, last_attempt, walk
from tests.runs import plan


def of_pilot(launches: list[Launch]) -> list[str]:
    return [f"{launch.group} {launch.cell.environment}" for launch in launches if launch.role is Role.PILOT]


def test_it_launches_each_environment_once_and_each_scenario(folder: RunFolder) -> None:
    backstage = Backstage()
    planned = plan(rounds=1, groups=3)
    other = [replace(cell, scenario="other") for cell in planned.groups[2].cells]
    planned = replace(planned, groups=[*planned.groups[:2], replace(planned.groups[2], cells=other)])
    launches = walk(folder, backstage, planned)
    pilots = of_pilot(launches)
    assert sorted(pilots[:2]) == ["step 0 new", "step 0 old"]
    assert [pilot.rpartition(" ")[0] for pilot in pilots[2:]] == ["step 2"]
    assert all(given.sampling == SHORT for given in backstage.jobs[: len(pilots)])
    assert [launch.role for launch in launches[len(pilots) :]] == [Role.MEASURE] * 6


def test_the_control_has_no_second_one(folder: RunFolder) -> None:
    planned = plan(rounds=1)
    planned = replace(planned, groups=[replace(group, control=group.cells[0]) for group in planned.groups])
    assert len(of_pilot(walk(folder, Backstage(), planned))) == 2


def test_cells_that_only_observe_are_all_launched_in_it_and_never_again(folder: RunFolder) -> None:
    backstage = Backstage(lambda _, given: Outcome(Status.OK, observations={"traces": 3}))
    planned = plan(rounds=3, groups=2)
    launches = walk(folder, backstage, planned)
    assert [launch.role for launch in launches] == [Role.PILOT] * len(planned.cells)
    assert walk(folder, backstage, planned, launches) == launches


def test_a_first_launch_looks_closer_and_finds_the_size_of_samples(folder: RunFolder) -> None:
    backstage = Backstage()
    launches = walk(folder, backstage, plan(rounds=2, groups=2))
    first: dict[object, bool] = {}
    for launch, given in zip(launches, backstage.jobs, strict=True):
        expected = first.setdefault(launch.cell, True)
        assert given.thorough is expected
        if launch.role is not Role.PILOT:
            assert given.sampling.calls_per_sample == (None if expected else 7)
        first[launch.cell] = False


def test_a_pilot_beside_builds_does_not_say_how_many_calls_make_a_sample(folder: RunFolder) -> None:
    later = Outcome(Status.OK, samples=[Sample(1, 1)], calls_per_sample=7)
    beside = replace(later, calls_per_sample=3, resources={BESIDE_BUILDS: 1.0})
    backstage = Backstage(lambda count, _: beside if count <= 2 else later)
    planned = plan(rounds=2)
    launches = walk(folder, backstage, planned)
    asked: dict[Cell, list[int | None]] = {cell: [] for cell in planned.cells}
    for launch, given in zip(launches, backstage.jobs, strict=True):
        if launch.round:
            asked[launch.cell].append(given.sampling.calls_per_sample)
    assert list(asked.values()) == [[None, 7]] * len(planned.cells)


@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMEOUT, Status.OOM, Status.NOT_AVAILABLE])
def test_a_cell_whose_first_launch_breaks_is_not_launched_again_and_the_others_run_on(
    folder: RunFolder, status: Status
) -> None:
    def answer(_: int, given: Job) -> Outcome:
        broken = given.cell.environment == "new" and given.cell.axes["mode"] == "1"
        return Outcome(status if broken else Status.OK, samples=[Sample(1, 1)])

    launches = walk(folder, Backstage(answer), plan(rounds=4, groups=2))
    assert [launch.status for launch in launches if launch.status is not Status.OK] == [status]
    assert len([launch for launch in launches if launch.role is Role.MEASURE and launch.status is Status.OK]) == 3 * 4


@pytest.mark.parametrize("killed_at", range(1, 11))
def test_a_run_that_was_interrupted_goes_on(folder: RunFolder, killed_at: int) -> None:
    planned = plan(rounds=2, groups=2)
    with pytest.raises(KeyboardInterrupt):
        walk(folder, interrupted_at(killed_at), planned)
    before = folder.read_launches()
    after = walk(folder, Backstage(), planned, before)
    assert after[: len(before)] == before
    assert {entry.rpartition(" ")[2] for entry in of_pilot(after)} == {"old", "new"}
    for group in planned.groups:
        for number in (1, 2):
            assert {launch.cell for launch in last_attempt(after, group, number)} == set(group.cells)
    assert walk(folder, Backstage(), planned, after) == after

"""The pass under the profiler: every cell once, in launches that enter no statistic."""

from dataclasses import replace

import pytest

from harness.analysis.cell_index import lookup
from harness.model.launch import ON_DEVICE, UNDER_WAY, Outcome, Role, Sample, Sampling, Status
from tests.runner.stage import Backstage, staged, walk
from tests.runs import plan, run

PLAN = replace(plan(rounds=0, groups=2), profile_calls=50)


def profiled(folder, backend):
    return staged(folder, backend, PLAN).profile()


def test_every_cell_is_launched_once_and_told_how_many_calls_to_profile(folder):
    backend = Backstage()
    launches = profiled(folder, backend)
    assert {launch.cell for launch in launches} == set(PLAN.cells)
    assert len(launches) == len(PLAN.cells)
    assert {launch.role for launch in launches} == {Role.PROFILE}
    assert {job.profile_calls for job in backend.jobs} == {50}
    assert not any(job.thorough for job in backend.jobs)


@pytest.mark.parametrize("sampling", [plan().sampling, Sampling()], ids=["a brief pilot", "a pilot of every cell"])
def test_a_cell_that_ends_under_tensorflow_s_profiler_is_launched_again_without_it(folder, sampling):
    """A library may crash or hang in it, and the cell would run well."""
    planned = replace(plan(rounds=3), sampling=sampling)
    crashed = Outcome(Status.FAILED, observations={ON_DEVICE: UNDER_WAY}, samples=[Sample(1, 1)])
    well = Outcome(Status.OK, samples=[Sample(1, 1)], calls_per_sample=7)
    backend = Backstage(lambda _, job: crashed if job.thorough else well)
    launches = walk(folder, backend, planned)
    assert [job.thorough for job in backend.jobs] == [launch.ended_under_profiler for launch in launches]
    assert sum(launch.ended_under_profiler for launch in launches) == len(planned.cells)
    index = lookup(replace(run(), plan=planned), launches)
    assert {cell: len(index.numbers[cell]) for cell in planned.cells} == dict.fromkeys(planned.cells, 3)
    assert walk(folder, backend, planned, launches) == launches


def test_a_failure_before_or_after_the_profiler_is_none_of_it(folder):
    backend = Backstage(lambda *_: Outcome(Status.FAILED, observations={ON_DEVICE: "kernels ran in 7 % of a step"}))
    assert len(walk(folder, backend, plan(rounds=2))) == len(plan().cells)

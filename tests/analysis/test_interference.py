"""Interference from other processes in launches."""

from dataclasses import replace

import numpy as np
import pytest

from harness.analysis.interference import (
    compute_possible_error,
    describe_interference,
    estimate_unchecked_share,
    find_contention,
    find_interference,
    find_noisy_rounds,
    has_contention_readings,
)
from harness.model.launch import Role, Status
from tests.factories import broken, cell, cells, contended, launch, rounds, run

#: Ten seconds on two CPUs of eight, kept busy by the launch alone: others may use 3 % of 20 seconds of CPU, and the
#: kernel's count may be 0.04 seconds off for each.
QUIET = {
    "steady_seconds": 10.0,
    "steady_cpu_seconds": 18.0,
    "steady_own_cpus": 2,
    "steady_own_cpus_busy_seconds": 18.0,
    "steady_own_cpus_steal_seconds": 0.0,
    "steady_all_cpus": 8,
    "steady_all_cpus_busy_seconds": 18.0,
}


def watched(without=(), **changes):
    resources = {name: value for name, value in {**QUIET, **changes}.items() if name not in without}
    return launch(cell(), resources=resources)


def busy(seconds):
    return {"steady_own_cpus_busy_seconds": seconds, "steady_all_cpus_busy_seconds": seconds}


SHORT = {"steady_seconds": 0.25, "steady_cpu_seconds": 0.25, "steady_own_cpus": 1, "steady_all_cpus": 1}


def test_a_launch_is_disturbed_beyond_the_limits_alone():
    for changes, is_disturbed in (
        ({}, False),
        # others may take 3 % of its CPUs and the ticks, and so may the hypervisor
        (busy(18.67), False),
        (busy(18.69), True),
        ({"steady_own_cpus_steal_seconds": 0.67}, False),
        ({"steady_own_cpus_steal_seconds": 0.69}, True),
        # of the rest of the machine a quarter of six CPUs for ten seconds, and 0.04 seconds of each
        ({"steady_all_cpus_busy_seconds": 18.0 + 15.2}, False),
        ({"steady_all_cpus_busy_seconds": 18.0 + 15.3}, True),
        # ... but where other slots of the machine are measured on meanwhile
        ({"steady_all_cpus_busy_seconds": 18.0 + 40.0, "slots": 2.0}, False),
        # a load above all CPUs and those of the launch before
        ({"load_before": 10.0}, False),
        ({"load_before": 10.1}, True),
        # a count of the kernel's that is below the process's own
        ({"steady_own_cpus_busy_seconds": 17.9, "steady_all_cpus_busy_seconds": 17.5}, False),
        # a measurement that took no time, and a launch that is idle itself
        ({"steady_seconds": 0.0, **busy(27.0)}, False),
        # in a short measurement the ticks weigh more, and in pieces
        ({**SHORT, **busy(0.25 + 0.04)}, False),
        ({**SHORT, **busy(0.25 + 0.05)}, True),
        ({**busy(18.95), "steady_pieces": 100.0}, False),
        ({**busy(18.97), "steady_pieces": 100.0}, True),
        ({"steady_all_cpus_busy_seconds": 34.0}, True),
        ({"steady_all_cpus_busy_seconds": 34.0, "steady_pieces": 100.0}, False),
        # a launch that has the whole machine has no others elsewhere
        ({**busy(19.0), "steady_own_cpus": 8}, False),
        ({**busy(25.0), "steady_own_cpus": 8}, True),
    ):
        assert bool(describe_interference(watched(**changes))) is is_disturbed, changes
    # the times are not looked at
    assert describe_interference(replace(watched(), samples=launch(cell(), [0.001, 9.0, 0.001, 70.0]).samples)) == ""


def test_it_is_said_in_a_clause_what_disturbed_a_launch(snapshot):
    one = {"steady_own_cpus": 1.0, **busy(10.0)}
    throttled = {
        share: {**GPU, "gpu_throttled_share": 0.5, share: 0.5}
        for share in ("gpu_hw_thermal_share", "gpu_power_brake_share", "gpu_hw_slowdown_share", "gpu_other_share")
    }
    cases = {
        "stolen time": {"steady_own_cpus_steal_seconds": 5.0},
        "other processes": busy(33.0),
        "the other CPUs": {"steady_all_cpus_busy_seconds": 48.0},
        "load": {"load_before": 10.1},
        "corrected": {**one, "steady_cpu_seconds": 8.0},
        "another process on the GPU": {**GPU, "gpu_foreign_processes": 1.0},
        "several on the GPU": {**GPU, "gpu_foreign_processes": 3.0},
        **throttled,
        "brake before slowdown": {**throttled["gpu_power_brake_share"], "gpu_hw_slowdown_share": 0.5},
        "a lost GPU": {**GPU, "gpu_lost": 1.0},
        "compiled for the GPU": {**GPU, "steady_ptx_cache_filled_bytes": 4096.0},
    }
    assert {case: describe_interference(watched(**changes)) for case, changes in cases.items()} == snapshot
    for quiet in (
        GPU,
        {**one, "steady_cpu_seconds": 9.75},
        {**GPU, "gpu_power_cap_share": 1.0},
        {**GPU, "steady_ptx_cache_filled_bytes": 0.0, "ptx_cache_filled_bytes": 4096.0},
    ):
        assert describe_interference(watched(**quiet)) == "", quiet


def test_without_what_it_rests_on_nothing_is_said():
    busy_, stolen, every = (name for name in QUIET if name.endswith(("busy_seconds", "steal_seconds")))
    for without, changes, is_disturbed in (
        (["steady_seconds"], {stolen: 9.0, **busy(27.0)}, False),
        (["steady_own_cpus"], {stolen: 9.0, **busy(27.0)}, False),
        # without the machine's books the stolen time still tells, and where that is not told there is none
        ([busy_, every], {}, False),
        ([busy_, every], {stolen: 9.0}, True),
        ([stolen], busy(27.0), True),
        # nor is anything said of the rest of the machine
        ([], {every: 70.0}, True),
        (["steady_all_cpus"], {every: 70.0}, False),
    ):
        assert bool(describe_interference(watched(without, **changes))) is is_disturbed, (without, changes)
    assert describe_interference(launch(cell())) == ""
    assert has_contention_readings(watched())
    assert not has_contention_readings(watched(without=[busy_]))


NOISY = watched(**busy(27.0))


def at(number, attempt=0, launch_=NOISY, **changes):
    return replace(launch_, round=number, attempt=attempt, role=Role.MEASURE if number else Role.PILOT, **changes)


def test_disturbed_rounds_are_named_with_their_attempt_group_and_first_reason():
    stolen = watched(steady_own_cpus_steal_seconds=5.0)
    other = replace(stolen, cell=cell(mode="eager"))
    interference = find_noisy_rounds(
        [at(1, launch_=watched()), at(1, launch_=other), at(1), at(2, launch_=watched()), at(2, attempt=1)]
    )
    group = NOISY.group
    assert interference == {
        (group, 1, 0): f"step tf1.14 fit float32 eager: {describe_interference(stolen)}",
        (group, 2, 1): f"step tf1.14 fit float32 graph: {describe_interference(NOISY)}",
    }
    assert list(find_noisy_rounds([at(1), at(1, group="another")])) == [(NOISY.group, 1, 0), ("another", 1, 0)]
    assert find_noisy_rounds([at(0), broken(cell(), Status.FAILED, 1)]) == {}
    assert find_noisy_rounds([replace(at(1), role=Role.CONTROL)]) != {}


#: Thirty readings of a GPU that nothing else used and nothing slowed down.
GPU = {"gpu_samples": 30.0, "gpu_steady": 1.0, "gpu_foreign_processes": 0.0, "gpu_throttled_share": 0.0}


def test_a_gpu_may_be_slowed_down_in_three_percent_of_its_readings_and_in_one():
    slow = {"gpu_throttled_share": 1.0}
    for changes, is_disturbed in (
        ({"gpu_samples": 30, "gpu_throttled_share": 0.03}, False),
        ({"gpu_samples": 100, "gpu_throttled_share": 0.03}, False),
        ({"gpu_samples": 100, "gpu_throttled_share": 0.04}, True),
        ({"gpu_samples": 3, "gpu_throttled_share": 1 / 3}, False),
        ({"gpu_samples": 3, "gpu_throttled_share": 2 / 3}, True),
        # readings of the whole launch say nothing of how its steps were slowed
        (slow, True),
        ({**slow, "gpu_steady": 0.0}, False),
        ({**slow, "gpu_steady": 0.0, "gpu_foreign_processes": 1.0}, True),
    ):
        assert bool(describe_interference(watched(**{**GPU, **changes}))) is is_disturbed, changes
    # a GPU is judged where the CPUs tell nothing
    assert describe_interference(launch(cell(), resources={**GPU, "gpu_foreign_processes": 1.0})) != ""


TIMES = dict(zip(cells(calls=("fit", "train_on_batch"), modes=["graph"]), [0.01] * 4, strict=True))
BUSY = NOISY.resources


def test_a_disturbed_round_counts_or_its_repetition():
    launches = [*rounds(TIMES, count=2, resources=QUIET)]
    launches[-1] = last = replace(launches[-1], resources=BUSY)
    second_round = [entry for entry in launches if (entry.round, entry.group) == (2, last.group)]
    repeats = [replace(entry, attempt=1, resources=QUIET) for entry in second_round]
    interference = find_interference(run(TIMES), [*launches, *repeats])
    assert (interference.told, interference.rounds, interference.repeated) == (True, 5, 1)
    (disturbed,) = interference.disturbed
    assert (disturbed.group, disturbed.round, disturbed.repeated) == (launches[-1].group, 2, True)
    assert disturbed.reason == f"{launches[-1].cell}: {describe_interference(launches[-1])}"
    interference = find_interference(run(TIMES), [replace(entry, resources=BUSY) for entry in rounds(TIMES, count=2)])
    assert (len(interference.disturbed), interference.rounds, interference.repeated) == (4, 4, 0)
    assert not find_interference(run(TIMES), [launch(cell(), number=0, resources=BUSY)]).disturbed
    # old launches cannot tell
    assert not find_interference(run(TIMES), rounds(TIMES)).told
    assert find_interference(run(TIMES), rounds(TIMES, resources=QUIET)).told


OF, AT = np.repeat(range(4), 5).tolist(), list(range(5)) * 4
NOISE = np.random.default_rng(1).normal(0.0, 0.01, 20)
LOSSES = np.random.default_rng(2).uniform(0.0, 1.0, 20)


def test_what_is_left_of_the_losses_is_unchecked():
    def unchecked(logs, losses):
        return estimate_unchecked_share(OF, AT, np.array(logs).tolist(), np.array(losses).tolist())

    # launches that lose unlike and end alike show that the correction is right
    assert unchecked(NOISE, LOSSES) < 0.03
    for slope in (-0.5, 0.3):
        assert unchecked(NOISE + slope * LOSSES, LOSSES) == pytest.approx(abs(slope), abs=0.03)
    # what no launch checks may all be wrong:
    # all lose alike; each round alike; the times do not follow what was subtracted; two launches
    assert unchecked(NOISE, [0.7] * 20) == unchecked(NOISE, [float(number) for number in AT]) == 1.0
    assert unchecked(NOISE - LOSSES, LOSSES) == 1.0
    assert estimate_unchecked_share([0, 1], [1, 1], [0.1, 0.2], [0.3, 0.4]) == 1.0


def test_contention_is_known_of_the_rounds_that_two_cells_have():
    one, other = cells(modes=["graph"])
    launches = [launch(value, number=number, resources=contended(0.5)) for value in (one, other) for number in (1, 2)]
    launches.append(launch(one, number=3, resources=contended(0.9)))
    interference = find_contention(launches)
    assert interference.bias(one, other) == pytest.approx(compute_possible_error(np.log(2.0), np.log(2.0), 1.0))
    assert interference.bias(one, cell("tf2.1")) == 0.0
    assert find_contention([launch(one, resources=QUIET)]) is None

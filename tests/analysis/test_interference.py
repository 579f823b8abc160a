"""Interference from other processes in launches."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def told(without=(), **changes):
    known = {name: value for name, value in {**QUIET, **changes}.items() if name not in without}
    return launch(cell(), resources=known)


def others_on_its_cpus(seconds):
    return {"steady_own_cpus_busy_seconds": 18.0 + seconds, "steady_all_cpus_busy_seconds": 18.0 + seconds}


def test_a_launch_is_disturbed_beyond_the_limits_alone():
    for changes, is_disturbed in [
        ({}, False),
        # others may take 3 % of its CPUs and the ticks, and so may the hypervisor
        (others_on_its_cpus(0.67), False),
        (others_on_its_cpus(0.69), True),
        (others_on_its_cpus(5.0), True),
        ({"steady_own_cpus_steal_seconds": 0.67}, False),
        ({"steady_own_cpus_steal_seconds": 0.69}, True),
        # of the rest of the machine a quarter of six CPUs for ten seconds, and 0.04 seconds of each
        ({"steady_all_cpus_busy_seconds": 18.0 + 15.2}, False),
        ({"steady_all_cpus_busy_seconds": 18.0 + 15.3}, True),
        # ... but where other slots of the machine are measured on meanwhile
        ({"steady_all_cpus_busy_seconds": 18.0 + 40.0, "slots": 2.0}, False),
        ({**others_on_its_cpus(0.69), "slots": 2.0}, True),
        # a load above all CPUs and those of the launch before
        ({"load_before": 10.0}, False),
        ({"load_before": 10.1}, True),
        # a count of the kernel's that is below the process's own
        ({"steady_own_cpus_busy_seconds": 17.9, "steady_all_cpus_busy_seconds": 17.5}, False),
        # a measurement that took no time
        ({"steady_seconds": 0.0, **others_on_its_cpus(9.0)}, False),
    ]:
        assert bool(describe_interference(told(**changes))) is is_disturbed


def test_in_a_short_measurement_the_ticks_weigh_more():
    short = {"steady_seconds": 0.25, "steady_cpu_seconds": 0.25, "steady_own_cpus": 1, "steady_all_cpus": 1}
    for others, is_disturbed in ((0.04, False), (0.05, True)):
        busy = {"steady_own_cpus_busy_seconds": 0.25 + others, "steady_all_cpus_busy_seconds": 0.25 + others}
        assert bool(describe_interference(told(**short, **busy))) is is_disturbed


def test_of_a_timed_part_in_pieces_the_ticks_weigh_more_too():
    for others, is_disturbed in ((0.95, False), (0.97, True)):
        changes = {**others_on_its_cpus(others), "steady_pieces": 100.0}
        assert bool(describe_interference(told(**changes))) is is_disturbed
    elsewhere = {"steady_all_cpus_busy_seconds": 18.0 + 16.0}
    assert (
        describe_interference(told(**elsewhere)) != "",
        describe_interference(told(**elsewhere, steady_pieces=100.0)),
    ) == (True, "")


def test_what_the_launch_itself_uses_disturbs_nobody_however_idle_it_is():
    idle = {"steady_cpu_seconds": 0.0, "steady_own_cpus_busy_seconds": 0.0, "steady_all_cpus_busy_seconds": 0.0}
    assert describe_interference(told(**idle)) == ""


def test_a_launch_that_has_the_whole_machine_has_no_others_elsewhere():
    own = {"steady_own_cpus": 8, "steady_own_cpus_busy_seconds": 19.0, "steady_all_cpus_busy_seconds": 19.0}
    assert describe_interference(told(**own)) == ""
    assert (
        describe_interference(
            told(**{**own, "steady_own_cpus_busy_seconds": 25.0, "steady_all_cpus_busy_seconds": 25.0})
        )
        != ""
    )


def test_it_is_said_in_a_clause_how_many_cpus_were_lost():
    for changes, clause in [
        ({"steady_own_cpus_steal_seconds": 5.0}, "the hypervisor took 0.50 of the CPUs of the launch"),
        (others_on_its_cpus(15.0), "other processes used 1.50 of the CPUs of the launch"),
        ({"steady_all_cpus_busy_seconds": 48.0}, "other processes used 3.00 of the other CPUs"),
    ]:
        assert describe_interference(told(**changes)) == clause


def test_it_is_said_where_its_time_was_corrected():
    for cpu_seconds, clause in [
        (9.75, ""),
        (8.0, "other processes used 0.20 of the CPUs of the launch (subtracted from its time)"),
    ]:
        one = {"steady_own_cpus": 1.0, "steady_own_cpus_busy_seconds": 10.0, "steady_all_cpus_busy_seconds": 10.0}
        assert describe_interference(told(**one, steady_cpu_seconds=cpu_seconds)) == clause


def test_without_what_it_rests_on_nothing_is_said():
    for name in ["steady_seconds", "steady_cpu_seconds", "steady_own_cpus"]:
        assert (
            describe_interference(told(without=[name], steady_own_cpus_steal_seconds=9.0, **others_on_its_cpus(9.0)))
            == ""
        )
        assert describe_interference(launch(cell())) == "", name


def test_without_the_machines_books_the_stolen_time_still_tells():
    books = ["steady_own_cpus_busy_seconds", "steady_all_cpus_busy_seconds"]
    assert describe_interference(told(without=books)) == ""
    assert describe_interference(told(without=books, steady_own_cpus_steal_seconds=9.0)) != ""


def test_where_stolen_time_is_not_told_there_is_none():
    assert describe_interference(told(without=["steady_own_cpus_steal_seconds"])) == ""
    assert describe_interference(told(without=["steady_own_cpus_steal_seconds"], **others_on_its_cpus(9.0))) != ""


def test_without_the_rest_of_the_machine_nothing_is_said_of_it():
    for name in ["steady_all_cpus", "steady_all_cpus_busy_seconds"]:
        assert describe_interference(told(steady_all_cpus_busy_seconds=70.0)) != "", name
        assert describe_interference(told(without=[name], steady_all_cpus_busy_seconds=70.0)) == ""


def test_the_times_are_not_looked_at():
    wild = replace(told(), samples=launch(cell(), [0.001, 9.0, 0.001, 70.0]).samples)
    assert describe_interference(wild) == ""


NOISY = told(**others_on_its_cpus(9.0))


def at(number, attempt=0, of=NOISY, **changes):
    return replace(of, round=number, attempt=attempt, role=Role.MEASURE if number else Role.PILOT, **changes)


def test_rounds_with_a_disturbed_launch_are_named_with_their_attempt_and_its_first_reason():
    stolen = told(steady_own_cpus_steal_seconds=5.0)
    other = replace(stolen, cell=cell(mode="eager"))
    found = find_noisy_rounds([at(1, of=told()), at(1, of=other), at(1), at(2, of=told()), at(2, attempt=1)])
    group = NOISY.group
    assert found == {
        (group, 1, 0): "step tf1.14 fit float32 eager: the hypervisor took 0.50 of the CPUs of the launch",
        (group, 2, 1): "step tf1.14 fit float32 graph: other processes used 0.90 of the CPUs of the launch",
    }


def test_groups_are_told_apart():
    assert list(find_noisy_rounds([at(1), at(1, group="another")])) == [(NOISY.group, 1, 0), ("another", 1, 0)]


def test_a_disturbed_pilot_is_no_disturbed_round_and_a_disturbed_control_is():
    assert find_noisy_rounds([at(0)]) == {}
    assert find_noisy_rounds([replace(at(1), role=Role.CONTROL)]) != {}


def test_launches_that_broke_before_they_measured_say_nothing():
    assert find_noisy_rounds([broken(cell(), Status.FAILED, 1)]) == {}


def test_a_launch_that_saw_the_busy_time_of_its_cpus_is_watched():
    assert has_contention_readings(told())
    assert not has_contention_readings(told(without=["steady_own_cpus_busy_seconds"]))


#: Thirty readings of a GPU that nothing else used and nothing slowed down.
GPU = {"gpu_samples": 30.0, "gpu_steady": 1.0, "gpu_foreign_processes": 0.0, "gpu_throttled_share": 0.0}


def test_a_gpu_that_others_had_or_that_was_slowed_down_disturbs():
    for changes, clause in [
        ({}, ""),
        ({"gpu_foreign_processes": 1.0}, "another process used the GPU of the launch"),
        ({"gpu_foreign_processes": 3.0}, "3 other processes used the GPU of the launch"),
        (
            {"gpu_throttled_share": 0.1, "gpu_hw_thermal_share": 0.1},
            "heat reduced the clock speed of the launch's GPU in 10 % of the readings",
        ),
        (
            {"gpu_throttled_share": 0.5, "gpu_power_brake_share": 0.5, "gpu_hw_slowdown_share": 0.5},
            "the power supply reduced the clock speed of the launch's GPU in 50 % of the readings",
        ),
        (
            {"gpu_throttled_share": 1.0, "gpu_hw_slowdown_share": 1.0},
            "the hardware reduced the clock speed of the launch's GPU in 100 % of the readings",
        ),
        ({"gpu_power_cap_share": 1.0}, ""),
        ({"gpu_lost": 1.0}, "the driver lost the GPU of the launch"),
        ({"steady_ptx_cache_filled_bytes": 4096.0}, "the driver compiled GPU code during the measurement"),
        ({"steady_ptx_cache_filled_bytes": 0.0, "ptx_cache_filled_bytes": 4096.0}, ""),
    ]:
        assert describe_interference(told(**{**GPU, **changes})) == clause


def test_a_gpu_may_be_slowed_down_in_three_percent_of_its_readings_and_in_one():
    for readings, share, is_disturbed in [
        (30, 0.03, False),
        (100, 0.03, False),
        (100, 0.04, True),
        (3, 1 / 3, False),
        (3, 2 / 3, True),
    ]:
        slowed = told(**{**GPU, "gpu_samples": readings, "gpu_throttled_share": share})
        assert bool(describe_interference(slowed)) is is_disturbed, (readings, share, is_disturbed)


def test_readings_of_the_whole_launch_say_nothing_of_how_its_steps_were_slowed():
    slow = {**GPU, "gpu_throttled_share": 1.0}
    assert describe_interference(told(**slow)) != ""
    assert describe_interference(told(**{**slow, "gpu_steady": 0.0})) == ""
    assert describe_interference(told(**{**slow, "gpu_steady": 0.0, "gpu_foreign_processes": 1.0})) != ""


def test_a_gpu_is_judged_where_the_cpus_tell_nothing():
    assert describe_interference(launch(cell(), resources={**GPU, "gpu_foreign_processes": 1.0})) != ""


TIMES = dict(zip(cells(calls=("fit", "train_on_batch"), modes=["graph"]), [0.01] * 4, strict=True))
BUSY = NOISY.resources


def test_a_disturbed_round_whose_repetition_counts():
    launches = [*rounds(TIMES, count=2, resources=QUIET)]
    launches[-1] = replace(launches[-1], resources=BUSY)
    again = [replace(entry, attempt=1, resources=QUIET) for entry in launches if entry.round == 2]
    found = find_interference(run(TIMES), [*launches, *(entry for entry in again if entry.group == launches[-1].group)])
    assert (found.told, found.rounds, found.repeated) == (True, 5, 1)
    (each,) = found.disturbed
    assert (each.group, each.round, each.repeated) == (launches[-1].group, 2, True)
    assert each.reason == f"{launches[-1].cell}: other processes used 0.90 of the CPUs of the launch"


def test_a_disturbed_round_that_counts():
    launches = [replace(entry, resources=BUSY) for entry in rounds(TIMES, count=2)]
    found = find_interference(run(TIMES), launches)
    assert (len(found.disturbed), found.rounds, found.repeated) == (4, 4, 0)


def test_a_disturbed_pilot_disturbs_nothing():
    assert not find_interference(run(TIMES), [launch(cell(), number=0, resources=BUSY)]).disturbed


def test_old_launches_cannot_tell():
    assert not find_interference(run(TIMES), rounds(TIMES)).told
    assert find_interference(run(TIMES), rounds(TIMES, resources=QUIET)).told


OF, AT = np.repeat(range(4), 5).tolist(), list(range(5)) * 4
NOISE = np.random.default_rng(1).normal(0.0, 0.01, 20)
LOSSES = np.random.default_rng(2).uniform(0.0, 1.0, 20)


def test_launches_that_lose_unlike_and_end_alike_show_that_the_correction_is_right():
    assert estimate_unchecked_share(OF, AT, NOISE.tolist(), LOSSES.tolist()) < 0.03


def test_what_is_left_of_the_losses_is_unchecked():
    for slope in [-0.5, 0.3]:
        found = estimate_unchecked_share(OF, AT, (NOISE + slope * LOSSES).tolist(), LOSSES.tolist())
        assert found == pytest.approx(abs(slope), abs=0.03)


def test_what_no_launch_checks_may_all_be_wrong():
    # all lose alike; each round alike; the times do not follow what was subtracted; two launches
    assert estimate_unchecked_share(OF, AT, NOISE.tolist(), [0.7] * 20) == 1.0
    assert estimate_unchecked_share(OF, AT, NOISE.tolist(), [float(entry) for entry in AT]) == 1.0
    assert estimate_unchecked_share(OF, AT, (NOISE - LOSSES).tolist(), LOSSES.tolist()) == 1.0
    assert estimate_unchecked_share([0, 1], [1, 1], [0.1, 0.2], [0.3, 0.4]) == 1.0


@given(st.floats(0.0, 3.0), st.floats(0.0, 3.0), st.floats(0.0, 1.0))
def test_the_possible_error_is_that_of_either_side_and_grows_with_what_was_lost(one, other, share):
    error = compute_possible_error(one, other, share)
    assert error == pytest.approx(compute_possible_error(other, one, share))
    assert error >= compute_possible_error(one, other, 0.0) >= 0.0
    assert compute_possible_error(one, one, share) == pytest.approx(compute_possible_error(one, one, 0.0))


def test_contention_is_known_of_the_rounds_that_two_cells_have():
    one, other = cells(modes=["graph"])
    made = [launch(value, number=number, resources=contended(0.5)) for value in (one, other) for number in (1, 2)]
    made.append(launch(one, number=3, resources=contended(0.9)))
    found = find_contention(made)
    assert found.bias(one, other) == pytest.approx(compute_possible_error(np.log(2.0), np.log(2.0), 1.0))
    assert found.bias(one, cell("tf2.1")) == 0.0
    assert find_contention([launch(one, resources=QUIET)]) is None

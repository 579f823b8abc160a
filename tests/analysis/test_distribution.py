"""The shape of a cell's times, what its launches went through and used."""

import math
import statistics

import pytest

from harness.analysis.distribution import (
    FEWEST_LAUNCHES,
    RESOURCES,
    Share,
    Spread,
    Used,
    describe_distribution,
    find_outliers,
    is_uneven,
    summarize_resources,
    summarize_spread,
)
from harness.model.launch import Sample
from tests.factories import cell, launch

STEADY, JUMPING = [0.010, 0.0101, 0.0099], [0.007, 0.007, 0.007, 0.022, 0.022]

WITHIN, BETWEEN = "within launches", "between launches"


def test_uneven_launches_and_outliers_are_counted_and_stay_in_the_mean():
    for rates, expected in ((STEADY, False), (JUMPING, True), ([0.01], False), ([], False)):
        assert is_uneven(launch(cell(), rates), rates) is expected
    launches = [launch(cell(), STEADY) for _ in range(5)] + [launch(cell(), JUMPING)]
    distribution = describe_distribution(launches)
    assert (distribution.uneven, distribution.outliers) == (Share(1, 6), Share(1, 6))
    assert distribution.statistics["mean"] == pytest.approx(statistics.geometric_mean(entry.mean for entry in launches))


def test_an_outlier_by_iglewicz_and_hoaglin():
    for logs, outlying in (
        # the median is 0 and that of the deviations 0.01: 0.6745 · x / 0.01 is above 3.5 from 0.0519 on
        ([-0.01, 0.0, 0.0, 0.01, 0.02, -0.02, 0.053], [6]),
        ([-0.01, 0.0, 0.0, 0.01, 0.02, -0.02, 0.051], []),
        # it may be the quick one
        ([-0.5, 0.0, 0.01, -0.01, 0.02], [0]),
        # among launches that scatter far there is none near
        ([-0.2, 0.1, 0.0, -0.1, 0.2, 0.4], []),
        # among launches that agree one must lie five percent apart
        ([0.0] * 5 + [math.log(1.049)], []),
        ([0.0] * 5 + [math.log(1.051)], [5]),
        # fewer than five have none
        *(([0.0, 0.0, 0.0, 9.0][:count], []) for count in range(FEWEST_LAUNCHES)),
    ):
        flags = find_outliers(logs)
        assert [index for index, is_outlier in enumerate(flags) if is_outlier] == outlying, logs
        assert len(flags) == len(logs)


def test_the_number_is_the_geometric_mean_of_the_centres_and_the_others_are_over_all_samples():
    distribution = describe_distribution([launch(cell(), [0.008, 0.01, 0.012]), launch(cell(), [0.03, 0.04, 0.05])])
    times = {"mean": 0.02, "median": 0.021, "p10": 0.009, "p90": 0.045}
    assert {name: distribution.statistics[name] for name in times} == pytest.approx(times)


def test_within_a_launch_and_between_launches():
    deviation = statistics.stdev([0.009, 0.011]) / 0.01
    steady = statistics.stdev(STEADY) / statistics.mean(STEADY)
    for rates, within, between in (
        ([[0.009, 0.011], [0.018, 0.022], [0.04, 0.04]], deviation, math.log(2.0)),
        # one launch tells nothing of what lies between launches, and one sample nothing of what lies within
        ([STEADY], steady, None),
        ([[0.01], [0.02]], None, math.log(2.0) / math.sqrt(2.0)),
        ([STEADY, [statistics.mean(STEADY)]], steady, 0.0),
    ):
        distribution = describe_distribution([launch(cell(), rate) for rate in rates]).statistics
        assert (distribution[WITHIN], distribution[BETWEEN]) == (
            within if within is None else pytest.approx(within),
            between if between is None else pytest.approx(between, abs=1e-9),
        ), rates
    # samples count by their time a step, however many steps they hold
    distribution = describe_distribution([launch(cell(), samples=[Sample(0.1, 10), Sample(0.02, 1), Sample(3.0, 100)])])
    assert distribution.statistics["median"] == pytest.approx(0.02)


CORES, CPU, MEMORY, FAULTS, PEAK, TAKEN, ENERGY, CLOCK, LOWEST, CAPPED = (resource.name for resource in RESOURCES)


def through(**phases):
    return launch(cell(), phases={name.replace("_", " "): seconds for name, seconds in phases.items()})


def using(**resources):
    return launch(cell(), resources=resources)


def test_a_phase_has_its_spread_over_the_launches_that_went_through_it():
    usage = summarize_resources([through(build=1.0), through(build=2.0), through(build=6.0), through(device=1.0)])
    assert usage.phases["build"] == Spread(2.0, pytest.approx(1.2), pytest.approx(5.2), 3)
    assert usage.phases["device"] == Spread(1.0, 1.0, 1.0, 1)
    # the cold start is summed launch by launch: the medians of the parts are 2 and 2
    usage = summarize_resources(
        [through(build=1.0, device=2.0), through(build=2.0, device=9.0), through(build=3.0, device=1.0)]
    )
    assert usage.cold == Spread(4.0, pytest.approx(3.2), pytest.approx(9.6), 3)


def test_resources_have_their_spread_over_the_launches_that_tell_them():
    def used(name, *launches):
        return summarize_resources(launches).resources.get(name)

    # cores are CPU seconds over seconds of the steady state alone
    all_told = using(steady_cpu_seconds=3.0, steady_seconds=2.0, cpu_seconds=50.0, wall_seconds=60.0)
    cores = used(CORES, all_told, using(steady_cpu_seconds=1.0, steady_seconds=2.0))
    assert (cores.median, cores.launches) == (pytest.approx(1.0), 2)
    assert used(CORES, using(steady_cpu_seconds=0.0, steady_seconds=2.0)).median == 0.0
    nothing = {"steady_seconds": 0.0, "steady_cpu_seconds": 0.0}
    for resources in ({}, {"steady_seconds": 1.0}, {"steady_cpu_seconds": 1.0}, nothing):
        assert used(CORES, using(**resources)) is None
    launches = using(cpu_seconds=2.0, max_rss_bytes=100), using(cpu_seconds=4.0), using()
    assert used(CPU, *launches) == Spread(3.0, pytest.approx(2.2), pytest.approx(3.8), 2)
    assert used(MEMORY, *launches) == Spread(100, 100, 100, 1)
    memory = using(gpu_peak_bytes=2**30, gpu_memory_used_bytes=38 * 2**30)
    assert [used(name, memory).median for name in (PEAK, TAKEN)] == [2**30, 38 * 2**30]


def test_energy_and_page_faults_are_those_of_a_step_and_clocks_those_of_the_steady_state():
    # of 10 steps each
    samples = [0.01, 0.01]
    timed = {"gpu_energy_joules": 60.0, "steady_minor_faults": 60.0}
    launches = [launch(cell(), samples, resources=resources) for resources in (timed, {"steady_minor_faults": 0.0})]
    usage = summarize_resources(launches).resources
    assert usage[ENERGY].median == pytest.approx(3.0)
    assert usage[FAULTS] == Spread(1.5, pytest.approx(0.3), pytest.approx(2.7), 2)
    assert not {ENERGY, FAULTS} & set(summarize_resources([launch(cell(), (), resources=timed)]).resources)
    clocks = {"gpu_sm_clock_mhz": 1800.0, "gpu_sm_clock_least_mhz": 1700.0, "gpu_throttled_share": 0.0}
    usage = summarize_resources([using(gpu_steady=1.0, **clocks)]).resources
    assert [usage[name].median for name in (CLOCK, LOWEST, CAPPED)] == [1800, 1700, 0]
    capped = summarize_resources([using(gpu_steady=1.0, gpu_power_cap_share=0.5, **clocks)]).resources[CAPPED]
    assert capped.median == 0.5
    assert summarize_resources([using(gpu_steady=0.0, **clocks)]).resources == {}


def test_what_no_launch_told_is_not_there():
    nothing = Used(phases={}, cold=None, warm_up=None, resources={})
    assert summarize_resources([launch(cell())]) == summarize_resources([]) == nothing
    assert summarize_spread([]) is None
    assert summarize_spread([3.0, 1.0, 2.0]) == Spread(2.0, pytest.approx(1.2), pytest.approx(2.8), 3)

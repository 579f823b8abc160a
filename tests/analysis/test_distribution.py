"""The shape of a cell's times, what its launches went through and used."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.distribution import (
    FEWEST_LAUNCHES,
    RESOURCES,
    STATISTICS,
    Share,
    Spread,
    Used,
    describe_distribution,
    find_outliers,
    is_uneven,
    quantile,
    summarize_resources,
    summarize_spread,
)
from harness.model.launch import Sample
from tests.factories import cell, launch

STEADY, JUMPING = [0.010, 0.0101, 0.0099], [0.007, 0.007, 0.007, 0.022, 0.022]

WITHIN, BETWEEN = "within launches", "between launches"

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def test_mean_and_median_part_where_a_launch_is_uneven():
    for rates, expected in [(STEADY, False), (JUMPING, True), ([0.01], False), ([], False)]:
        assert is_uneven(launch(cell(), rates), rates) is expected


def test_the_share_of_a_cells_launches():
    assert describe_distribution([launch(cell(), STEADY), launch(cell(), JUMPING)]).uneven == Share(1, 2)


def test_an_outlier_by_iglewicz_and_hoaglin():
    for logs, outlying in [
        # the median is 0 and that of the deviations 0.01: 0.6745 · x / 0.01 is above 3.5 from 0.0519 on
        ([-0.01, 0.0, 0.0, 0.01, 0.02, -0.02, 0.053], [False] * 6 + [True]),
        ([-0.01, 0.0, 0.0, 0.01, 0.02, -0.02, 0.051], [False] * 7),
        # it may be the quick one
        ([-0.5, 0.0, 0.01, -0.01, 0.02], [True] + [False] * 4),
        # among launches that scatter far there is none near
        ([-0.2, 0.1, 0.0, -0.1, 0.2, 0.4], [False] * 6),
    ]:
        assert find_outliers(logs) == outlying


@given(st.lists(st.integers(-50, 50), max_size=12), st.integers(-500, 500))
def test_outliers_are_told_by_their_distance_from_the_others_alone(values, by):
    moved = find_outliers([(value + by) / 64.0 for value in values])
    assert moved == find_outliers([value / 64.0 for value in values])


def test_among_launches_that_agree_one_must_lie_five_percent_apart():
    for apart, outlying in [(0.004, False), (math.log(1.049), False), (math.log(1.051), True)]:
        assert find_outliers([0.0] * 5 + [apart])[-1] is outlying
        assert find_outliers([0.0, 0.0001, -0.0001, 0.0, 0.0001, -apart])[-1] is outlying


def test_fewer_than_five_launches_have_no_outliers():
    for count in range(FEWEST_LAUNCHES):
        assert find_outliers([0.0, 0.0, 0.0, 9.0][:count]) == [False] * count


@given(numbers, st.floats(0.0, 1.0))
def test_quantiles_are_numpys(values, share):
    assert quantile(sorted(values), share) == pytest.approx(np.quantile(values, share), rel=1e-9, abs=1e-6)


def test_the_number_is_the_geometric_mean_of_the_centres_and_the_others_are_over_all_samples():
    found = describe_distribution([launch(cell(), [0.008, 0.01, 0.012]), launch(cell(), [0.03, 0.04, 0.05])])
    assert found.statistics["mean"] == pytest.approx(0.02)
    assert found.statistics["median"] == pytest.approx(0.021)
    assert (found.statistics["p10"], found.statistics["p90"]) == (pytest.approx(0.009), pytest.approx(0.045))


def test_within_a_launch_and_between_launches():
    found = describe_distribution(
        [launch(cell(), [0.009, 0.011]), launch(cell(), [0.018, 0.022]), launch(cell(), [0.04, 0.04])]
    )
    deviation = statistics.stdev([0.009, 0.011]) / 0.01
    assert found.statistics[WITHIN] == pytest.approx(deviation)
    assert found.statistics[BETWEEN] == pytest.approx(math.log(2.0))


def test_launches_that_agree_can_scatter_within_and_steady_ones_can_differ():
    restless = describe_distribution([launch(cell(), [0.008, 0.012])] * 3).statistics
    assert restless[BETWEEN] == pytest.approx(0.0)
    assert restless[WITHIN] > 0.2
    differing = describe_distribution([launch(cell(), [rate] * 3) for rate in (0.01, 0.02)]).statistics
    assert differing[WITHIN] == pytest.approx(0.0)
    assert differing[BETWEEN] > 0.4


def test_one_launch_tells_nothing_of_what_lies_between_launches_and_one_sample_nothing_of_what_lies_within():
    assert describe_distribution([launch(cell(), STEADY)]).statistics[BETWEEN] is None
    assert describe_distribution([launch(cell(), [0.01]), launch(cell(), [0.02])]).statistics[WITHIN] is None


def test_a_launch_with_one_sample_leaves_what_lies_within_to_the_others():
    alone = describe_distribution([launch(cell(), STEADY)])
    assert (
        describe_distribution([launch(cell(), STEADY), launch(cell(), [0.01])]).statistics[WITHIN]
        == alone.statistics[WITHIN]
    )


def test_uneven_launches_and_outliers_are_counted_and_stay_in_the_mean():
    launches = [launch(cell(), STEADY) for _ in range(5)] + [launch(cell(), JUMPING)]
    found = describe_distribution(launches)
    assert (found.uneven, found.outliers) == (Share(1, 6), Share(1, 6))
    assert found.statistics["mean"] == pytest.approx(statistics.geometric_mean(entry.mean for entry in launches))


def test_samples_count_by_their_time_a_step_however_many_steps_they_hold():
    found = describe_distribution([launch(cell(), samples=[Sample(0.1, 10), Sample(0.02, 1), Sample(3.0, 100)])])
    assert found.statistics["median"] == pytest.approx(0.02)


@given(st.lists(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=6), min_size=1, max_size=6), st.floats(0.1, 10.0))
def test_a_unit_scales_the_times_and_no_share(rates, unit):
    before = describe_distribution([launch(cell(), rate) for rate in rates])
    after = describe_distribution([launch(cell(), [rate * unit for rate in entry]) for entry in rates])
    times = [[value.statistics[name] for name in ("mean", "median", "p10", "p90")] for value in (before, after)]
    assert times[1] == pytest.approx([unit * time for time in times[0]])
    assert after.statistics[WITHIN] == pytest.approx(before.statistics[WITHIN], abs=1e-9)
    assert after.statistics[BETWEEN] == pytest.approx(before.statistics[BETWEEN], abs=1e-9)
    assert before.statistics["p10"] <= before.statistics["median"] <= before.statistics["p90"]


def test_every_statistic_has_a_name_of_its_own_and_a_number_of_a_launch_with_samples():
    found = describe_distribution([launch(cell(), STEADY)] * 2)
    assert list(found.statistics) == [statistic.name for statistic in STATISTICS]
    assert None not in found.statistics.values()
    assert found.statistics["launches"] == 2


CORES, CPU, MEMORY, FAULTS, PEAK, TAKEN, ENERGY, CLOCK, LOWEST, CAPPED = (resource.name for resource in RESOURCES)


def through(**phases):
    return launch(cell(), phases={name.replace("_", " "): seconds for name, seconds in phases.items()})


def using(**resources):
    return launch(cell(), resources=resources)


def test_phases_come_in_the_order_of_a_launch_and_unknown_ones_after_them_as_they_were_met():
    found = summarize_resources(
        [through(data=1, first_call=2, build=3), through(tokenizer=1, device=3, container_start=1, data=2)]
    )
    assert list(found.phases) == ["container start", "device", "build", "first call", "data", "tokenizer"]


def test_the_timed_parts_are_left_out():
    found = summarize_resources([through(build=1.0, warm_up=5.0, steady_state=9.0)])
    assert list(found.phases) == ["build"]
    assert found.cold.median == pytest.approx(1.0)


def test_a_phase_has_its_spread_over_the_launches_that_went_through_it():
    found = summarize_resources([through(build=1.0), through(build=2.0), through(build=6.0), through(device=1.0)])
    assert found.phases["build"] == Spread(2.0, pytest.approx(1.2), pytest.approx(5.2), 3)
    assert found.phases["device"] == Spread(1.0, 1.0, 1.0, 1)


def test_the_cold_start_is_summed_launch_by_launch():
    # the medians of the parts are 2 and 2
    found = summarize_resources(
        [through(build=1.0, device=2.0), through(build=2.0, device=9.0), through(build=3.0, device=1.0)]
    )
    assert found.cold == Spread(4.0, pytest.approx(3.2), pytest.approx(9.6), 3)


def test_cores_are_cpu_seconds_over_seconds_of_the_steady_state_alone():
    found = summarize_resources(
        [
            using(steady_cpu_seconds=3.0, steady_seconds=2.0, cpu_seconds=50.0, wall_seconds=60.0),
            using(steady_cpu_seconds=1.0, steady_seconds=2.0),
        ]
    )
    assert found.resources[CORES].median == pytest.approx(1.0)
    assert (found.resources[CORES].launches, found.resources[CPU].launches) == (2, 1)


def test_what_cannot_be_divided_has_no_cores():
    for told in [
        {},
        {"steady_seconds": 1.0},
        {"steady_cpu_seconds": 1.0},
        {"steady_seconds": 0.0, "steady_cpu_seconds": 0.0},
    ]:
        assert CORES not in summarize_resources([using(**told)]).resources


def test_a_process_that_slept_used_no_core():
    assert summarize_resources([using(steady_cpu_seconds=0.0, steady_seconds=2.0)]).resources[CORES].median == 0.0


def test_cpu_seconds_and_memory_of_the_whole_launch():
    found = summarize_resources([using(cpu_seconds=2.0, max_rss_bytes=100), using(cpu_seconds=4.0), using()])
    assert found.resources[CPU] == Spread(3.0, pytest.approx(2.2), pytest.approx(3.8), 2)
    assert found.resources[MEMORY] == Spread(100, 100, 100, 1)


def test_the_energy_of_a_gpu_is_shared_by_the_steps_that_were_timed():
    one = launch(cell(), [0.01, 0.01], resources={"gpu_energy_joules": 60.0})  # of 10 steps each
    assert summarize_resources([one]).resources[ENERGY].median == pytest.approx(3.0)
    assert ENERGY not in summarize_resources([launch(cell(), (), resources={"gpu_energy_joules": 60.0})]).resources


def test_page_faults_are_those_of_a_step():
    one = launch(cell(), [0.01, 0.01], resources={"steady_minor_faults": 60.0})  # of 10 steps each
    other = launch(cell(), [0.01, 0.01], resources={"steady_minor_faults": 0.0})
    assert summarize_resources([one, other]).resources[FAULTS] == Spread(1.5, pytest.approx(0.3), pytest.approx(2.7), 2)
    assert FAULTS not in summarize_resources([launch(cell(), (), resources={"steady_minor_faults": 60.0})]).resources


def test_clocks_of_a_gpu_are_those_of_the_steady_state():
    told = {"gpu_sm_clock_mhz": 1800.0, "gpu_sm_clock_least_mhz": 1700.0, "gpu_throttled_share": 0.0}
    found = summarize_resources([using(gpu_steady=1.0, **told)]).resources
    assert {name: found[name].median for name in (CLOCK, LOWEST, CAPPED)} == {CLOCK: 1800, LOWEST: 1700, CAPPED: 0}
    assert summarize_resources([using(gpu_steady=1.0, gpu_power_cap_share=0.5, **told)]).resources[CAPPED].median == 0.5
    assert summarize_resources([using(gpu_steady=0.0, **told)]).resources == {}


def test_memory_on_a_gpu_is_what_tensors_took_and_what_was_taken():
    found = summarize_resources([using(gpu_peak_bytes=2**30, gpu_memory_used_bytes=38 * 2**30)])
    assert found.resources[PEAK].median == 2**30
    assert found.resources[TAKEN].median == 38 * 2**30


def test_what_no_launch_told_is_not_there():
    assert summarize_resources([launch(cell())]) == Used(phases={}, cold=None, warm_up=None, resources={})
    assert summarize_resources([]) == summarize_resources([launch(cell())])


def test_no_values_have_no_spread():
    assert summarize_spread([]) is None
    assert summarize_spread([3.0, 1.0, 2.0]) == Spread(2.0, pytest.approx(1.2), pytest.approx(2.8), 3)

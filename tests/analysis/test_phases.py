"""What a cell's launches went through and used."""

import pytest

from harness.analysis.shape import RESOURCES, Spread, Used, spread, used
from tests.factories import cell, launch

CORES, CPU, MEMORY = (each.name for each in RESOURCES)


def through(**phases):
    return launch(cell(), phases={name.replace("_", " "): seconds for name, seconds in phases.items()})


def using(**resources):
    return launch(cell(), resources=resources)


def test_phases_come_in_the_order_of_a_launch_and_unknown_ones_after_them_as_they_were_met():
    found = used([through(data=1, first_call=2, build=3), through(tokenizer=1, device=3, container_start=1, data=2)])
    assert list(found.phases) == ["container start", "device", "build", "first call", "data", "tokenizer"]


def test_the_timed_parts_are_left_out():
    found = used([through(build=1.0, warm_up=5.0, steady_state=9.0)])
    assert list(found.phases) == ["build"]
    assert found.cold.median == pytest.approx(1.0)


def test_a_phase_has_its_spread_over_the_launches_that_went_through_it():
    found = used([through(build=1.0), through(build=2.0), through(build=6.0), through(device=1.0)])
    assert found.phases["build"] == Spread(2.0, pytest.approx(1.2), pytest.approx(5.2), 3)
    assert found.phases["device"] == Spread(1.0, 1.0, 1.0, 1)


def test_the_cold_start_is_summed_launch_by_launch():
    # the medians of the parts are 2 and 2
    found = used([through(build=1.0, device=2.0), through(build=2.0, device=9.0), through(build=3.0, device=1.0)])
    assert found.cold == Spread(4.0, pytest.approx(3.2), pytest.approx(9.6), 3)


def test_cores_are_cpu_seconds_over_seconds_of_the_steady_state_alone():
    found = used(
        [
            using(steady_cpu_seconds=3.0, steady_seconds=2.0, cpu_seconds=50.0, wall_seconds=60.0),
            using(steady_cpu_seconds=1.0, steady_seconds=2.0),
        ]
    )
    assert found.resources[CORES].median == pytest.approx(1.0)
    assert (found.resources[CORES].launches, found.resources[CPU].launches) == (2, 1)


@pytest.mark.parametrize(
    "told",
    [{}, {"steady_seconds": 1.0}, {"steady_cpu_seconds": 1.0}, {"steady_seconds": 0.0, "steady_cpu_seconds": 0.0}],
)
def test_what_cannot_be_divided_has_no_cores(told):
    assert CORES not in used([using(**told)]).resources


def test_a_process_that_slept_used_no_core():
    assert used([using(steady_cpu_seconds=0.0, steady_seconds=2.0)]).resources[CORES].median == 0.0


def test_cpu_seconds_and_memory_of_the_whole_launch():
    found = used([using(cpu_seconds=2.0, max_rss_bytes=100), using(cpu_seconds=4.0), using()])
    assert found.resources[CPU] == Spread(3.0, pytest.approx(2.2), pytest.approx(3.8), 2)
    assert found.resources[MEMORY] == Spread(100, 100, 100, 1)


def test_what_no_launch_told_is_not_there():
    assert used([launch(cell())]) == Used(phases={}, cold=None, resources={})
    assert used([]) == used([launch(cell())])


def test_no_values_have_no_spread():
    assert spread([]) is None
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, pytest.approx(1.2), pytest.approx(2.8), 3)

"""From readings of GPUs to a launch's numbers."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.gpu.readings import Instant, Reading, numbers, read
from tests.machine.gpu.library import H100, K80, Library

WINDOW = (10.0, 20.0)


@pytest.fixture
def opened() -> Library:
    library = Library([K80, H100])
    library.nvmlInit()
    return library


def test_a_reading_has_the_units_that_it_says(opened: Library) -> None:
    assert read(opened, H100) == Reading(60, 20, 3 * 2**30, 1980, 2619, 40, 400.0, 0)


def test_what_an_old_card_does_not_tell_is_unknown_and_not_zero(opened: Library) -> None:
    old = read(opened, K80)
    assert old.reasons is None
    assert old.power == 120.5
    found = numbers([Instant(0, [old])], None)
    assert "gpu_throttled_share" not in found
    assert numbers([Instant(0, [Reading()])], None) == {"gpu_samples": 1, "gpu_steady": 0}


def test_the_numbers_are_of_the_steady_state() -> None:
    loading = Instant(5.0, [Reading(utilization=0, sm_clock=300, power=50, memory_used=9)])
    steps = [
        Instant(time, [Reading(utilization=use, sm_clock=clock, power=watts, temperature=60 + use / 10, memory_used=7)])
        for time, use, clock, watts in ((10.0, 80, 1900, 300), (15.0, 90, 1700, 320), (20.0, 100, 1800, 310))
    ]
    found = numbers([loading, *steps, Instant(20.1, [Reading(utilization=0)])], WINDOW)
    assert found == {
        "gpu_samples": 3,
        "gpu_steady": 1,
        "gpu_utilization_percent": 90,
        "gpu_memory_used_bytes": 7,
        "gpu_sm_clock_mhz": 1800,
        "gpu_sm_clock_least_mhz": 1700,
        "gpu_temperature_celsius": 70,
        "gpu_power_watts": 310,
        "gpu_power_most_watts": 320,
    }


@pytest.mark.parametrize("window", [None, (30.0, 31.0)])
def test_without_a_steady_state_they_are_of_the_whole_launch(window: tuple[float, float] | None) -> None:
    found = numbers([Instant(time, [Reading(utilization=time)]) for time in (1.0, 3.0)], window)
    assert found == {"gpu_samples": 2, "gpu_steady": 0, "gpu_utilization_percent": 2}


def test_without_a_reading_there_is_nothing() -> None:
    assert numbers([], WINDOW) == {}


def test_memory_and_power_of_several_cards_are_summed_and_the_hottest_counts() -> None:
    both = [
        Reading(50, power=100, memory_used=1, temperature=50),
        Reading(100, power=200, memory_used=2, temperature=70),
    ]
    found = numbers([Instant(11, both)], WINDOW)
    assert found["gpu_utilization_percent"] == 75
    assert found["gpu_power_watts"] == 300
    assert found["gpu_memory_used_bytes"] == 3
    assert found["gpu_temperature_celsius"] == 70


@pytest.mark.parametrize(
    ("bits", "found"),
    [
        # idle, clocks set by an application, kept pace with another, set by a display
        (0x1 | 0x2 | 0x10 | 0x100, {"gpu_throttled_share": 0}),
        (0x4, {"gpu_throttled_share": 0, "gpu_power_cap_share": 0.5}),
        (0x20, {"gpu_throttled_share": 0.5, "gpu_sw_thermal_share": 0.5}),
        (0x8 | 0x40, {"gpu_throttled_share": 0.5, "gpu_hw_slowdown_share": 0.5, "gpu_hw_thermal_share": 0.5}),
        (0x8 | 0x80, {"gpu_throttled_share": 0.5, "gpu_hw_slowdown_share": 0.5, "gpu_power_brake_share": 0.5}),
    ],
)
def test_heat_and_supply_throttle_and_idling_does_not(bits: int, found: dict[str, float]) -> None:
    instants = [Instant(11, [Reading(reasons=0)]), Instant(12, [Reading(reasons=0), Reading(reasons=bits)])]
    told = numbers(instants, WINDOW)
    assert {name: value for name, value in told.items() if name.endswith("_share")} == found


NUMBER = st.none() | st.integers(0, 2**40)
READING = st.builds(Reading, **{field.name: NUMBER for field in fields(Reading)})


@given(st.lists(st.builds(Instant, st.floats(0, 30), st.lists(READING, max_size=3)), max_size=8))
def test_whatever_is_read_makes_numbers_that_can_be_stored(instants: list[Instant]) -> None:
    found = numbers(instants, WINDOW)
    assert all(isinstance(value, int | float) and value >= 0 for value in found.values())
    assert all(value <= 1 for name, value in found.items() if name.endswith("_share"))

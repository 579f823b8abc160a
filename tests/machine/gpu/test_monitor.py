"""What is watched of a launch's GPUs, with a library that answers at once."""

import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.gpu import monitor
from harness.machine.gpu.monitor import (
    PROCESSES_EVERY,
    GpuMonitor,
    Instant,
    Reading,
    container_of,
    count_foreign,
    read,
    summarize_readings,
)
from harness.model.gpu import Gpu
from tests.machine.conftest import Tree
from tests.machine.gpu.library import H100, K80, NEW, OLD, Library, process

CARD = Gpu(0, "GPU-90", "H100", (9, 0), 80 * 2**30)
#: Longer than any machine stalls; nothing waits for it unless something is wrong.
PATIENCE = 60.0


class Turns:
    """Readings so far: the temperature is asked for once in each, and `passed` is set after so many."""

    def __init__(self, many: int) -> None:
        self.passed = threading.Event()
        self._left = many

    def __call__(self, *_: Any) -> int:
        self._left -= 1
        if self._left <= 0:
            self.passed.set()
        return 50


def seen(
    card: dict[str, Any],
    *,
    worker: dict[str, float],
    many: int = 3,
    container_of: Callable[[int], str | None] = lambda _: None,
) -> dict[str, float]:
    """What is known after so many readings at least, at the seconds 0, 1, 2 and so on."""
    turns = Turns(many)
    library = Library([{**card, "nvmlDeviceGetTemperature": turns}], **NEW)
    clock = itertools.count().__next__
    with GpuMonitor([CARD], library, every=0.0, clock=clock, container_of=container_of) as watching:
        assert turns.passed.wait(PATIENCE)
    assert library.open == 0
    return watching.resources(worker)


def test_the_numbers_are_of_the_steady_state_that_the_worker_told() -> None:
    found = seen(dict(H100), worker={"steady_started": 1.0, "steady_ended": 2.0}, many=5)
    assert found["gpu_samples"] == 2
    assert found["gpu_steady"] == 1
    assert found["gpu_utilization_percent"] == 60
    assert found["gpu_power_watts"] == 400
    assert found["gpu_throttled_share"] == 0
    assert found["gpu_foreign_processes"] == 0
    assert 0 < found["gpu_watch_cpu_seconds"] < PATIENCE


def test_a_launch_that_never_measured_has_the_numbers_of_all_of_it() -> None:
    found = seen(dict(H100), worker={"cpu_seconds": 1.0})
    assert found["gpu_samples"] >= 3
    assert found["gpu_steady"] == 0


def test_what_an_old_card_tells_is_kept_and_the_rest_is_left_out() -> None:
    found = seen(dict(K80), worker={})
    assert found["gpu_power_watts"] == 120.5
    assert found["gpu_foreign_processes"] == 1  # there before the launch, and still there
    assert "gpu_throttled_share" not in found


def test_a_process_that_came_and_went_counts_though_it_is_gone() -> None:
    listed = iter([[], [process(5)], *([[]] * PROCESSES_EVERY)])
    card = {**H100, "nvmlDeviceGetComputeRunningProcesses": lambda: next(listed, [])}
    found = seen(card, worker={}, many=2 * PROCESSES_EVERY, container_of=lambda _: "")
    assert found["gpu_foreign_processes"] == 1


def test_where_processes_are_not_told_their_number_is_left_out_and_not_zero() -> None:
    card = {name: answer for name, answer in H100.items() if "Processes" not in name}
    assert "gpu_foreign_processes" not in seen(card, worker={})


def test_a_library_that_does_not_start_leaves_everything_out() -> None:
    broken = Library([H100], starts=pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
    with GpuMonitor([CARD], broken) as watching:
        pass
    assert watching.resources({}) == {}


LOST = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)


def test_a_card_that_was_lost_leaves_everything_out_and_it_is_said() -> None:
    library = Library([H100], **NEW)
    library.nvmlDeviceGetHandleByIndex = lambda _: (_ for _ in ()).throw(LOST)  # type: ignore[method-assign]
    with GpuMonitor([CARD], library) as watching:
        pass
    assert watching.resources({}) == {"gpu_lost": 1.0}
    assert library.open == 0


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED])
def test_a_card_that_is_lost_in_mid_launch_is_asked_no_more_and_leaves_everything_out(code: int) -> None:
    answers = iter([400_000, 400_000])
    asked: list[int] = []
    gone = threading.Event()

    def power() -> int:
        asked.append(1)
        if (known := next(answers, None)) is None:
            gone.set()
            raise pynvml.NVMLError(code)
        return known

    library = Library([{**H100, "nvmlDeviceGetPowerUsage": power}], **NEW)
    with GpuMonitor([CARD], library, every=0.0) as watching:
        assert gone.wait(PATIENCE)
    assert watching.resources({"steady_started": 0.0, "steady_ended": 1e12}) == {"gpu_lost": 1.0}
    assert len(asked) == 3
    assert library.open == 0


def test_what_a_driver_does_not_support_is_no_loss(opened: Library) -> None:
    assert not read(opened, K80).is_lost


def test_the_thread_ends_with_the_launch_also_where_that_is_interrupted() -> None:
    during: list[str] = []

    def launch() -> None:
        with GpuMonitor([CARD], Library([H100], **OLD)):
            during.extend(thread.name for thread in threading.enumerate())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch()
    assert "gpu watch" in during
    assert "gpu watch" not in [thread.name for thread in threading.enumerate()]


def test_a_driver_that_never_answers_again_does_not_hold_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = threading.Event(), threading.Event()

    def hang(*_: Any) -> int:
        asked.set()
        answer.wait(PATIENCE)
        return 50

    monkeypatch.setattr(monitor, "PATIENCE", 0.0)
    library = Library([{**H100, "nvmlDeviceGetTemperature": hang}], **NEW)
    with GpuMonitor([CARD], library) as watching:
        assert asked.wait(PATIENCE)
    assert library.open == 1  # what is being used is not closed
    assert watching.resources({}) == {}
    answer.set()


WINDOW = (10.0, 20.0)


@pytest.fixture
def opened() -> Library:
    library = Library([K80, H100])
    library.nvmlInit()
    return library


def test_a_reading_has_the_units_that_it_says(opened: Library) -> None:
    assert read(opened, H100) == Reading(60, 20, 3 * 2**30, 1980, 2619, 40, 400.0, 0, 1500.5)


def test_what_is_not_told_is_unknown_and_not_zero(opened: Library) -> None:
    assert read(opened, K80).reasons is None
    assert summarize_readings([Instant(0, [Reading()])], None) == {"gpu_samples": 1, "gpu_steady": 0}


def test_the_numbers_are_of_the_steady_state() -> None:
    loading = Instant(5.0, [Reading(utilization=0, sm_clock=300, power=50, memory_used=9)])
    steps = [
        Instant(time, [Reading(utilization=use, sm_clock=clock, power=watts, temperature=60 + use / 10, memory_used=7)])
        for time, use, clock, watts in ((10.0, 80, 1900, 300), (15.0, 90, 1700, 320), (20.0, 100, 1800, 310))
    ]
    found = summarize_readings([loading, *steps, Instant(20.1, [Reading(utilization=0)])], WINDOW)
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


def counted(*points: tuple[float, float | None]) -> list[Instant]:
    """Readings of a counter of joules, each at its time."""
    return [Instant(time, [Reading(energy=joules)]) for time, joules in points]


def test_the_energy_is_what_the_counter_rose_by_between_the_ends_of_the_steady_state() -> None:
    # 100 W until 9.5, then 300 W until 20.5
    points = counted((9.0, 1000.0), (9.5, 1050.0), (10.5, 1350.0), (15.0, 2700.0), (20.5, 4350.0))
    assert summarize_readings(points, WINDOW)["gpu_energy_joules"] == pytest.approx(3000.0)


@pytest.mark.parametrize(
    ("points", "window"),
    [
        (counted((10.5, 1.0), (21.0, 2.0)), WINDOW),  # the first reading came late
        (counted((9.0, 1.0), (19.0, 2.0)), WINDOW),  # the last one early
        (counted((9.0, None), (21.0, None)), WINDOW),  # Pascal and older
        (counted((9.0, 9.0), (21.0, 2.0)), WINDOW),  # the driver was loaded anew
        (counted((9.0, 1.0), (21.0, 2.0)), (10.0, 10.5)),  # shorter than the counter is exact
        (counted((9.0, 1.0), (21.0, 2.0)), None),
    ],
)
def test_an_energy_that_is_not_known_is_left_out(points: list[Instant], window: tuple[float, float] | None) -> None:
    assert "gpu_energy_joules" not in summarize_readings(points, window)


@given(
    st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.0, 1e6)), min_size=2, max_size=9),
    st.floats(0.0, 15.0),
    st.floats(1.0, 15.0),
)
def test_the_energy_of_two_halves_is_that_of_the_whole(
    risen: list[tuple[float, float]], begun: float, long: float
) -> None:
    times, values = (sorted(entry) for entry in zip(*risen, strict=True))
    points = counted(*zip(times, values, strict=True))
    parts = [(begun, begun + long), (begun + long, begun + 2 * long), (begun, begun + 2 * long)]
    one, other, whole = (summarize_readings(points, part).get("gpu_energy_joules") for part in parts)
    if one is not None and other is not None:
        assert whole == pytest.approx(one + other, abs=1e-6)


@pytest.mark.parametrize("window", [None, (30.0, 31.0)])
def test_without_a_steady_state_they_are_of_the_whole_launch(window: tuple[float, float] | None) -> None:
    found = summarize_readings([Instant(time, [Reading(utilization=time)]) for time in (1.0, 3.0)], window)
    assert found == {"gpu_samples": 2, "gpu_steady": 0, "gpu_utilization_percent": 2}


def test_without_a_reading_there_is_nothing() -> None:
    assert summarize_readings([], WINDOW) == {}


def test_memory_and_power_of_several_cards_are_summed_and_the_hottest_counts() -> None:
    both = [
        Reading(50, power=100, memory_used=1, temperature=50),
        Reading(100, power=200, memory_used=2, temperature=70),
    ]
    found = summarize_readings([Instant(11, both)], WINDOW)
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
    told = summarize_readings(instants, WINDOW)
    assert {name: value for name, value in told.items() if name.endswith("_share")} == found


NUMBER = st.none() | st.integers(0, 2**40)
READING = st.builds(Reading, **{field.name: NUMBER for field in fields(Reading) if field.name != "is_lost"})


@given(st.lists(st.builds(Instant, st.floats(0, 30), st.lists(READING, max_size=3)), max_size=8))
def test_whatever_is_read_makes_numbers_that_can_be_stored(instants: list[Instant]) -> None:
    found = summarize_readings(instants, WINDOW)
    assert all(isinstance(value, int | float) and value >= 0 for value in found.values())
    assert all(value <= 1 for name, value in found.items() if name.endswith("_share"))


OURS, OTHER = "a" * 64, "b" * 64
HOMES = {1: "", 2: "", 11: OURS, 12: OURS, 21: OTHER, 22: OTHER}


@pytest.mark.parametrize(
    ("before", "now", "count"),
    [
        (set(), set(), 0),
        (set(), {11, 12}, 0),
        ({1}, {11}, 0),
        ({1}, {1, 11}, 1),
        ({21}, {21, 11}, 1),
        (set(), {1, 2, 11}, 2),
        (set(), {11, 12, 21, 22}, 1),
        (set(), {99}, 0),
        ({99}, {99}, 1),
    ],
)
def test_those_that_were_there_are_others_and_so_are_those_outside_the_launchs_container(
    before: set[int], now: set[int], count: int
) -> None:
    assert count_foreign(before, now, HOMES.get) == count


SESSION = "0::/user.slice/user-1000.slice/session-2.scope\n"


@pytest.mark.parametrize(
    ("cgroup", "numbers", "home"),
    [
        (f"0::/system.slice/docker-{OURS}.scope\n", "7 1", OURS),
        (f"12:cpuset:/docker/{OURS}\n11:memory:/docker/{OURS}\n", "7 1", OURS),
        (f"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-{OURS}.scope\n", "7 1", OURS),
        # an engine without root that makes no control groups: the container is in its user's session
        (SESSION, "7 1", "pid:[4026532001]"),
        (SESSION, "7", ""),
        (None, None, None),
    ],
)
def test_a_process_is_in_the_container_that_its_control_group_or_its_namespace_names(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, cgroup: str | None, numbers: str | None, home: str | None
) -> None:
    root = process_of(tree, monkeypatch, cgroup, numbers)
    (root / "proc/7/ns").mkdir(parents=True)
    (root / "proc/7/ns/pid").symlink_to("pid:[4026532001]")
    assert container_of(7, root) == home


def test_a_container_whose_namespace_may_not_be_read_is_not_known(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    assert container_of(7, process_of(tree, monkeypatch, SESSION, "7 1")) is None


def test_a_launch_without_a_container_is_not_taken_for_another_user_of_the_gpu(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = process_of(tree, monkeypatch, SESSION, "7")
    assert container_of(7, root) == ""
    (root / "proc/7/stat").write_text(f"7 (a) b) S {os.getpid()} 7 7")
    assert container_of(7, root) is None


def process_of(tree: Tree, monkeypatch: pytest.MonkeyPatch, cgroup: str | None, numbers: str | None) -> Path:
    """Files of a machine, outside all containers, whose process 7 has this control group and these numbers."""
    told = {
        "proc/7/cgroup": cgroup,
        "proc/7/status": numbers and f"Name:\tpython\nNSpid:\t{chr(9).join(numbers.split())}\n",
    }
    root = tree({"proc/self/ns/pid": "", **{name: text for name, text in told.items() if text}})
    monkeypatch.setattr(monitor, "_FIRST_NAMESPACE", (root / "proc/self/ns/pid").stat().st_ino)
    return root


def test_in_a_container_the_hosts_numbers_mean_nothing(tree: Tree) -> None:
    assert container_of(7, tree({"proc/self/ns/pid": "", "proc/7/cgroup": ""})) is None

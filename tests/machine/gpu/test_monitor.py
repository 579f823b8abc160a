"""What is watched of a launch's GPUs, with a library that answers at once."""

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

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
from tests.machine.gpu.library import H100, K80, NEW, Library, process

CARD = Gpu(0, "GPU-90", "H100", (9, 0), 80 * 2**30)
#: Longer than any machine stalls; nothing waits for it unless something is wrong.
PATIENCE = 60.0
WINDOW = (10.0, 20.0)


class Turns:
    """Readings so far: each asks for the temperature once, and `passed` is set after this many."""

    def __init__(self, many: int) -> None:
        self.passed = threading.Event()
        self._left = many

    def __call__(self, *_: Any) -> int:
        self._left -= 1
        if self._left <= 0:
            self.passed.set()
        return 50


def watch(
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


def test_the_numbers_are_of_the_steady_state_that_the_worker_reported(snapshot):
    numbers = watch(dict(H100), worker={"steady_started": 1.0, "steady_ended": 2.0}, many=5)
    assert 0 < numbers.pop("gpu_watch_cpu_seconds") < PATIENCE
    assert numbers == snapshot
    # a launch that never measured has the numbers of all of it
    numbers = watch(dict(H100), worker={"cpu_seconds": 1.0})
    assert numbers["gpu_samples"] >= 3
    assert numbers["gpu_steady"] == 0


def test_what_is_not_reported_is_left_out_and_a_process_that_is_gone_counts():
    numbers = watch(dict(K80), worker={})
    assert numbers["gpu_power_watts"] == 120.5
    assert numbers["gpu_foreign_processes"] == 1  # there before the launch, and still there
    assert "gpu_throttled_share" not in numbers
    silent = {name: answer for name, answer in H100.items() if "Processes" not in name}
    assert "gpu_foreign_processes" not in watch(silent, worker={})
    lists = iter([[], [process(5)], *([[]] * PROCESSES_EVERY)])
    card = {**H100, "nvmlDeviceGetComputeRunningProcesses": lambda: next(lists, [])}
    numbers = watch(card, worker={}, many=2 * PROCESSES_EVERY, container_of=lambda _: "")
    assert numbers["gpu_foreign_processes"] == 1


LOST = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)


def test_a_library_that_does_not_start_or_a_lost_card_leaves_everything_out():
    broken = Library([H100], starts=pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
    lost = Library([H100], **NEW)
    lost.nvmlDeviceGetHandleByIndex = lambda _: (_ for _ in ()).throw(LOST)
    for library, expected in ((broken, {}), (lost, {"gpu_lost": 1.0})):
        with GpuMonitor([CARD], library) as watching:
            pass
        assert watching.resources({}) == expected
        assert library.open == 0


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED])
def test_a_card_that_is_lost_in_mid_launch_is_asked_no_more_and_leaves_everything_out(code):
    answers = iter([400_000, 400_000])
    calls: list[int] = []
    gone = threading.Event()

    def power():
        calls.append(1)
        if (watts := next(answers, None)) is None:
            gone.set()
            raise pynvml.NVMLError(code)
        return watts

    library = Library([{**H100, "nvmlDeviceGetPowerUsage": power}], **NEW)
    with GpuMonitor([CARD], library, every=0.0) as watching:
        assert gone.wait(PATIENCE)
    assert watching.resources({"steady_started": 0.0, "steady_ended": 1e12}) == {"gpu_lost": 1.0}
    assert len(calls) == 3
    assert library.open == 0


def test_a_driver_that_never_answers_again_does_not_hold_the_launch(monkeypatch):
    question, answer = threading.Event(), threading.Event()

    def hang(*_):
        question.set()
        answer.wait(PATIENCE)
        return 50

    monkeypatch.setattr(monitor, "PATIENCE", 0.0)
    library = Library([{**H100, "nvmlDeviceGetTemperature": hang}], **NEW)
    with GpuMonitor([CARD], library) as watching:
        assert question.wait(PATIENCE)
    assert library.open == 1  # what is being used is not closed
    assert watching.resources({}) == {}
    answer.set()


def test_a_reading_has_the_units_that_its_names_promise_and_nothing_that_is_not_supported():
    library = Library([K80, H100])
    library.nvmlInit()
    assert read(library, H100) == Reading(60, 20, 3 * 2**30, 1980, 2619, 40, 400.0, 0, 1500.5)
    old = read(library, K80)
    assert (old.reasons, old.is_lost) == (None, False)


def test_the_numbers_are_of_the_steady_state_or_of_the_whole_launch(snapshot):
    loading = Instant(5.0, [Reading(utilization=0, sm_clock=300, power=50, memory_used=9)])
    steps = [
        Instant(time, [Reading(utilization=use, sm_clock=clock, power=watts, temperature=60 + use / 10, memory_used=7)])
        for time, use, clock, watts in ((10.0, 80, 1900, 300), (15.0, 90, 1700, 320), (20.0, 100, 1800, 310))
    ]
    two_cards = [
        Reading(50, power=100, memory_used=1, temperature=50),
        Reading(100, power=200, memory_used=2, temperature=70),
    ]
    readings = [Instant(time, [Reading(utilization=time)]) for time in (1.0, 3.0)]
    assert summarize_readings([], WINDOW) == {}
    assert {
        "steady": summarize_readings([loading, *steps, Instant(20.1, [Reading(utilization=0)])], WINDOW),
        "no window": summarize_readings(readings, None),
        "nothing in the window": summarize_readings(readings, (30.0, 31.0)),
        "nothing reported": summarize_readings([Instant(0, [Reading()])], None),
        "two cards": summarize_readings([Instant(11, two_cards)], WINDOW),
    } == snapshot


def energy(*points: tuple[float, float | None], window: tuple[float, float] | None = WINDOW) -> float | None:
    """The energy between the ends of the window, from a counter of joules that was read at these times."""
    readings = [Instant(time, [Reading(energy=joules)]) for time, joules in points]
    return summarize_readings(readings, window).get("gpu_energy_joules")


def test_the_energy_is_what_the_counter_rose_by_during_the_steady_state_where_that_is_known():
    # 100 W until 9.5, then 300 W until 20.5
    points = ((9.0, 1000.0), (9.5, 1050.0), (10.5, 1350.0), (15.0, 2700.0), (20.5, 4350.0))
    assert energy(*points) == pytest.approx(3000.0)
    assert energy((9.0, 1.0), (21.0, 2.0), window=(10.0, 11.0)) is not None
    assert energy((10.0, 1.0), (20.0, 2.0)) == 1.0
    energies = {
        "the first reading came late": energy((10.5, 1.0), (21.0, 2.0)),
        "the last one came early": energy((9.0, 1.0), (19.0, 2.0)),
        "Pascal and older": energy((9.0, None), (21.0, None)),
        "the driver was loaded anew": energy((9.0, 9.0), (21.0, 2.0)),
        "shorter than the counter is exact": energy((9.0, 1.0), (21.0, 2.0), window=(10.0, 10.5)),
        "no steady state": energy((9.0, 1.0), (21.0, 2.0), window=None),
    }
    assert energies == dict.fromkeys(energies)


def test_heat_and_supply_throttle_and_idling_does_not():
    def shares(bits):
        instants = [Instant(11, [Reading(reasons=0)]), Instant(12, [Reading(reasons=0), Reading(reasons=bits)])]
        numbers = summarize_readings(instants, WINDOW)
        return {name: value for name, value in numbers.items() if name.endswith("_share")}

    throttled = {"gpu_throttled_share": 0.5}
    expected = {
        # idle, clocks set by an application, in step with another GPU, set by a display
        0x1 | 0x2 | 0x10 | 0x100: {"gpu_throttled_share": 0},
        0x4: {"gpu_throttled_share": 0, "gpu_power_cap_share": 0.5},
        0x20: {**throttled, "gpu_sw_thermal_share": 0.5},
        0x8 | 0x40: {**throttled, "gpu_hw_slowdown_share": 0.5, "gpu_hw_thermal_share": 0.5},
        0x8 | 0x80: {**throttled, "gpu_hw_slowdown_share": 0.5, "gpu_power_brake_share": 0.5},
    }
    assert {bits: shares(bits) for bits in expected} == expected


OURS, OTHER = "a" * 64, "b" * 64


def test_processes_are_foreign_that_were_there_before_or_are_outside_the_launchs_container():
    homes = {1: "", 2: "", 11: OURS, 12: OURS, 21: OTHER, 22: OTHER}
    table: list[tuple[set[int], set[int], int]] = [
        (set(), {11, 12}, 0),
        ({1}, {1, 11}, 1),
        ({21}, {21, 11}, 1),
        (set(), {1, 2, 11}, 2),
        (set(), {11, 12, 21, 22}, 1),
        (set(), {99}, 0),
    ]
    assert [(before, now, count_foreign(before, now, homes.get)) for before, now, _ in table] == table


def test_a_process_is_in_the_container_that_its_control_group_or_its_namespace_names(tree, monkeypatch):
    def find_home(cgroup, numbers, namespace="pid:[4026532001]", stat=""):
        status = numbers and f"Name:\tpython\nNSpid:\t{chr(9).join(numbers.split())}\n"
        files = {"self/ns/pid": "", "7/cgroup": cgroup, "7/status": status, "7/stat": stat or None}
        texts = {f"proc/{name}": text for name, text in files.items() if text is not None}
        root = tree(texts, len([*tree({}).iterdir()]))
        # a machine, outside all containers
        monkeypatch.setattr(monitor, "_FIRST_NAMESPACE", (root / "proc/self/ns/pid").stat().st_ino)
        if namespace:
            (root / "proc/7/ns").mkdir(parents=True)
            (root / "proc/7/ns/pid").symlink_to(namespace)
        return container_of(7, root)

    assert find_home(f"0::/system.slice/docker-{OURS}.scope\n", "7 1") == OURS
    assert find_home(f"12:cpuset:/docker/{OURS}\n11:memory:/docker/{OURS}\n", "7 1") == OURS
    user = "0::/user.slice/user-1000.slice"
    assert find_home(f"{user}/user@1000.service/app.slice/docker-{OURS}.scope\n", "7 1") == OURS
    # an engine without root that makes no control groups: the container is in its user's session
    session = f"{user}/session-2.scope\n"
    assert find_home(session, "7 1") == "pid:[4026532001]"
    assert find_home(session, "7") == ""
    assert find_home(None, None) is None
    # a namespace that may not be read
    assert find_home(session, "7 1", namespace="") is None
    # a launch without a container is not taken for another user of the GPU
    assert find_home(session, "7", namespace="", stat="7 (a) b) S 1 7 7") == ""
    assert find_home(session, "7", namespace="", stat=f"7 (a) b) S {os.getpid()} 7 7") is None
    # in a container the host's numbers mean nothing
    assert container_of(7, tree({"proc/self/ns/pid": "", "proc/7/cgroup": ""}, "container")) is None

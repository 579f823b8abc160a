"""What is watched of a launch's GPUs, with a library that answers at once."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from harness.machine.gpu import watch
from harness.machine.gpu.watch import PROCESSES_EVERY, Watch, choose
from harness.model.gpu import Card, GpuHost
from tests.machine.gpu.library import H100, K80, NEW, OLD, Library, process

CARD = Card(0, "GPU-90", "H100", (9, 0), 80 * 2**30)
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
    with Watch([CARD], library, every=0.0, clock=clock, container_of=container_of)() as watching:
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
    with Watch([CARD], broken)() as watching:
        pass
    assert watching.resources({}) == {}


def test_a_card_that_was_lost_leaves_everything_out() -> None:
    lost = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
    library = Library([H100], **NEW)
    library.nvmlDeviceGetHandleByIndex = lambda _: (_ for _ in ()).throw(lost)  # type: ignore[method-assign]
    with Watch([CARD], library)() as watching:
        pass
    assert watching.resources({}) == {}
    assert library.open == 0


def test_the_thread_ends_with_the_launch_also_where_that_is_interrupted() -> None:
    during: list[str] = []

    def launch() -> None:
        with Watch([CARD], Library([H100], **OLD))():
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

    monkeypatch.setattr(watch, "PATIENCE", 0.0)
    library = Library([{**H100, "nvmlDeviceGetTemperature": hang}], **NEW)
    with Watch([CARD], library)() as watching:
        assert asked.wait(PATIENCE)
    assert library.open == 1  # what is being used is not closed
    assert watching.resources({}) == {}
    answer.set()


def test_a_run_is_watched_where_its_gpus_are_known_and_else_it_is_said_why_not() -> None:
    host = GpuHost([CARD], "550.54.15", (12, 4))
    assert choose([CARD], host) == (Watch([CARD]), "")
    assert choose([], host) == (None, "NVML knows none of the GPUs that launches get")
    absent = "the engine is on another machine"
    assert choose([], GpuHost(absent=absent)) == (None, absent)

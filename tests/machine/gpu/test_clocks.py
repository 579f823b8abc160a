import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pynvml
import pytest

from harness.machine.gpu import clocks
from harness.model.errors import CannotRunHereError, HarnessError
from harness.model.gpu import BASE_CLOCK, Gpu
from tests.errors import catch_text
from tests.machine.gpu.library import DIVIDED, H100, K80, NEW, Library
from tests.stand_in.gpus import T4, Machine

Calls = list[tuple[str, ...]]


def unlockable(name: str, calls: Calls) -> dict[str, Any]:
    """A card by its UUID, which records what is done to its clocks."""
    return {
        **H100,
        "nvmlDeviceGetUUID": name,
        "nvmlDeviceGetSupportedMemoryClocks": [2619, 1593],
        "nvmlDeviceGetSupportedGraphicsClocks": lambda memory: [1980, 1965, 345] if memory == 2619 else [100],
        "nvmlDeviceSetGpuLockedClocks": lambda *pair: calls.append((name, *map(str, pair))),
        "nvmlDeviceResetGpuLockedClocks": lambda: calls.append((name, "unlocked")),
    }


def make_library(*cards: dict[str, Any]) -> Library:
    library = Library(cards, **NEW)
    by_uuid = {card["nvmlDeviceGetUUID"]: card for card in cards}
    library.nvmlDeviceGetHandleByUUID = by_uuid.__getitem__
    return library


#: A library that nobody may open.
CLOSED = Library([], starts=AssertionError("the library was opened"))


def make_card(index: int, uuid: str, **others: Any) -> Gpu:
    return Gpu(index, uuid, "NVIDIA H100", (9, 0), 80 * 2**30, **others)


ONE, OTHER = make_card(0, "GPU-one"), make_card(1, "GPU-other")


def leave_mark() -> None:
    """Leave the mark of a run that was killed."""
    with clocks.lock_clocks([ONE], "1500", make_library(unlockable("GPU-one", []))):
        text = clocks.get_mark_path().read_text()
    clocks.get_mark_path().write_text(text)


def refuse(cards: Sequence[Gpu], library: Library, clock: str = "1500") -> HarnessError:
    """Return the error of clocks that cannot be locked."""
    with pytest.raises(HarnessError) as caught, clocks.lock_clocks(cards, clock, library):
        pytest.fail("the run began")
    return caught.value


def test_clocks_are_locked_during_the_run_to_a_frequency_or_the_drivers_base():
    calls: Calls = []
    library = make_library(unlockable("GPU-one", calls), unlockable("GPU-other", calls))
    with clocks.lock_clocks([ONE, OTHER], "1500", library):
        assert calls == [("GPU-one", "1500", "1500"), ("GPU-other", "1500", "1500")]
        assert json.loads(clocks.get_mark_path().read_text())["uuids"] == ["GPU-one", "GPU-other"]
    assert calls[2:] == [("GPU-one", "unlocked"), ("GPU-other", "unlocked")]
    assert not clocks.get_mark_path().exists()
    assert library.open == 0
    # without a clock, nothing is asked of a driver
    with clocks.lock_clocks([ONE], "", CLOSED):
        assert not clocks.get_mark_path().exists()
    calls: Calls = []
    card = unlockable("GPU-one", calls)
    silent = {name: answer for name, answer in card.items() if "Supported" not in name}
    for clock, answers in ((BASE_CLOCK, card), ("1500", silent), ("345", card), ("1980", card)):
        with clocks.lock_clocks([ONE], clock, make_library(answers)):
            pass
    # NVML_CLOCK_LIMIT_ID_TDP is the first one
    assert [call[1] for call in calls if call[1] != "unlocked"] == ["4294967041", "1500", "345", "1980"]


def refusing(code: int, calls: Calls, name: str = "GPU-one") -> dict[str, Any]:
    return {**unlockable(name, calls), "nvmlDeviceSetGpuLockedClocks": pynvml.NVMLError(code)}


def test_a_refusal_has_its_kind_its_reason_and_advice_and_leaves_no_mark(snapshot):
    calls: Calls = []
    divided = make_library({**DIVIDED, "nvmlDeviceGetUUID": "GPU-one"})
    errors = {
        **{
            name: refuse([ONE], make_library(refusing(getattr(pynvml, f"NVML_ERROR_{name}"), calls)))
            for name in ("NO_PERMISSION", "NOT_SUPPORTED", "INVALID_ARGUMENT", "GPU_IS_LOST")
        },
        "too low": refuse([ONE], make_library(unlockable("GPU-one", calls)), "344"),
        "too high": refuse([ONE], make_library(unlockable("GPU-one", calls)), "1981"),
        "no card": refuse([], divided),
        "divided": refuse([make_card(0, "GPU-one", is_partitioned=True)], divided),
    }
    assert calls == []
    assert not clocks.get_mark_path().exists()
    assert {name: f"{type(error).__name__}: {error}" for name, error in errors.items()} == snapshot


def test_clocks_are_unlocked_if_a_card_refuses_and_not_locked_without_a_mark():
    calls: Calls = []
    library = make_library(unlockable("GPU-one", calls), refusing(pynvml.NVML_ERROR_NO_PERMISSION, calls, "GPU-other"))
    assert "GPU 1" in refuse([ONE, OTHER], library).message
    assert calls == [("GPU-one", "1500", "1500"), ("GPU-one", "unlocked")]
    calls: Calls = []
    clocks.get_mark_path().mkdir()
    assert isinstance(refuse([ONE], make_library(unlockable("GPU-one", calls))), CannotRunHereError)
    assert calls == []


def test_what_a_killed_run_left_is_unlocked_by_the_next_run_which_locks_nothing():
    calls: Calls = []
    leave_mark()
    with clocks.lock_clocks([OTHER], "", make_library(unlockable("GPU-one", calls), unlockable("GPU-other", calls))):
        assert calls == [("GPU-one", "unlocked")]
    assert not clocks.get_mark_path().exists()


def test_a_mark_that_is_damaged_a_link_or_of_an_earlier_start_of_the_machine_unlocks_nothing(tmp_path, monkeypatch):
    for text in ("", "[]", "{", '{"uuids": 3}', "[" * 100_000):
        clocks.get_mark_path().write_text(text)
        assert clocks.unlock(CLOSED) == 0, text
    leave_mark()
    with monkeypatch.context() as patch:
        (tmp_path / "boot_id").write_text("another start")
        patch.setattr(clocks, "_BOOT_ID_FILE", tmp_path / "boot_id")
        assert clocks.unlock(CLOSED) == 0
    leave_mark()
    clocks.get_mark_path().rename(tmp_path / "elsewhere")
    clocks.get_mark_path().symlink_to(tmp_path / "elsewhere")
    assert clocks.unlock(CLOSED) == 0


def test_a_card_that_is_gone_has_no_clocks_to_unlock_and_one_that_is_forbidden_is_an_error(snapshot):
    lost, forbidden = (
        {**K80, "nvmlDeviceGetUUID": "GPU-one", "nvmlDeviceResetGpuLockedClocks": pynvml.NVMLError(code)}
        for code in (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NO_PERMISSION)
    )
    leave_mark()
    assert clocks.unlock(make_library(lost)) == 1
    leave_mark()
    text = catch_text(CannotRunHereError, clocks.unlock, make_library(forbidden))
    assert text.replace(str(clocks.get_mark_path()), "MARK") == snapshot
    assert clocks.get_mark_path().exists()


#: Locks the clocks of a card, by a library in C, which the real nvidia-ml-py asks.
SCRIPT = """
import os, signal
import pynvml
from harness.machine.gpu import clocks, host
from harness.model.gpu import BASE_CLOCK
reset = pynvml.nvmlDeviceResetGpuLockedClocks

def interrupted(handle):
    pynvml.nvmlDeviceResetGpuLockedClocks = reset
    raise KeyboardInterrupt

with clocks.lock_clocks(host.read().gpus, BASE_CLOCK):
"""


def run_script(machine: Machine, script: str) -> int:
    environ = {**os.environ, **machine.environ()}
    return subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, check=False).returncode


def test_a_process_unlocks_what_it_locked_also_after_a_second_interrupt_and_for_one_that_was_killed(
    stand_ins, tmp_path
):
    log, mark = tmp_path / "clocks.log", clocks.get_mark_path()
    machine = Machine(stand_ins, [T4], {"STAND_IN_MAY_SET": "1", "STAND_IN_CLOCKS_LOG": str(log)})
    end = "pynvml.nvmlDeviceResetGpuLockedClocks = interrupted; raise KeyboardInterrupt"
    assert run_script(machine, f"{SCRIPT}    {end}") == -signal.SIGINT
    assert log.read_text().splitlines() == ["0 1110", "0 0"]
    assert not mark.exists()
    end = "os.kill(os.getpid(), signal.SIGKILL)"
    assert run_script(machine, f"{SCRIPT}    {end}") == -signal.SIGKILL
    assert log.read_text().splitlines()[2:] == ["0 1110"]
    assert mark.exists()
    assert run_script(machine, "from harness.machine.gpu import clocks\nclocks.unlock()") == 0
    assert log.read_text().splitlines()[2:] == ["0 1110", "0 0"]
    assert not mark.exists()

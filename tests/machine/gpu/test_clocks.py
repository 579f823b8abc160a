"""Clocks are locked for a run, and unlocked however it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from harness.machine.gpu import clocks
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import BASE_CLOCK, Gpu
from tests.machine.gpu.library import DIVIDED, H100, K80, NEW, Library
from tests.stand_in.gpus import T4, Machine

Done = list[tuple[str, ...]]


def unlockable(name: str, done: Done) -> dict[str, Any]:
    """A card by its UUID, which tells what is done to its clocks."""
    return {
        **H100,
        "nvmlDeviceGetUUID": name,
        "nvmlDeviceGetSupportedMemoryClocks": [2619, 1593],
        "nvmlDeviceGetSupportedGraphicsClocks": lambda memory: [1980, 1965, 345] if memory == 2619 else [100],
        "nvmlDeviceSetGpuLockedClocks": lambda *pair: done.append((name, *map(str, pair))),
        "nvmlDeviceResetGpuLockedClocks": lambda: done.append((name, "unlocked")),
    }


def library(*cards: dict[str, Any]) -> Library:
    made = Library(cards, **NEW)
    by_uuid = {card["nvmlDeviceGetUUID"]: card for card in cards}
    made.nvmlDeviceGetHandleByUUID = by_uuid.__getitem__  # type: ignore[attr-defined]
    return made


def card(index: int, uuid: str, **others: Any) -> Gpu:
    return Gpu(index, uuid, "NVIDIA H100", (9, 0), 80 * 2**30, **others)


ONE, OTHER = card(0, "GPU-one"), card(1, "GPU-other")


def test_clocks_are_locked_during_the_run_and_no_mark_is_left() -> None:
    done: Done = []
    nvml = library(unlockable("GPU-one", done), unlockable("GPU-other", done))
    with clocks.lock_clocks([ONE, OTHER], "1500", nvml):
        assert done == [("GPU-one", "1500", "1500"), ("GPU-other", "1500", "1500")]
        assert json.loads(clocks.get_mark_path().read_text())["uuids"] == ["GPU-one", "GPU-other"]
    assert done[2:] == [("GPU-one", "unlocked"), ("GPU-other", "unlocked")]
    assert not clocks.get_mark_path().exists()
    assert nvml.open == 0


def test_the_base_clock_is_the_drivers_own_word() -> None:
    done: Done = []
    with clocks.lock_clocks([ONE], BASE_CLOCK, library(unlockable("GPU-one", done))):
        assert done == [("GPU-one", "4294967041", "4294967041")]  # NVML_CLOCK_LIMIT_ID_TDP


def test_without_a_clock_nothing_is_asked_of_a_driver() -> None:
    with clocks.lock_clocks([ONE], "", Library([], starts=AssertionError("the library was opened"))):
        assert not clocks.get_mark_path().exists()


@pytest.mark.parametrize("ends", [KeyboardInterrupt, ValueError])
def test_they_are_unlocked_where_a_run_ends_otherwise(ends: type[BaseException]) -> None:
    done: Done = []

    def run() -> None:
        with clocks.lock_clocks([ONE], "1500", library(unlockable("GPU-one", done))):
            raise ends

    with pytest.raises(ends):
        run()
    assert done[-1] == ("GPU-one", "unlocked")
    assert not clocks.get_mark_path().exists()


def raises(code: int) -> Callable[..., None]:
    def answer(*_: int) -> None:
        raise pynvml.NVMLError(code)

    return answer


def refusing(code: int, done: Done, name: str = "GPU-one") -> dict[str, Any]:
    return {**unlockable(name, done), "nvmlDeviceSetGpuLockedClocks": raises(code)}


@pytest.mark.parametrize(
    ("code", "kind", "message", "advice"),
    [
        (
            pynvml.NVML_ERROR_NO_PERMISSION,
            CannotRunHereError,
            r"lets only root lock the clocks of GPU 0 \(NVIDIA H100\)",
            "sudo nvidia-smi -i 0 --lock-gpu-clocks=1500,1500\nAfter the run: sudo nvidia-smi -i 0 --reset-gpu-clocks",
        ),
        (pynvml.NVML_ERROR_NOT_SUPPORTED, CannotRunHereError, "Volta generation or later", "Omit --lock-clocks"),
        (pynvml.NVML_ERROR_INVALID_ARGUMENT, UsageError, "doesn't support this clock", "--lock-clocks base"),
        (pynvml.NVML_ERROR_GPU_IS_LOST, CannotRunHereError, "GPU is lost", ""),
    ],
)
def test_a_refusal_says_who_may_and_leaves_no_mark(code: int, kind: type[Exception], message: str, advice: str) -> None:
    with (
        pytest.raises(kind, match=message) as refused,
        clocks.lock_clocks([ONE], "1500", library(refusing(code, []))),
    ):
        pytest.fail("the run began")
    assert advice in refused.value.advice  # type: ignore[attr-defined]
    assert not clocks.get_mark_path().exists()


def test_where_the_second_card_refuses_the_first_is_unlocked() -> None:
    done: Done = []
    nvml = library(unlockable("GPU-one", done), refusing(pynvml.NVML_ERROR_NO_PERMISSION, done, "GPU-other"))
    with pytest.raises(CannotRunHereError, match="GPU 1"), clocks.lock_clocks([ONE, OTHER], "1500", nvml):
        pytest.fail("the run began")
    assert done == [("GPU-one", "1500", "1500"), ("GPU-one", "unlocked")]


@pytest.mark.parametrize("clock", ["344", "1981"])
def test_a_clock_outside_the_cards_range_is_wrong_and_the_range_is_told(clock: str) -> None:
    done: Done = []
    with (
        pytest.raises(UsageError, match=rf"--lock-clocks {clock}: GPU 0 .* from 345 to 1980 MHz"),
        clocks.lock_clocks([ONE], clock, library(unlockable("GPU-one", done))),
    ):
        pytest.fail("the run began")
    assert done == []


def test_a_card_that_lists_no_clocks_is_asked_without_a_range() -> None:
    done: Done = []
    silent = {name: told for name, told in unlockable("GPU-one", done).items() if "Supported" not in name}
    with clocks.lock_clocks([ONE], "1500", library(silent)):
        assert done == [("GPU-one", "1500", "1500")]


@pytest.mark.parametrize(
    ("cards", "words"),
    [([], "this process can't see the GPUs"), ([card(0, "GPU-one", is_partitioned=True)], "divided into instances")],
)
def test_clocks_that_cannot_be_locked_are_a_sentence(cards: list[Gpu], words: str) -> None:
    nvml = library({**DIVIDED, "nvmlDeviceGetUUID": "GPU-one"})
    with pytest.raises(CannotRunHereError, match=words), clocks.lock_clocks(cards, "1500", nvml):
        pytest.fail("the run began")


def test_what_a_killed_run_left_is_unlocked_by_the_next_run_which_locks_nothing() -> None:
    done: Done = []
    left(["GPU-one"])
    with clocks.lock_clocks([OTHER], "", library(unlockable("GPU-one", done), unlockable("GPU-other", done))):
        assert done == [("GPU-one", "unlocked")]
    assert not clocks.get_mark_path().exists()


def test_after_a_new_start_of_the_machine_nothing_is_locked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left(["GPU-one"])
    (tmp_path / "boot_id").write_text("another start")
    monkeypatch.setattr(clocks, "_BOOT_ID_FILE", tmp_path / "boot_id")
    assert clocks.unlock(Library([], starts=AssertionError("the library was opened"))) == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '{"uuids": 3}', "[" * 100_000])
def test_a_mark_that_says_nothing_unlocks_nothing(text: str) -> None:
    clocks.get_mark_path().write_text(text)
    assert clocks.unlock(Library([], starts=AssertionError("the library was opened"))) == 0


def test_a_mark_through_a_link_is_not_believed(tmp_path: Path) -> None:
    left(["GPU-one"])
    clocks.get_mark_path().rename(tmp_path / "elsewhere")
    clocks.get_mark_path().symlink_to(tmp_path / "elsewhere")
    assert clocks.unlock(Library([], starts=AssertionError("the library was opened"))) == 0


def test_without_a_mark_nothing_is_locked() -> None:
    done: Done = []
    clocks.get_mark_path().mkdir()
    with (
        pytest.raises(CannotRunHereError, match="cannot be written"),
        clocks.lock_clocks([ONE], "1500", library(unlockable("GPU-one", done))),
    ):
        pytest.fail("the run began")
    assert done == []


def test_a_card_that_is_gone_has_no_clocks_to_unlock_and_one_that_is_forbidden_is_said() -> None:
    gone = {
        **K80,
        "nvmlDeviceGetUUID": "GPU-one",
        "nvmlDeviceResetGpuLockedClocks": raises(pynvml.NVML_ERROR_GPU_IS_LOST),
    }
    left(["GPU-one"])
    assert clocks.unlock(library(gone)) == 1
    left(["GPU-one"])
    forbidden = {**gone, "nvmlDeviceResetGpuLockedClocks": raises(pynvml.NVML_ERROR_NO_PERMISSION)}
    with pytest.raises(CannotRunHereError, match="left the clocks of a GPU locked") as refused:
        clocks.unlock(library(forbidden))
    assert refused.value.advice.startswith("sudo nvidia-smi -i GPU-one --reset-gpu-clocks")
    assert clocks.get_mark_path().exists()


def left(uuids: list[str]) -> None:
    """A mark that a run has left which was killed."""
    done: Done = []
    cards = [unlockable(uuid, done) for uuid in uuids]
    with clocks.lock_clocks([card(at, uuid) for at, uuid in enumerate(uuids)], "1500", library(*cards)):
        kept = clocks.get_mark_path().read_text()
    clocks.get_mark_path().write_text(kept)


LOCKS = """
import os, signal
import pynvml
from harness.machine.gpu import clocks, host
from harness.model.gpu import BASE_CLOCK
reset = pynvml.nvmlDeviceResetGpuLockedClocks

def interrupted(handle):
    pynvml.nvmlDeviceResetGpuLockedClocks = reset
    raise KeyboardInterrupt

with clocks.lock_clocks(host.read().cards, BASE_CLOCK):
"""
#: What ends the block.
ENDS = {
    "at its end": "pass",
    "by an exit": "raise SystemExit(3)",
    "by a second Ctrl-C": "pynvml.nvmlDeviceResetGpuLockedClocks = interrupted; raise KeyboardInterrupt",
}


def said(machine: Machine, script: str) -> int:
    environ = {**os.environ, **machine.environ()}
    return subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, check=False).returncode


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "clocks.log"


@pytest.fixture
def machine(stand_ins: Path, log: Path) -> Machine:
    """A T4 whose clocks every user may lock, by a library in C, which the real nvidia-ml-py asks."""
    return Machine(stand_ins, [T4], {"STAND_IN_MAY_SET": "1", "STAND_IN_CLOCKS_LOG": str(log)})


@pytest.mark.parametrize("end", ENDS)
def test_a_process_unlocks_what_it_locked_however_it_ends(machine: Machine, log: Path, end: str) -> None:
    said(machine, f"{LOCKS}    {ENDS[end]}")
    assert log.read_text().splitlines() == ["0 1110", "0 0"]
    assert not clocks.get_mark_path().exists()


def test_a_process_that_was_killed_leaves_a_mark_and_the_next_one_unlocks(machine: Machine, log: Path) -> None:
    assert said(machine, f"{LOCKS}    os.kill(os.getpid(), signal.SIGKILL)") == -signal.SIGKILL
    assert log.read_text().splitlines() == ["0 1110"]
    assert clocks.get_mark_path().exists()
    said(machine, "from harness.machine.gpu import clocks\nclocks.unlock()")
    assert log.read_text().splitlines() == ["0 1110", "0 0"]
    assert not clocks.get_mark_path().exists()


def test_a_user_without_rights_is_refused_by_the_real_package_too(stand_ins: Path) -> None:
    script = "from harness.model.errors import CannotRunHereError\ntry:\n" + LOCKS.replace("\n", "\n ") + "    pass\n"
    script += "except CannotRunHereError as error:\n raise SystemExit(40 + ('root' in error.message))\n"
    assert said(Machine(stand_ins, [T4]), script) == 41

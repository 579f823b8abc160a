"""Recordings of NVML, each read as the card that it was made on would be.

`make gpu-check` writes one (nvml.jsonl in its bundle). Put into the folder beside this file it is a test: what the
harness makes of a card that a person had stays so without the card. Those named `stand-in-…` are of tests/stand_in.
"""

import itertools
import json
import re
import threading
from pathlib import Path
from typing import Any

import pynvml
import pytest
from typer.testing import CliRunner

from bench.gpu_check.recording import Recorder, Replay
from harness.cli import app
from harness.machine.gpu import host, selection
from harness.machine.gpu.monitor import GpuMonitor

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.jsonl"))
#: Longer than any machine stalls; nothing waits for it unless something is wrong.
PATIENCE = 60.0

each = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)


def replay(path: Path) -> Replay:
    return Replay(path.read_text().splitlines())


def named(path: Path) -> list[str]:
    """The cards by the recording's first line."""
    return json.loads(path.read_text().splitlines()[0])["cards"].split(", ")  # type: ignore[no-any-return]


def test_there_are_recordings() -> None:
    assert RECORDINGS


@each
def test_the_cards_are_read(path: Path) -> None:
    library = replay(path)
    found = host.read(library)
    assert [card.name for card in found.cards] == named(path)
    assert not found.absent
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", found.driver)
    assert found.cuda
    for card in found.cards:
        assert card.capability >= (3, 0)
        assert card.memory_bytes > 2**30
        assert card.uuid
        assert card.pci
    assert library.open == 0
    facts = selection.collect_facts(found.cards, found)
    assert json.loads(json.dumps(facts)) == facts


@each
def test_the_doctor_tells_of_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    known = host.read(replay(path))
    monkeypatch.setattr(host, "read", lambda: known)
    done = CliRunner().invoke(app, ["doctor", "--gpu", "--no-listen", "--json"])
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    for index, name in enumerate(named(path)):
        assert checks[f"GPU {index}"]["facts"]["model"] == name
        assert checks[f"GPU {index}"]["value"].startswith(f"{name}, compute capability ")


@each
def test_the_numbers_of_a_launch_are_those_of_a_card(path: Path) -> None:
    library = replay(path)
    cards = host.read(library).cards
    recorded = sum('"nvmlDeviceGetTemperature"' in line for line in path.read_text().splitlines()) // len(cards)
    assert recorded > 1
    read_all = threading.Event()
    ticks = itertools.count()

    def clock() -> float:
        tick = next(ticks)
        if tick >= recorded:
            read_all.set()
        return float(tick)

    with GpuMonitor(cards, library, every=0.0, clock=clock, container_of=lambda _: None) as watching:
        assert read_all.wait(PATIENCE)
    found = watching.resources({"steady_started": 0.0, "steady_ended": recorded - 1.0})
    assert found["gpu_samples"] == recorded
    assert found["gpu_steady"] == 1
    assert 0 <= found["gpu_memory_used_bytes"] <= sum(card.memory_bytes for card in cards)
    for name, value in found.items():
        if name.endswith("_share"):
            assert 0 <= value <= 1, name
        if name.endswith("_percent"):
            assert 0 <= value <= 100, name
        if name.endswith("_celsius"):
            assert 0 < value < 120, name
        if name.endswith("_mhz"):
            assert 0 < value < 20_000, name
        if name.endswith("_watts"):
            assert 0 < value < 2_000 * len(cards), name


@each
def test_nothing_in_it_tells_whose_card_it_was(path: Path) -> None:
    calls = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    told = {call["call"]: call.get("answer") for call in calls}
    assert "nvmlDeviceGetSerial" not in told
    assert told.get("nvmlSystemGetProcessName") in (None, "program")
    for call in calls:
        answer: Any = call.get("answer")
        if call["call"] == "nvmlDeviceGetUUID" and answer:
            assert re.fullmatch(r"(GPU|MIG)-00000000-0000-0000-0000-0{8}[0-9a-f]{4}", answer)
        if call["call"] == "nvmlDeviceGetPciInfo" and answer:
            assert set(answer) == {"busId"}
            assert re.fullmatch(r"0000:[0-9a-f]{2}:00\.0", answer["busId"])


def lines(*calls: dict[str, Any]) -> list[str]:
    return [json.dumps(call) for call in ({"nvml": 1}, *calls)]


def test_errors_are_replayed_as_errors_and_the_last_answer_stays() -> None:
    name = "nvmlDeviceGetTemperature"
    library = Replay(
        lines(
            {"call": "nvmlInit", "arguments": [], "answer": None},
            {"call": name, "arguments": ["0", 0], "answer": 40},
            {"call": name, "arguments": ["0", 0], "error": pynvml.NVML_ERROR_GPU_IS_LOST},
            {"call": "nvmlDeviceGetComputeRunningProcesses", "arguments": ["0"], "error": "mismatch"},
            {"call": "nvmlDeviceGetHandleByIndex", "arguments": [0], "answer": {"handle": "0"}},
        )
    )
    library.nvmlInit()
    handle = library.nvmlDeviceGetHandleByIndex(0)
    assert library.nvmlDeviceGetTemperature(handle, 0) == 40
    for _ in range(2):
        with pytest.raises(pynvml.NVMLError) as lost:
            library.nvmlDeviceGetTemperature(handle, 0)
        assert lost.value.value == pynvml.NVML_ERROR_GPU_IS_LOST
    with pytest.raises(pynvml.NVMLLibraryMismatchError):
        library.nvmlDeviceGetComputeRunningProcesses(handle)


def test_what_was_not_recorded_is_not_known_to_the_driver() -> None:
    library = Replay(lines())
    with pytest.raises(pynvml.NVMLError) as unknown:
        library.nvmlDeviceGetName("0")
    assert unknown.value.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    with pytest.raises(AttributeError):
        library.nvmlDeviceGetNothing()


def test_a_driver_that_is_not_there_is_recorded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    monkeypatch.setattr(pynvml, "nvmlInit", fails)
    recorder = Recorder()
    known = host.read(recorder)
    assert "not loaded" in known.absent
    assert host.read(Replay([json.dumps({"nvml": 1}), *recorder.lines])) == known

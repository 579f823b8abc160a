"""Recordings of NVML, each read as the card that it was made on would be.

`make gpu-check` writes one (nvml.jsonl in its bundle). Put into the folder beside this file it is a test: what the
harness makes of a card that a person had stays so without the card. Those named `stand-in-…` are of tests/stand_in.
"""

import json
import re
from pathlib import Path
from typing import Any

import pynvml
import pytest

from bench.gpu_check.recording import Recorder, Replay
from harness.machine.doctor.prerequisites import check_gpu
from harness.machine.gpu import host, selection

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.jsonl"))

for_each_recording = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)


def test_there_are_recordings():
    assert RECORDINGS


@for_each_recording
def test_the_cards_are_read_and_checked(path):
    library = Replay(path.read_text().splitlines())
    machine = host.read(library)
    names = json.loads(path.read_text().splitlines()[0])["cards"].split(", ")
    assert [card.name for card in machine.gpus] == names
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", machine.driver)
    assert machine.cuda
    for card in machine.gpus:
        assert card.capability >= (3, 0)
        assert card.memory_bytes > 2**30
        assert all((card.uuid, card.pci))
        check = check_gpu(card)
        assert check.name == f"GPU {card.index}"
        assert check.value.startswith(f"{card.name}, compute capability ")
    assert library.open == 0
    facts = selection.collect_facts(machine.gpus, machine)
    assert json.loads(json.dumps(facts)) == facts


@for_each_recording
def test_nothing_in_it_tells_whose_card_it_was(path):
    calls = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    answers = {call["call"]: call.get("answer") for call in calls}
    assert "nvmlDeviceGetSerial" not in answers
    assert answers.get("nvmlSystemGetProcessName") in (None, "program")
    for call in calls:
        answer: Any = call.get("answer")
        if call["call"] == "nvmlDeviceGetUUID" and answer:
            assert re.fullmatch(r"(GPU|MIG)-00000000-0000-0000-0000-0{8}[0-9a-f]{4}", answer)
        if call["call"] == "nvmlDeviceGetPciInfo" and answer:
            assert set(answer) == {"busId"}
            assert re.fullmatch(r"0000:[0-9a-f]{2}:00\.0", answer["busId"])


def test_errors_are_replayed_as_errors_and_the_last_answer_stays():
    name = "nvmlDeviceGetTemperature"
    calls: list[dict[str, Any]] = [
        {"nvml": 1},
        {"call": "nvmlInit", "arguments": [], "answer": None},
        {"call": name, "arguments": ["0", 0], "answer": 40},
        {"call": name, "arguments": ["0", 0], "error": pynvml.NVML_ERROR_GPU_IS_LOST},
        {"call": "nvmlDeviceGetComputeRunningProcesses", "arguments": ["0"], "error": "mismatch"},
        {"call": "nvmlDeviceGetHandleByIndex", "arguments": [0], "answer": {"handle": "0"}},
    ]
    library = Replay([json.dumps(call) for call in calls])
    library.nvmlInit()
    handle = library.nvmlDeviceGetHandleByIndex(0)
    assert library.nvmlDeviceGetTemperature(handle, 0) == 40
    for _ in range(2):
        with pytest.raises(pynvml.NVMLError_GpuIsLost):
            library.nvmlDeviceGetTemperature(handle, 0)
    with pytest.raises(pynvml.NVMLLibraryMismatchError):
        library.nvmlDeviceGetComputeRunningProcesses(handle)
    # what was not recorded is not known to the driver
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        library.nvmlDeviceGetName(handle)
    with pytest.raises(AttributeError):
        library.nvmlDeviceGetNothing()


def test_a_driver_that_is_not_there_is_recorded_too(monkeypatch):
    def fails():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    monkeypatch.setattr(pynvml, "nvmlInit", fails)
    recorder = Recorder()
    machine = host.read(recorder)
    assert machine.absent
    assert host.read(Replay([json.dumps({"nvml": 1}), *recorder.lines])) == machine

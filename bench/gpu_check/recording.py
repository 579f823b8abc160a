"""Records calls of NVML and their results, and replays such a recording.

`python -m bench.gpu_check.recording FILE` reads this machine's GPUs and watches them, as a run does. A recording has
JSON lines. The first line describes the machine. Each of the other lines is one call: its time in seconds since the
first call, its arguments, and its `answer` or the number of its `error` (`mismatch` if the driver is too old for the
function). A GPU's name is its index, such as `0`, or `0:2` for its third instance. UUIDs, PCI addresses and the names
of processes are masked. Serial numbers aren't read.
"""

import argparse
import ctypes
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml

from bench.gpu_check.masking import Mask
from harness import __version__
from harness.machine.gpu.host import keep_driver_loaded, read
from harness.machine.gpu.monitor import GpuMonitor

MISMATCH = "mismatch"

#: The recorded fields of some answers. Other fields aren't used, or would identify the GPU.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "nvmlDeviceGetPciInfo": ("busId",),
    "nvmlDeviceGetComputeRunningProcesses": ("pid", "usedGpuMemory"),
    "nvmlDeviceGetComputeRunningProcesses_v2": ("pid", "usedGpuMemory"),
}
_PROGRAM = "nvmlSystemGetProcessName"


@dataclass(frozen=True, slots=True)
class Handle:
    """A GPU or an instance of a GPU: its name in the recording, and the library's handle."""

    name: str
    real: Any = None


class Recorder:
    """Wraps pynvml, and records each call in `lines`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._mask = Mask({})
        self._begun = time.monotonic()

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)
        if not name.startswith("nvml") or not callable(real):
            return real

        def call(*arguments: Any) -> Any:
            def keep(**outcome: Any) -> None:
                names = [_find_name(argument) for argument in arguments]
                line = {"t": round(time.monotonic() - self._begun, 4), "call": name, "arguments": names, **outcome}
                self.lines.append(json.dumps(self._mask.value(line), separators=(",", ":")))

            try:
                answer = real(*(argument.real if isinstance(argument, Handle) else argument for argument in arguments))
            except pynvml.NVMLLibraryMismatchError:
                keep(error=MISMATCH)
                raise
            except pynvml.NVMLError as error:
                keep(error=error.value)
                raise
            if isinstance(answer, ctypes._Pointer):
                answer = Handle(":".join(str(_find_name(argument)) for argument in arguments), answer)
            keep(answer=_to_json(name, answer))
            return answer

        return call


def _find_name(argument: Any) -> Any:
    return argument.name if isinstance(argument, Handle) else argument


def _to_json(name: str, answer: Any) -> Any:
    """Return an answer as a JSON value. Structures become objects."""
    if isinstance(answer, Handle):
        return {"handle": answer.name}
    if name == _PROGRAM:
        return "program"
    if isinstance(answer, bytes):
        return answer.decode(errors="replace")
    if isinstance(answer, list | tuple):
        return [_to_json(name, element) for element in answer]
    if isinstance(answer, ctypes.Structure):
        fields = [field[0] for field in answer._fields_]
    elif isinstance(answer, int | float | str | None):
        return answer
    else:
        fields = list(vars(answer))
    return {field: _to_json("", getattr(answer, field)) for field in fields if field in _FIELDS.get(name, fields)}


class Replay:
    """Replaces pynvml with a recording: the nth call of a function gets its nth recorded answer, and then the last one.

    A function that wasn't recorded counts as unknown to the driver.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        first, *calls = map(json.loads, lines)
        self.header: Mapping[str, Any] = first
        self.open = 0
        self._calls: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for call in calls:
            self._calls[_key(call["call"], call["arguments"])].append(call)

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        """Answer like the recorded start of the library."""
        self._answer("nvmlInit")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        """Count a close of the library. In the end, there must be as many as starts."""
        self.open -= 1

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)
        if not name.startswith("nvml") or not callable(real):
            return real
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name: str, *arguments: Any) -> Any:
        answers = self._calls.get(_key(name, [_find_name(argument) for argument in arguments]))
        if not answers:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer.get("error") == MISMATCH:
            raise pynvml.NVMLLibraryMismatchError(name)
        if "error" in answer:
            raise pynvml.NVMLError(answer["error"])
        return _read(answer["answer"])


def _key(name: str, arguments: Iterable[Any]) -> str:
    return json.dumps([name, *arguments])


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(element) for element in value]
    if isinstance(value, Mapping):
        return Handle(value["handle"]) if "handle" in value else SimpleNamespace(**value)
    return value


def record(seconds: float) -> list[str]:
    """Record the reads of this machine's GPUs at the start of a run, and `seconds` of watching. Return the lines."""
    recorder = Recorder()
    cards = read(recorder).gpus
    with keep_driver_loaded(cards, recorder):
        if cards:
            with GpuMonitor(cards, recorder):
                time.sleep(seconds)
    names = ", ".join(card.name for card in cards)
    header = {"nvml": 1, "harness": __version__, "cards": names, "seconds": seconds}
    return [json.dumps(header), *recorder.lines]


def main() -> None:
    """Record to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to watch")
    arguments = parser.parse_args()
    lines = record(arguments.seconds)
    arguments.file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(lines) - 1} calls of NVML")


if __name__ == "__main__":
    main()

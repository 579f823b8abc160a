"""Records what NVML is asked and answers, and answers from such a recording.

`python -m bench.gpu_check.recording FILE` reads this machine's GPUs and watches them, as a run does. A recording is
JSON lines: the first says what it is of; each of the others is one call, with its time in seconds since the first, its
arguments, and its `answer`, or the number of its `error` (`mismatch` where the driver is too old for the function).
GPUs are named by how they were asked for, `0`, or `0:2` for the instance in the third place. UUIDs, PCI addresses and
the names of processes are masked; serial numbers are not asked for.
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
from harness.machine.gpu.host import kept_open, read
from harness.machine.gpu.monitor import Watch

MISMATCH = "mismatch"

#: Of these answers more is not used, or would tell whose GPU it is.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "nvmlDeviceGetPciInfo": ("busId",),
    "nvmlDeviceGetComputeRunningProcesses": ("pid", "usedGpuMemory"),
    "nvmlDeviceGetComputeRunningProcesses_v2": ("pid", "usedGpuMemory"),
}
_PROGRAM = "nvmlSystemGetProcessName"


@dataclass(frozen=True, slots=True)
class Handle:
    """A GPU, or an instance of one: by what name a recording calls it, and the library's own handle."""

    name: str
    real: Any = None


class Recorder:
    """pynvml, each of whose calls is kept in `lines`."""

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
                names = [_named(argument) for argument in arguments]
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
                answer = Handle(":".join(str(_named(argument)) for argument in arguments), answer)
            keep(answer=_told(name, answer))
            return answer

        return call


def _named(argument: Any) -> Any:
    return argument.name if isinstance(argument, Handle) else argument


def _told(name: str, answer: Any) -> Any:
    """An answer as JSON; structures become objects."""
    if isinstance(answer, Handle):
        return {"handle": answer.name}
    if name == _PROGRAM:
        return "program"
    if isinstance(answer, bytes):
        return answer.decode(errors="replace")
    if isinstance(answer, list | tuple):
        return [_told(name, element) for element in answer]
    if isinstance(answer, ctypes.Structure):
        fields = [field[0] for field in answer._fields_]
    elif isinstance(answer, int | float | str | None):
        return answer
    else:
        fields = list(vars(answer))
    return {field: _told("", getattr(answer, field)) for field in fields if field in _FIELDS.get(name, fields)}


class Replay:
    """pynvml as a recording has it: each call is answered as it was when it was made so often, at last as the last.

    What was not recorded is a function that the driver does not know.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        first, *calls = map(json.loads, lines)
        self.header: Mapping[str, Any] = first
        self.open = 0
        self._calls: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for call in calls:
            self._calls[_key(call["call"], call["arguments"])].append(call)

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        """As it started."""
        self._answer("nvmlInit")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        """Closed as often as it was opened, at the end."""
        self.open -= 1

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)
        if not name.startswith("nvml") or not callable(real):
            return real
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name: str, *arguments: Any) -> Any:
        answers = self._calls.get(_key(name, [_named(argument) for argument in arguments]))
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
    """The lines of a recording: this machine's GPUs as a run reads them, and so many seconds of watching them all."""
    recorder = Recorder()
    cards = read(recorder).cards
    with kept_open(cards, recorder):
        if cards:
            with Watch(cards, recorder):
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

"""The worker's events: one JSON object a line, from bytes in chunks of any size.

What is read was written by an untrusted script. Whatever it is, reading it never raises and takes bounded memory:
the first line that is no event is remembered as what went wrong, and nothing after it is read. Events and keys that
are not known are no mistake, since a newer worker may send them.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from harness.backends.text import shown
from harness.model.launch import Sample, Status

#: The longest line that is read, and the most that a launch may send, in bytes.
LINE_LIMIT = 1024**2
TOTAL_LIMIT = 16 * 1024**2

#: How deep a value may be nested: far more than results need, far less than what makes a writer of JSON fail.
DEPTH_LIMIT = 32

#: How a worker may say that it ended.
STATUSES = (Status.OK, Status.FAILED, Status.NOT_AVAILABLE, Status.CPU_FALLBACK)

#: What is known of the CPUs, the memory and compiled GPU code, each left out where the worker could not know it
#: (docs/contracts.md).
RESOURCES = (
    "cpu_seconds",
    "wall_seconds",
    "max_rss_bytes",
    "load_before",
    "steady_started",
    "steady_ended",
    "steady_seconds",
    "steady_cpu_seconds",
    "steady_own_cpus",
    "steady_own_cpus_busy_seconds",
    "steady_own_cpus_steal_seconds",
    "steady_all_cpus",
    "steady_all_cpus_busy_seconds",
    "ptx_cache_bytes",
    "ptx_cache_filled_bytes",
    "steady_ptx_cache_filled_bytes",
)

Event = dict[str, Any]


class Events:
    """What the worker has said so far.

    `error` is empty until a line was no event; from then on the launch has failed and may be killed.
    """

    def __init__(self) -> None:
        self.error = ""
        self.hello: dict[str, Any] = {}
        self.pins: dict[str, str] = {}
        self.phases: dict[str, float] = {}
        self.phases_cpu: dict[str, float] = {}
        self.samples: list[Sample] = []
        self.calls_per_sample: int | None = None
        self.observations: dict[str, Any] = {}
        self.fingerprint: dict[str, Any] = {}
        self.resources: dict[str, float] = {}
        self.artifacts: set[str] = set()
        self.status: Status | None = None
        self.reason = ""
        self.traceback = ""
        self._partial = bytearray()
        self._total = 0

    @property
    def torn(self) -> bool:
        """Whether what was read last is a line without its end."""
        return bool(self._partial)

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes of the stream; True where the launch has failed by them."""
        start = 0
        while not self.error and (end := chunk.find(b"\n", start)) >= 0:
            line = bytes(self._partial) + chunk[start:end]
            self._partial.clear()
            self._line(line)
            start = end + 1
        if not self.error:
            self._partial += chunk[start:]
            if len(self._partial) > LINE_LIMIT:
                self._fail("a line is longer than 1 MiB", bytes(self._partial))
        return bool(self.error)

    def _line(self, line: bytes) -> None:
        self._total += len(line) + 1
        if len(line) > LINE_LIMIT:
            self._fail("a line is longer than 1 MiB", line)
        elif self._total > TOTAL_LIMIT:
            self._fail("more than 16 MiB were written", line)
        else:
            try:
                event = _parse(line)
                take = TAKE.get(event["event"])
                if take is not None:
                    take(self, event)
            except ValueError as error:
                self._fail(str(error), line)

    def _fail(self, what: str, line: bytes) -> None:
        self.error = f"in its results, {what}: {shown(line)}"
        self._partial.clear()


def _parse(line: bytes) -> Event:
    try:
        event = json.loads(line.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
        if b"\\ud" in line.lower():  # half a surrogate pair cannot be written to any file
            event = json.loads(json.dumps(event, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise ValueError("a line is not JSON") from None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise ValueError("a line is no event")
    if _deeper(event, DEPTH_LIMIT):
        raise ValueError(f"a value is nested deeper than {DEPTH_LIMIT}")
    return event


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(each, levels - 1) for each in inner)


def _number(event: Event, key: str) -> float:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ValueError(f"{key} is not a number in a line")
    return float(value)


def _amount(event: Event, key: str) -> float:
    value = _number(event, key)
    if value < 0:
        raise ValueError(f"{key} is negative in a line")
    return value


def _count(event: Event, key: str) -> int:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        raise ValueError(f"{key} is not a positive whole number in a line")
    return value


def _text(event: Event, key: str, default: str | None = None) -> str:
    value = event.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise ValueError(f"{key} is not text in a line")
    return value


def _object(event: Event, key: str) -> dict[str, Any]:
    value = event.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"{key} is not an object in a line")
    return value


def _hello(events: Events, event: Event) -> None:
    for key in ("time", "started"):
        if event.get(key) is not None:
            _number(event, key)
    events.hello.update((key, value) for key, value in event.items() if key != "event")


def _pins(events: Events, event: Event) -> None:
    packages = _object(event, "packages")
    events.pins.update({name: _text(packages, name) for name in packages})


def _phase(events: Events, event: Event) -> None:
    name, seconds = _text(event, "name"), _amount(event, "seconds")
    if event.get("cpu_seconds") is not None:  # a worker that cannot tell leaves it out
        events.phases_cpu[name] = events.phases_cpu.get(name, 0.0) + _amount(event, "cpu_seconds")
    events.phases[name] = events.phases.get(name, 0.0) + seconds


def _samples(events: Events, event: Event) -> None:
    batch = event.get("samples")
    if not isinstance(batch, list):
        raise ValueError("samples is not a list in a line")
    samples = [_sample(each) for each in batch]
    if event.get("calls_per_sample") is not None:
        events.calls_per_sample = _count(event, "calls_per_sample")
    events.samples += samples


def _sample(value: object) -> Sample:
    if not isinstance(value, dict):
        raise ValueError("a sample is not an object in a line")
    seconds = _number(value, "seconds")
    if seconds <= 0:
        raise ValueError("a sample's seconds are not positive in a line")
    return Sample(seconds, _count(value, "steps"))


def _observation(events: Events, event: Event) -> None:
    events.observations[_text(event, "name")] = event.get("value")


def _fingerprint(events: Events, event: Event) -> None:
    events.fingerprint.update(_object(event, "values"))


def _artifact(events: Events, event: Event) -> None:
    events.artifacts.add(_text(event, "name"))


def _resources(events: Events, event: Event) -> None:
    for key in RESOURCES:
        if event.get(key) is not None:
            events.resources[key] = _amount(event, key)


def _end(events: Events, event: Event) -> None:
    status = event.get("status")
    if status not in STATUSES:
        raise ValueError("status is not known in a line")
    reason, traceback = _text(event, "reason", ""), _text(event, "traceback", "")
    if events.status is None:  # a launch ends once
        events.status, events.reason, events.traceback = Status(status), reason, traceback


TAKE: dict[str, Callable[[Events, Event], None]] = {
    "hello": _hello,
    "pins": _pins,
    "phase": _phase,
    "samples": _samples,
    "observation": _observation,
    "fingerprint": _fingerprint,
    "artifact": _artifact,
    "resources": _resources,
    "end": _end,
}

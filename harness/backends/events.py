"""The worker's events: one JSON object per line, from bytes in chunks of any size.

The input comes from an untrusted script. Whatever the input is, reading never raises an error and uses bounded memory.
The first line that isn't an event is recorded as the error, and later lines aren't read. Unknown events and keys are
accepted, because a newer worker may send them.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from harness.backends.untrusted_text import join_lines
from harness.files import parse_json
from harness.model.gpu import UsedGpu, format_pci_address
from harness.model.launch import Sample, Status
from harness.model.numbers import AMOUNT, BYTES, COUNT, LENGTH, SAMPLE, Within, find_problem, is_amount
from harness.model.texts import counted, format_plain

#: The largest number of bytes in a line, and in the whole output of a launch.
LINE_LIMIT = 1024**2
TOTAL_LIMIT = 16 * 1024**2

#: The largest number of bytes of an invalid line in an error message.
LINE_SHOWN = 200

#: The largest number of characters in the name of a GPU.
GPU_NAME = 100

#: The largest number of characters in a name, and the largest number of names of each kind in a launch. Each name is a
#: line in a table, and nobody reads thousands of lines.
NAME_LIMIT = 200
NAMED_LIMITS = {"phases": 1_000, "observations": 10_000, "artifacts": 1_000, "packages": 10_000}

#: The error for a line that a worker writes while it waits.
UNASKED = "it wrote a line while it waited for an answer"

#: The valid statuses in a worker's last event.
STATUSES = (Status.OK, Status.FAILED, Status.NOT_AVAILABLE, Status.CPU_FALLBACK)

#: The names of resources that a worker may report, each only if it is known (docs/dev/worker-protocol.md).
RESOURCES = (
    *("cpu_seconds", "wall_seconds", "max_rss_bytes", "warmup_steps", "load_before"),
    *("steady_started", "steady_ended", "steady_seconds", "steady_cpu_seconds", "steady_waited_seconds"),
    *("steady_minor_faults", "steady_pieces", "steady_own_cpus", "steady_own_cpus_busy_seconds"),
    *("steady_own_cpus_steal_seconds", "steady_all_cpus", "steady_all_cpus_busy_seconds"),
    *("between_steps", "between_seconds", "between_cpu_seconds"),
    *("ptx_cache_bytes", "ptx_cache_filled_bytes", "steady_ptx_cache_filled_bytes", "gpu_peak_bytes"),
    *("profiled_steps", "profiled_seconds", "profiled_plain_seconds", "profiled_kernel_seconds"),
    *("profiled_copy_seconds", "profiled_kernels", "profiled_copies", "profiled_launch_seconds"),
)

Event = dict[str, Any]
Read = TypeVar("Read")


class Events:
    """The events of a worker so far.

    `error` is empty until a line isn't a valid event. After that, the launch has failed and may be killed. A worker
    that `takes_turns` is interleaved with others: it announces that it waits for a command, and then `is_waiting` is
    true until it gets a command. Output while it waits, or about a turn that wasn't requested, isn't valid. A worker
    that `waits` may also wait before it measures.
    """

    def __init__(self, *, takes_turns: bool = False, waits: bool = False) -> None:
        self.error = ""
        self.is_waiting = False
        self.hello: dict[str, Any] = {}
        self.pins: dict[str, str] = {}
        self.phases: dict[str, float] = {}
        self.phases_cpu: dict[str, float] = {}
        self.samples: list[Sample] = []
        self.alone: list[Sample] = []
        self.follows: list[int] = []
        self.calls_per_sample: int | None = None
        self.memory: list[tuple[int, int]] = []
        self.observations: dict[str, Any] = {}
        self.fingerprint: dict[str, Any] = {}
        self.resources: dict[str, float] = {}
        self.gpus: tuple[UsedGpu, ...] = ()
        self.artifacts: set[str] = set()
        self.status: Status | None = None
        self.reason = ""
        self.traceback = ""
        self._takes_turns = takes_turns
        self._may_wait = takes_turns or waits
        self._last_command: str | None = None  # the last command that the worker got
        self._requested = 0  # the number of samples that this command requests
        self._partial = bytearray()
        self._total = 0

    @property
    def torn(self) -> bool:
        """Whether the last line is incomplete."""
        return bool(self._partial)

    def feed(self, chunk: bytes) -> bool:
        """Process the next bytes of the stream. Returns True if the worker now waits, or if the launch has failed."""
        start = 0
        while not self.error and (end := chunk.find(b"\n", start)) >= 0:
            line = bytes(self._partial) + chunk[start:end]
            self._partial.clear()
            self._feed_line(line)
            start = end + 1
        if not self.error:
            self._partial += chunk[start:]
            if len(self._partial) > LINE_LIMIT:
                self._fail("a line is longer than 1 MiB", bytes(self._partial))
        return bool(self.error) or self.is_waiting

    def ask(self, word: str) -> None:
        """Record that the waiting worker gets a command. All of its earlier output must have been processed."""
        if self.torn:
            self._fail(UNASKED, bytes(self._partial))
        self._last_command, _, count = word.partition(" ")
        self.is_waiting, self._requested = False, int(count or self._last_command == "turn")

    def _feed_line(self, line: bytes) -> None:
        self._total += len(line) + 1
        if len(line) > LINE_LIMIT:
            self._fail("a line is longer than 1 MiB", line)
        elif self._total > TOTAL_LIMIT:
            self._fail("more than 16 MiB were written", line)
        else:
            try:
                self._process_event(_parse(line))
            except ValueError as error:
                self._fail(str(error), line)

    def _fail(self, problem: str, line: bytes) -> None:
        start = join_lines(line[:LINE_SHOWN].decode("utf-8", "backslashreplace"), LINE_SHOWN)
        self.error = f"in its results, {problem}: {start}"
        self.is_waiting = False
        self._partial.clear()

    def _process_event(self, event: Event) -> None:
        """Process an event completely or not at all. Raises ValueError for an invalid event."""
        if self.is_waiting:
            raise ValueError(UNASKED)
        match event["event"]:
            case "hello":
                _read_optional(_read_number, event, "time")
                _read_optional(_read_number, event, "started")
                self.hello |= {key: value for key, value in event.items() if key != "event"}
            case "pins":
                packages = _read_object(event, "packages")
                for name in packages:
                    self.pins[_read_name(name, "packages", self.pins)] = _read_text(packages, name)
            case "phase":
                self._process_phase(event)
            case "samples":
                self._process_samples(event)
            case "ready":
                self._process_ready()
            case "turn":
                self._process_turn(event)
            case "end":
                self._process_end(event)
            case _:
                self._process_other_event(event)

    def _process_other_event(self, event: Event) -> None:
        match event["event"]:
            case "memory":
                self.memory += _read_points(event)
            case "observation":
                name = _read_name(_read_text(event, "name"), "observations", self.observations)
                self.observations[name] = event.get("value")
            case "fingerprint":
                self.fingerprint |= _read_object(event, "values")
            case "artifact":
                self.artifacts.add(_read_name(_read_text(event, "name"), "artifacts", self.artifacts))
            case "resources":
                self.resources |= {key: _read_amount(event, key) for key in RESOURCES if event.get(key) is not None}
            case "gpus":
                self.gpus = tuple(map(_read_gpu, _read_objects(event, "gpus")))

    def _process_phase(self, event: Event) -> None:
        name, seconds = _read_name(_read_text(event, "name"), "phases", self.phases), _read_amount(event, "seconds")
        cpu_seconds = _read_optional(_read_amount, event, "cpu_seconds")
        seconds = _require_within(self.phases.get(name, 0.0) + seconds, LENGTH, "seconds")
        if cpu_seconds is not None:  # a worker omits unknown CPU times
            self.phases_cpu[name] = _require_within(self.phases_cpu.get(name, 0.0) + cpu_seconds, AMOUNT, "cpu_seconds")
        self.phases[name] = seconds

    def _process_end(self, event: Event) -> None:
        status = event.get("status")
        if status not in STATUSES:
            raise ValueError("a line has an unknown status")
        reason, traceback = (_read_optional(_read_text, event, key) or "" for key in ("reason", "traceback"))
        if self.status is None:  # a launch ends once
            self.status, self.reason, self.traceback = Status(status), reason, traceback

    def _process_samples(self, event: Event) -> None:
        # if a worker announces no turns, it isn't interleaved, even if the other launches of its round are
        if self._takes_turns and not self._is_before_turns:
            raise ValueError("a line has samples that aren't from a turn")
        self._add_samples(event, _read_samples(event))

    def _process_ready(self) -> None:
        if not self._may_wait or self._last_command is not None or self.samples:
            raise ValueError("a line announces a wait in a launch without interleaving")
        self.is_waiting = True

    @property
    def _is_before_turns(self) -> bool:
        """Whether the worker hasn't had a turn yet."""
        return self._last_command in (None, "measure")

    def _process_turn(self, event: Event) -> None:
        if not self._takes_turns or self._last_command == "end":
            raise ValueError("a line has a turn that wasn't requested")
        if self._is_before_turns and self.samples:
            raise ValueError("a line has samples before the first turn")
        samples = _read_samples(event)
        if len(samples) != self._requested:
            raise ValueError(f"a line does not have the {counted(self._requested, 'requested sample')} of this turn")
        self._add_samples(event, samples[:1])
        self.alone += samples[1:]
        self.follows += [len(self.samples) - 1] * len(samples[1:])
        self.is_waiting = True

    def _add_samples(self, event: Event, samples: Sequence[Sample]) -> None:
        calls = _read_optional(_read_count, event, "calls_per_sample")
        self.samples += samples
        self.calls_per_sample = self.calls_per_sample if calls is None else calls


def _parse(line: bytes) -> Event:
    try:
        text = json.dumps(parse_json(line.decode("utf-8")), ensure_ascii=False, allow_nan=False)
        event = parse_json(text.encode("utf-8", "replace"))  # because half of a surrogate pair can't be stored
    except ValueError:
        raise ValueError("a line is not JSON") from None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise ValueError("a line isn't an event")
    if problem := find_problem(event):  # statistics couldn't use it
        raise ValueError(problem)
    return event


def _read_optional(read: Callable[[Event, str], Read], event: Event, key: str) -> Read | None:
    """Return the result of `read`; None if the worker omitted the key."""
    return None if event.get(key) is None else read(event, key)


def _read_number(event: Event, key: str) -> float:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= AMOUNT.most:
        raise ValueError(f"{key} is not a valid number")
    return float(value)


def _require_within(value: float, range_: Within, key: str) -> float:
    if value not in range_:
        raise ValueError(f"{key} is not between {format_plain(range_.least)} and {format_plain(range_.most)}")
    return value


def _read_amount(event: Event, key: str) -> float:
    value = _read_number(event, key)
    if value < 0:
        raise ValueError(f"{key} is negative")
    if not is_amount(value):
        raise ValueError(f"{key} is too close to zero")
    return value


def _read_count(event: Event, key: str) -> int:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= COUNT.most:
        raise ValueError(f"{key} is not a positive whole number")
    return value


def _read_text(event: Event, key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is not text")
    return value


def _read_name(name: str, kind: str, names: Collection[str]) -> str:
    """Return the name of an event. Raises ValueError if the name is too long, or its kind has too many names."""
    if len(name) > NAME_LIMIT:
        raise ValueError(f"a name is longer than {NAME_LIMIT} characters")
    if name not in names and len(names) >= NAMED_LIMITS[kind]:
        raise ValueError(f"there are more than {NAMED_LIMITS[kind]:,} {kind}")
    return name


def _read_object(event: Event, key: str) -> dict[str, Any]:
    value = event.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"{key} is not an object")
    return value


def _read_objects(event: Event, key: str) -> list[Event]:
    value = event.get(key)
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        raise ValueError(f"{key} is not a list of objects")
    return value


def _read_gpu(event: Event) -> UsedGpu:
    capability = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", _read_text(event, "capability"))
    if not capability:
        raise ValueError("capability must be a compute capability such as 8.0")
    pci = format_pci_address(_read_optional(_read_text, event, "pci") or "")
    return UsedGpu(join_lines(_read_text(event, "name"), GPU_NAME), (int(capability[1]), int(capability[2])), pci)


def _read_samples(event: Event) -> list[Sample]:
    samples = [
        Sample(
            _read_number(entry, "seconds"),
            _read_count(entry, "steps"),
            _read_optional(_read_amount, entry, "cpu_seconds"),
        )
        for entry in _read_objects(event, "samples")
    ]
    if any(sample.seconds <= 0 for sample in samples):
        raise ValueError("the duration of a sample isn't positive")
    for sample in samples:
        _require_within(sample.seconds, SAMPLE, "the duration of a sample")
    return samples


def _read_points(event: Event) -> list[tuple[int, int]]:
    points = event.get("points")
    if not isinstance(points, list) or not all(map(_is_point, points)):
        raise ValueError("points are not pairs of whole numbers")
    return [(calls, memory_bytes) for calls, memory_bytes in points]


def _is_point(value: object) -> bool:
    """Return whether a value is a pair of whole numbers that aren't negative."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value)
        and value[0] in COUNT
        and value[1] in BYTES
    )

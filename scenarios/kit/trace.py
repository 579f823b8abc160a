"""The activity of a GPU, from the Trace of TensorFlow's profiler, in any release.

It is a protocol buffer. Its few required fields have had the same numbers since 1.14 (trace_events.proto), while the
module that reads it has moved: so it is parsed by the wire format (protobuf.dev/programming-guides/encoding). The
meaning of events follows from device_tracer.cc and profiler_session.cc up to 2.1, and from cupti_collector.cc and
xplane_to_trace_events.cc later. Times are picoseconds of the profiler's clock.
"""

import re
from collections import namedtuple

# kernels, copies: from when to when each ran on a GPU, filling memory being a copy too; launching: from when to when a
# thread of the CPU was handing one over, None where that is not told.
Seen = namedtuple("Seen", "kernels copies launching")

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

# Up to 2.0, then in 2.1, a device of the trace is a stream, with the kind of its copies where it has such alone.
STREAM = re.compile(
    r"/gpu:\d+ \(.*\)/context#\d+/(?:stream#|null stream)|/device:GPU:\d+/stream:\d+(?:<(?P<copies>\w+)>)?$"
)
# From 2.2 on it is a GPU; and what threads of the CPU asked of the driver is one too, or with all else that they did.
GPU = re.compile(r"/device:GPU:\d+$")
THREADS = re.compile(r"/host:(?:CUPTI|CPU)$")
# CUPTI's events of a GPU and of the driver have this argument; its own work and TensorFlow's functions don't.
OF_CUPTI = b"correlation_id"

COPY = re.compile(r"Memcpy|Memset")
# Calls of the driver that hand over nothing. The launch of a kernel has the kernel's name.
NO_LAUNCH = re.compile(r"cu(?!Launch|GraphLaunch|Memcpy|Memset)[A-Z]")


def read(data):
    """Return the profiler's result from the bytes of a Trace. Raises ValueError if they are invalid."""
    trace = parse(memoryview(data), {1: (), 4: ()})
    names = device_names(trace[1])
    streams = {device: STREAM.match(name) for device, name in names.items()}
    gpus, threads = ({device for device, name in names.items() if kind.match(name)} for kind in (GPU, THREADS))
    kernels, copies, launching = [], [], []
    for message in trace[4]:
        event = parse(message, {1: 0, 3: b"", 9: 0, 10: 0, 11: ()})
        device, name, place = event[1], text(event[3]), (event[9], event[9] + event[10])
        stream = streams.get(device)
        if stream or (device in gpus and is_of_cupti(event[11])):
            is_copy = COPY.match(name) or (stream and stream.group("copies"))
            (copies if is_copy else kernels).append(place)
        elif device in threads and is_of_cupti(event[11]) and not NO_LAUNCH.match(name):
            launching.append(place)
    return Seen(kernels, copies, launching or None)


def device_names(entries):
    """The names of a trace's devices by their numbers."""
    names = {}
    for entry in entries:
        pair = parse(entry, {1: 0, 2: b""})
        names[pair[1]] = text(parse(pair[2], {1: b""})[1])
    return names


def is_of_cupti(arguments):
    """Whether an event with these arguments is of a GPU's work or of a call of the driver."""
    return any(parse(entry, {1: b""})[1] == OF_CUPTI for entry in arguments)


def parse(message, wanted):
    """Return the wanted fields of a message, by number: the last value of each, or a list of all. Raises ValueError.

    wanted: the default of each: 0, b"" for a string or a message, () for several. A field of another type is ignored,
    as every reader of protocol buffers does.
    """
    values = {number: [] if absent == () else absent for number, absent in wanted.items()}
    for number, value in fields(message):
        if number in values and isinstance(value, int) == isinstance(wanted[number], int):
            if wanted[number] == ():
                values[number].append(value)
            else:
                values[number] = value
    return values


def fields(message):
    """The fields of a message, each as number and value: an int, or a memoryview. Raises ValueError."""
    message = memoryview(message)
    at, end = 0, len(message)
    while at < end:
        key, at = varint(message, at)
        kind = key & 7
        if kind == VARINT:
            value, at = varint(message, at)
        else:
            length = {FIXED64: 8, FIXED32: 4}.get(kind)
            if kind == LENGTH:
                length, at = varint(message, at)
            if length is None or length > end - at:
                raise ValueError("the profiler's data isn't a complete protocol buffer")
            value = message[at : at + length]
            at += length
        yield key >> 3, value


def varint(message, at):
    """Return the integer that starts at a position, and the position after it. Raises ValueError."""
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("the profiler's data isn't a complete protocol buffer")


def text(value):
    """A string of a message."""
    return bytes(value).decode("utf-8", "replace")


def union(*intervals):
    """How long at least one of some intervals lasts, in their unit: of lists of (start, end)."""
    total = 0
    reached = None
    for start, end in sorted(interval for some in intervals for interval in some):
        if reached is None or start > reached:
            reached = start
        if end > reached:
            total += end - reached
            reached = end
    return total

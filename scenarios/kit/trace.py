"""Reads the activity of a GPU from the Trace of TensorFlow's profiler, in any release.

The Trace is a protocol buffer. TensorFlow's module for it has moved between releases, but the few required fields have
had the same numbers since 1.14 (trace_events.proto). So the wire format is parsed here
(protobuf.dev/programming-guides/encoding). The sources for the meaning of events are device_tracer.cc and
profiler_session.cc up to 2.1, and later cupti_collector.cc and xplane_to_trace_events.cc. Times are picoseconds of the
profiler's clock.
"""

import re
from collections import namedtuple

# kernels, copies: the start and the end of each of them on a GPU (a memset counts as a copy); launching: the start and
# the end of each call with which a CPU thread launched a kernel or a copy, or None if the trace has no such calls.
Seen = namedtuple("Seen", "kernels copies launching")

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

# Up to 2.1, a device in the trace is a stream of a GPU. The first form is for releases up to 2.0, the second for 2.1.
# A stream that only copies has the kind of its copies in its name.
STREAM = re.compile(
    r"/gpu:\d+ \(.*\)/context#\d+/(?:stream#|null stream)|/device:GPU:\d+/stream:\d+(?:<(?P<copies>\w+)>)?$"
)
# From 2.2 on, a device in the trace is a GPU. The driver calls of CPU threads are another device, in some releases
# together with all other work of these threads.
GPU = re.compile(r"/device:GPU:\d+$")
THREADS = re.compile(r"/host:(?:CUPTI|CPU)$")
# CUPTI's events for GPU work and driver calls have this argument. Events for its overhead and for TensorFlow's
# functions don't.
OF_CUPTI = b"correlation_id"

COPY = re.compile(r"Memcpy|Memset")
# Driver calls that launch nothing. The event for the launch of a kernel has the kernel's name.
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
        device, name, interval = event[1], text(event[3]), (event[9], event[9] + event[10])
        stream = streams.get(device)
        if stream or (device in gpus and is_of_cupti(event[11])):
            is_copy = COPY.match(name) or (stream and stream.group("copies"))
            (copies if is_copy else kernels).append(interval)
        elif device in threads and is_of_cupti(event[11]) and not NO_LAUNCH.match(name):
            launching.append(interval)
    return Seen(kernels, copies, launching or None)


def device_names(entries):
    """Return the names of a trace's devices, by device number."""
    names = {}
    for entry in entries:
        pair = parse(entry, {1: 0, 2: b""})
        names[pair[1]] = text(parse(pair[2], {1: b""})[1])
    return names


def is_of_cupti(arguments):
    """Return whether an event with these arguments is GPU work or a driver call."""
    return any(parse(entry, {1: b""})[1] == OF_CUPTI for entry in arguments)


def parse(message, wanted):
    """Return the wanted fields of a message, by number: the last value of each, or a list of all. Raises ValueError.

    wanted: default values by field number: 0 for an integer, b"" for a string or a message, and () for a repeated
    field. A field of another type is ignored, as protocol buffers require.
    """
    values = {number: [] if default == () else default for number, default in wanted.items()}
    for number, value in fields(message):
        if number in values and isinstance(value, int) == isinstance(wanted[number], int):
            if wanted[number] == ():
                values[number].append(value)
            else:
                values[number] = value
    return values


def fields(message):
    """Yield the number and the value (an int or a memoryview) of each field of a message. Raises ValueError."""
    message = memoryview(message)
    position, end = 0, len(message)
    while position < end:
        key, position = varint(message, position)
        kind = key & 7
        if kind == VARINT:
            value, position = varint(message, position)
        else:
            length = {FIXED64: 8, FIXED32: 4}.get(kind)
            if kind == LENGTH:
                length, position = varint(message, position)
            if length is None or length > end - position:
                raise ValueError("the profiler's data isn't a complete protocol buffer")
            value = message[position : position + length]
            position += length
        yield key >> 3, value


def varint(message, position):
    """Return the integer that starts at a position, and the position after it. Raises ValueError."""
    value = shift = 0
    while position < len(message) and shift < 64:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("the profiler's data isn't a complete protocol buffer")


def text(value):
    """Decode a string field."""
    return bytes(value).decode("utf-8", "replace")


def union(*intervals):
    """Return the length of the union of intervals, in their unit. The arguments are lists of (start, end)."""
    total = 0
    last_end = None
    for start, end in sorted(interval for intervals_of_kind in intervals for interval in intervals_of_kind):
        if last_end is None or start > last_end:
            last_end = start
        if end > last_end:
            total += end - last_end
            last_end = end
    return total

"""The Trace that TensorFlow's profiler hands over, as a protocol buffer, by trace_events.proto.

Names of devices, events and arguments are those of profiler_session.cc and device_tracer.cc up to 2.1, and of
cupti_collector.cc and xplane_to_trace_events.cc from 2.2 on.
"""

#: What CUPTI tells of a kernel on a GPU, of a copy, and of a call of the driver; and TensorFlow of a function.
KERNEL = {"correlation_id": "12", "context_id": "$$1", "tf_op": "dense/MatMul:MatMul"}
COPY = {"correlation_id": "13", "memcpy_details": "kind_src:pageable kind_dst:device size:4 dest:0 async:1"}
CALL = {"device_id": "0", "correlation_id": "12"}
FUNCTION = {"id": "7", "is_eager": "1"}


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(*fields):
    """Fields as (number, value): whole numbers, texts and bytes. As in proto3, what is 0 or empty is left out."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value) if value else b""
        else:
            raw = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def trace(devices):
    """A Trace: of each device by its name the events, as (name, start, duration, arguments), in nanoseconds."""
    fields = []
    for number, (name, events) in enumerate(devices.items(), 1):
        resource = message((1, 14), (2, message((1, "Stream #14(Compute,MemcpyH2D)"), (2, 14))))
        fields.append((1, message((1, number), (2, message((1, name), (2, number), (3, resource))))))
        for event, start, duration, *arguments in events:
            details = [(11, message((1, key), (2, value))) for argument in arguments for key, value in argument.items()]
            place = [(9, start * 1000), (10, duration * 1000)]
            fields.append((4, message((1, number), (2, 14), (3, event), *place, *details)))
    return message(*fields)

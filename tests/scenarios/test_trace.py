"""What a GPU did, from the Trace of TensorFlow's profiler: made as each release makes it, since there is no GPU."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.trace import Seen, read, union

from tests.scenarios.wire import CALL, COPY, FUNCTION, KERNEL, message, trace

GPU, THREADS = "/device:GPU:0", "/host:CPU"


def at(*places):
    """Nanoseconds after the start, in the profiler's picoseconds."""
    return [(start * 1000, (start + duration) * 1000) for start, duration in places]


def test_kernels_and_copies_of_a_gpu_are_told_apart():
    events = [
        ("void Eigen::internal::EigenMetaKernel<...>(...)", 100, 50, KERNEL),
        ("MemcpyH2D", 10, 5, COPY),
        ("volta_sgemm_128x64_nn", 200, 60, KERNEL),
        ("CudaGraphExec:3", 500, 90, KERNEL),
        ("BUFFER_FLUSH", 0, 500),  # what CUPTI does itself
        ("Memset", 300, 2, {"correlation_id": "14", "Memset_details": "kind:device num_bytes:4 async:1"}),
    ]
    activity = read(
        trace({THREADS: [("FunctionRun", 0, 900, FUNCTION)], GPU: events, "/device:GPU:1": [("k", 5, 2, KERNEL)]})
    )
    assert activity == Seen(at((100, 50), (200, 60), (500, 90), (5, 2)), at((10, 5), (300, 2)), None)
    assert read(b"") == Seen([], [], None)


def test_launching_is_what_the_driver_is_asked_to_start_not_what_is_waited_for():
    events = [
        ("volta_sgemm_128x64_nn", 0, 4, CALL),  # a launch has its kernel's name, ...
        ("cuLaunchKernel", 10, 4, CALL),  # ... unless that is not known
        ("cutlass_80_tensorop_s1688gemm", 15, 2, CALL),
        ("MemcpyH2D", 20, 6, {**CALL, **COPY}),
        ("cuGraphLaunch (CudaGraph:3)", 30, 7, CALL),
        ("cuStreamSynchronize", 40, 800, CALL),
        ("cuMemAlloc_v2", 50, 90, CALL),
        ("INSTRUMENTATION", 60, 90),
        ("EagerKernelExecute", 0, 900, FUNCTION),
    ]
    for threads in (THREADS, "/host:CUPTI"):  # the second in 2.2, before what threads did was merged
        assert read(trace({threads: events})).launching == at((0, 4), (10, 4), (15, 2), (20, 6), (30, 7))


def test_up_to_2_1_devices_are_streams():
    kernel, copy = ("volta_sgemm_128x64_nn", 10_000, 5_000), ("MemcpyHtoD", 3_000, 2_000)
    with_all_streams = {  # up to 2.0, each event is once more in a device of all streams
        "/device:GPU:0/stream:all": [kernel, copy],
        "/gpu:0 (Tesla T4)/context#0/stream#1:Kernel": [kernel],
        "/gpu:0 (Tesla T4)/context#0/null stream": [copy],
        "/job:localhost/replica:0/task:0/device:GPU:0": [("MatMul", 0, 900_000)],
    }
    by_kind = {  # in 2.1, a device is a stream's kernels or one kind of its copies
        THREADS: [("MatMul", 0, 900)],
        "/device:GPU:0/stream:14": [("MatMul", 10_000, 5_000, {"label": "volta_sgemm regs:122"})],
        "/device:GPU:0/stream:15<MemcpyH2D>": [("Const", 3_000, 2_000)],
        "/device:GPU:0/stream:": [("unknown", 0, 900)],
    }
    for devices in (with_all_streams, by_kind):
        assert read(trace(devices)) == Seen(at((10_000, 5_000)), at((3_000, 2_000)), None)


def test_fields_of_a_newer_schema_are_passed_over_and_what_is_no_protocol_buffer_refused():
    newer = message((99, 5), (98, "new"), (1, 5)) + b"\xd1\x05" + bytes(8)
    assert read(trace({GPU: [("k", 1, 2, KERNEL)]}) + newer).kernels == at((1, 2))
    for data in (b"\x0a", b"\x0a\x05abc", b"\x0f", b"\x80" * 20, b"\x09abc"):
        with pytest.raises(ValueError, match="the profiler's data isn't a complete protocol buffer"):
            read(data)


@given(cut=st.integers(min_value=1, max_value=150))
def test_what_is_cut_off_never_tells_more_than_the_whole(cut):
    complete = trace({GPU: [("k", 1, 2, KERNEL), ("MemcpyD2H", 7, 2, COPY)]})
    with suppress(ValueError):
        activity = read(complete[:-cut])
        assert len(activity.kernels) + len(activity.copies) < 2


INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], sum(pair))))


@given(INTERVALS, INTERVALS)
def test_a_union_is_as_long_as_the_moments_in_it(some, others):
    moments = {moment for start, end in [*some, *others] for moment in range(start, end)}
    assert union(some, others) == len(moments)

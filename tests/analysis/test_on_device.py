"""What TensorFlow's profiler saw of a GPU, by cell."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.on_device import OnDevice, collect_recordings, explain_missing
from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import ON_DEVICE, UNDER_WAY, Role, Status
from tests.factories import cell, launch, run

ON_GPU = cell(device=Device.GPU)

#: Ten steps that took a second under the profiler, and half of that without.
SEEN = {
    "profiled_steps": 10.0,
    "profiled_seconds": 1.0,
    "profiled_plain_seconds": 0.5,
    "profiled_kernel_seconds": 0.07,
    "profiled_copy_seconds": 0.02,
    "profiled_kernels": 4120.0,
    "profiled_copies": 20.0,
    "profiled_launch_seconds": 0.31,
}


def pilot(resources=None, **changes):
    return launch(ON_GPU, 0.05, 0, resources=SEEN if resources is None else resources, **changes)


def untold_of(*launches):
    measured = [*launches, launch(ON_GPU, 0.05, 1)]
    return Results(run([ON_GPU]), measured).untold_on_device


def test_shares_of_the_steps_under_the_profiler_tell_what_is_launch_bound():
    (recording,) = collect_recordings([pilot(), launch(ON_GPU, 0.05, 1)]).values()
    assert recording == OnDevice(0.07, 0.02, 0.31, 412.0, 2.0, slower=2.0)
    assert recording.nothing == pytest.approx(0.91)
    # without a pilot, the first launch has told
    assert list(collect_recordings([launch(ON_GPU, 0.05, 1, resources=SEEN)])) == [ON_GPU]
    for kernels, slower, bound in [(0.3, 2.0, False), (0.3, 1.2, True), (0.51, 0.9, False), (0.49, 0.9, True)]:
        assert OnDevice(kernels, 0.0, None, 1.0, 0.0, slower).is_launch_bound is bound


def test_what_was_not_told_is_no_zero():
    changed = {
        "profiled_copy_seconds": {"copies": 0.0},
        "profiled_launch_seconds": {"launching": None},
        "profiled_kernels": {"kernel_count": None},
        "profiled_copies": {"copy_count": None},
    }
    for name in SEEN:
        recording = list(
            collect_recordings([pilot({key: value for key, value in SEEN.items() if key != name})]).values()
        )
        complete = OnDevice(0.07, 0.02, 0.31, 412.0, 2.0, slower=2.0)
        assert recording == ([replace(complete, **changed[name])] if name in changed else []), name


@given(*[st.floats(0.0, 1e6) for _ in range(5)])
def test_shares_stay_shares(seconds, plain, kernel, copy, launching):
    resources = dict(zip(SEEN, [5.0, seconds, plain, kernel, copy, 1.0, 1.0, launching], strict=True))
    for recording in collect_recordings([pilot(resources)]).values():
        for share in (recording.kernels, recording.copies, recording.nothing, recording.launching):
            assert 0.0 <= share <= 1.0


def test_why_nothing_was_seen_is_the_launch_s_own_sentence(snapshot):
    failed = {"status": Status.FAILED, "observations": {ON_DEVICE: UNDER_WAY}}
    # a process that ended under the profiler
    killed = pilot({}, error="killed by signal 11", **failed)
    assert list(untold_of(killed, pilot({})).items()) == [(ON_GPU, snapshot)]
    sentence = "TensorFlow's profiler"
    assert untold_of(pilot({}, observations={ON_DEVICE: sentence})) == {ON_GPU: sentence}
    # kernels that were seen, and a run from before there was such a pass
    assert untold_of(pilot(observations={ON_DEVICE: sentence})) == untold_of(pilot({})) == {}
    # a cell without a number says that and no more
    repeated = pilot({}, status=Status.FAILED, role=Role.PILOT, order=1)
    assert Results(run([ON_GPU]), [pilot({}, **failed), repeated]).untold_on_device == {}
    assert explain_missing([], Results(run([ON_GPU]), []).found) == {}
    results = Results(run([ON_GPU]), [pilot(), launch(ON_GPU, 0.05, 1)])
    assert [entry.on_device for entry in results.cells] == list(results.on_device.values())

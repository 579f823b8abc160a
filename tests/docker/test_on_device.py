"""The pass under TensorFlow's profiler in real releases. They have no GPU here: it runs, and tells that it saw none.

What it hands over is read as the release's own protocol buffers read it, and so is what a GPU's part of it would be.
"""

from pathlib import Path

import pytest

from harness.model.launch import Status

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

ROOT = Path(__file__).parents[2]

PRODUCT = b"""
import importlib
import keras_step
from kit import on_device, trace

def scenario(bench, mode):
    import tensorflow as tf
    keras_step.choose_mode(tf, mode)
    bench.device()
    step = make_step(tf, mode)
    step()
    bench.observe("calls", on_device.look(tf, step, 1, lambda event, **told: bench.observe(event, told)))
    _, data = on_device.profiler(tf)(step, 2)
    bench.observe("seen", trace.read(data))
    schema = own("tsl.profiler.protobuf", "core.profiler.protobuf", "core.protobuf")
    found = trace.parse(memoryview(data), {1: (), 4: ()})
    events = [trace.parse(each, {1: 0, 3: b"", 9: 0, 10: 0}) for each in found[4]]
    bench.observe("ours", [trace.device_names(found[1]), [[e[1], trace.text(e[3]), e[9], e[10]] for e in events]])
    theirs = schema.Trace.FromString(data)
    events = [[e.device_id, e.name, e.timestamp_ps, e.duration_ps] for e in theirs.trace_events]
    bench.observe("theirs", [{at: device.name for at, device in theirs.devices.items()}, events])
    bench.observe("of a GPU", trace.read(of_a_gpu(schema).SerializeToString()))

def make_step(tf, mode):
    if mode == "graph":
        graph = tf.Graph()
        with graph.as_default():
            x = tf.compat.v1.placeholder(tf.float32, (8, 8))
            product = tf.matmul(x, x)
        session = tf.compat.v1.Session(graph=graph)
        return lambda: session.run(product, {x: [[1.0] * 8] * 8})
    x = tf.ones((8, 8))
    product = tf.function(lambda x: tf.matmul(x, x))
    return lambda: product(x)

def own(*packages):
    for package in packages:
        try:
            return importlib.import_module("tensorflow." + package + ".trace_events_pb2")
        except ImportError:
            pass

def of_a_gpu(schema):
    made = schema.Trace()
    made.devices[501].name = "/host:CPU"
    made.devices[1].name = "/device:GPU:0"
    made.devices[1].resources[14].name = "Stream #14(Compute,MemcpyH2D)"
    for device, name, start in ((1, "sgemm", 1), (1, "MemcpyH2D", 2), (501, "cuLaunchKernel", 0)):
        event = made.trace_events.add(device_id=device, name=name, timestamp_ps=start, duration_ps=10)
        event.args["correlation_id"] = "12"
    return made
"""

BOTH = ["graph", "eager"]
MODES = {"tf1.14": BOTH, "tf2.0": BOTH, "tf2.1": ["eager"], "tf2.2": BOTH} | {
    name: ["eager"] for name in ("tf2.5", "tf2.10", "tf2.15", "tf2.21")
}


@pytest.fixture(scope="module")
def observed(launched):
    """Launches an environment in a mode, and returns what was observed."""

    def observe(name, mode):
        outcome = launched(name, PRODUCT, {"mode": mode})
        assert outcome.status is Status.OK, outcome.error + outcome.stderr
        return outcome.observations

    return observe


@pytest.mark.parametrize(("environment", "mode"), [(name, mode) for name, modes in MODES.items() for mode in modes])
def test_the_pass_runs_and_reads_what_the_release_hands_over(observed, environment, mode):
    seen = observed(environment, mode)
    assert 4 <= seen["calls"] <= 22, "up to ten under the profiler, as many without, and two before"
    assert seen["observation"]["name"] == "time on the device"
    assert seen["observation"]["value"] == "TensorFlow's profiler saw no kernel on a GPU"
    assert "resources" not in seen
    assert seen["ours"] == seen["theirs"]
    assert seen["ours"][1], "what ran on the CPU"
    assert seen["seen"] == [[], [], None]
    assert seen["of a GPU"] == [[[1, 11]], [[2, 12]], [[0, 10]]]

"""The pass under TensorFlow's profiler in real releases. They have no GPU here: it runs, and tells that it saw none.

What it hands over is read as the release's own protocol buffers read it, and so is what a GPU's part of it would be.
"""

import pytest

from harness.model.launch import Status
from tests.lacking import for_a_campaign

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

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
    bench.observe("calls", on_device.look(tf, step, 1, lambda event, **values: bench.observe(event, values)))
    _, data = on_device.profiler(tf)(step, 2)
    bench.observe("seen", trace.read(data))
    schema = own("tsl.profiler.protobuf", "core.profiler.protobuf", "core.protobuf")
    parsed = trace.parse(memoryview(data), {1: (), 4: ()})
    events = [trace.parse(part, {1: 0, 3: b"", 9: 0, 10: 0}) for part in parsed[4]]
    names = trace.device_names(parsed[1])
    bench.observe("ours", [names, [[event[1], trace.text(event[3]), event[9], event[10]] for event in events]])
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
    result = schema.Trace()
    result.devices[501].name = "/host:CPU"
    result.devices[1].name = "/device:GPU:0"
    result.devices[1].resources[14].name = "Stream #14(Compute,MemcpyH2D)"
    for device, name, start in ((1, "sgemm", 1), (1, "MemcpyH2D", 2), (501, "cuLaunchKernel", 0)):
        event = result.trace_events.add(device_id=device, name=name, timestamp_ps=start, duration_ps=10)
        event.args["correlation_id"] = "12"
    return result
"""

#: The oldest release in graphs and the newest one with eager execution; others are for a campaign.
CELLS = [("tf1.14", "graph"), ("tf2.21", "eager")]
OTHERS = [("tf1.14", "eager"), ("tf2.0", "graph"), ("tf2.2", "graph")]
OTHERS += [(f"tf2.{minor}", "eager") for minor in (0, 1, 2, 5, 10, 15)]
CELLS += for_a_campaign(*OTHERS)


@pytest.mark.parametrize(("environment", "mode"), CELLS)
def test_the_pass_runs_and_reads_what_the_release_hands_over(launched, environment, mode):
    outcome = launched(environment, PRODUCT, {"mode": mode})
    assert outcome.status is Status.OK, outcome.error + outcome.stderr
    observations = outcome.observations
    assert 4 <= observations["calls"] <= 22, "up to ten under the profiler, as many without, and two before"
    assert observations["observation"]["name"] == "time on the device"
    assert observations["observation"]["value"] == "TensorFlow's profiler saw no kernel on a GPU"
    assert "resources" not in observations
    assert observations["ours"] == observations["theirs"]
    assert observations["ours"][1], "what ran on the CPU"
    assert observations["seen"] == [[], [], None]
    assert observations["of a GPU"] == [[[1, 11]], [[2, 12]], [[0, 10]]]

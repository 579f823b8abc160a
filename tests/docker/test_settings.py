"""Settings in real releases: what is asked for is on, and what Keras does by itself is seen."""

import pytest

from harness.model.launch import Status
from tests.lacking import for_a_campaign

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

#: A step of Keras and a function, or a product operation by operation; with `pretend`, Keras finds a GPU.
WORK = b"""
def scenario(bench, mode, pretend):
    import types
    import tensorflow as tf

    if mode == "graph" and tf.executing_eagerly():
        tf.compat.v1.disable_eager_execution()
    if mode != "graph" and not tf.executing_eagerly():
        tf.compat.v1.enable_eager_execution()
    if mode == "operations":
        bench.device()
        x = tf.ones((8, 8))
        bench.measure(lambda: tf.matmul(x, x))
        return
    keras = tf.keras
    keras.layers
    if pretend:
        devices = [types.SimpleNamespace(device_type="GPU")]
        for config in (tf.config, tf.compat.v2.config):
            config.list_physical_devices = lambda *_: devices
    bench.device()
    keras.backend.clear_session()
    inputs = keras.layers.Input((8,))
    hidden = keras.layers.Dense(8, activation="relu")(inputs)
    network = keras.models.Model(inputs, keras.layers.Dense(1)(hidden))
    network.compile(optimizer=keras.optimizers.Adam(), loss="mse")
    import numpy

    x, y = numpy.ones((4, 8), "float32"), numpy.ones((4, 1), "float32")
    network.train_on_batch(x, y)
    bench.measure(lambda: network.train_on_batch(x, y))
    bench.observe("computed in", str(getattr(hidden.dtype, "name", hidden.dtype)))
"""


@pytest.fixture(scope="module")
def launch(launched):
    """Launches the work in an environment with settings, and returns the outcome."""

    def work(name, mode="eager", *, pretend="", **settings):
        return launched(name, WORK, {"mode": mode, "pretend": pretend}, thorough=True, settings=settings)

    return work


def read_settings(outcome):
    assert outcome.status is Status.OK, outcome.error + outcome.stderr
    return outcome.observations["settings"]


@pytest.mark.parametrize("environment", ["tf2.0", *for_a_campaign(("tf1.14",), ("tf2.5",))])
def test_nothing_is_on_where_nothing_was_asked_for(launch, environment):
    assert read_settings(launch(environment)) == {"xla": [], "precision": "float32", "deterministic": "off"}


XLA = [*((name, "eager") for name in ("tf1.14", "tf2.5", "tf2.15", "tf2.21")), ("tf2.5", "graph")]


@pytest.mark.parametrize(("environment", "mode"), [("tf1.14", "graph"), *for_a_campaign(*XLA)])
def test_xla_compiles_what_it_can_and_that_is_something(launch, environment, mode):
    assert read_settings(launch(environment, mode, xla="on"))["xla"] == ["what it can"]


# each step of 2.0's train_on_batch goes operation by operation
@pytest.mark.parametrize(
    ("environment", "mode"), [("tf2.0", "eager"), *for_a_campaign(("tf1.14", "operations"), ("tf2.15", "operations"))]
)
def test_xla_finds_nothing_in_single_operations(launch, environment, mode):
    outcome = launch(environment, mode, xla="on")
    assert outcome.status is Status.NOT_AVAILABLE
    assert "XLA finds nothing to compile" in outcome.error


@pytest.mark.parametrize(
    ("environment", "function"), [("tf2.21", "one_step_on_data"), *for_a_campaign(("tf2.15", "_update_step_xla"))]
)
def test_what_keras_has_xla_compile_on_a_gpu_is_seen_and_can_be_turned_off(launch, environment, function):
    assert read_settings(launch(environment, pretend="yes"))["xla"] == [function]
    assert read_settings(launch(environment, pretend="yes", xla="off"))["xla"] == []


@pytest.mark.parametrize("environment", ["tf2.21", *for_a_campaign(("tf2.5",), ("tf2.15",))])
def test_keras_computes_in_mixed_precision_and_operations_are_deterministic(launch, environment):
    outcome = launch(environment, precision="mixed_float16", deterministic="on")
    assert read_settings(outcome) == {"xla": [], "precision": "mixed_float16", "deterministic": "on"}
    assert outcome.observations["computed in"] == "float16"

"""Settings in real releases: what is asked for is on, and what Keras does by itself is seen."""

import secrets
from pathlib import Path

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.catalog.scenarios import kit_files
from harness.model.environment import Device
from harness.model.launch import Job, Limits, Status
from harness.model.scenario import Cell
from harness.runner.walk import SHORT

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

ROOT = Path(__file__).parents[2]

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
        found = [types.SimpleNamespace(device_type="GPU")]
        for config in (tf.config, tf.compat.v2.config):
            config.list_physical_devices = lambda *_: found
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
def launched(engine):
    """A function that launches the work in an environment with settings, and returns the outcome."""
    project = Project(ROOT)
    environments = load_environments(project)
    files = {"work.py": WORK, **kit_files(project)}
    backend = DockerBackend(ROOT, f"test-{secrets.token_hex(8)}")

    def launch(name, mode="eager", *, pretend="", **settings):
        requirement = load_lock(project, environments[name], Device.CPU)
        backend.prepare([requirement], lambda step: None)
        cell = Cell("work", name, Device.CPU, {"mode": mode, "pretend": pretend})
        job = Job(cell, "work.py", files, SHORT, Limits(cpus=(0,)), {}, thorough=True, settings=settings)
        return backend.launch(requirement, job)

    yield launch
    assert backend.clean(backend._run) == 0


def seen(outcome):
    assert outcome.status is Status.OK, outcome.error + outcome.stderr
    return outcome.observations["settings"]


@pytest.mark.parametrize("environment", ["tf1.14", "tf2.0", "tf2.5"])
def test_nothing_is_on_where_nothing_was_asked_for(launched, environment):
    assert seen(launched(environment)) == {"xla": [], "precision": "float32", "deterministic": "off"}


@pytest.mark.parametrize(
    ("environment", "mode"),
    [*((name, "eager") for name in ("tf1.14", "tf2.5", "tf2.15", "tf2.21")), ("tf1.14", "graph"), ("tf2.5", "graph")],
)
def test_xla_compiles_what_it_can_and_that_is_something(launched, environment, mode):
    assert seen(launched(environment, mode, xla="on"))["xla"] == ["what it can"]


# each step of 2.0's train_on_batch goes operation by operation
@pytest.mark.parametrize(
    ("environment", "mode"), [("tf1.14", "operations"), ("tf2.15", "operations"), ("tf2.0", "eager")]
)
def test_xla_finds_nothing_in_single_operations(launched, environment, mode):
    outcome = launched(environment, mode, xla="on")
    assert outcome.status is Status.NOT_AVAILABLE
    assert "XLA finds nothing to compile" in outcome.error


@pytest.mark.parametrize(("environment", "function"), [("tf2.15", "_update_step_xla"), ("tf2.21", "one_step_on_data")])
def test_what_keras_has_xla_compile_on_a_gpu_is_seen_and_can_be_turned_off(launched, environment, function):
    assert seen(launched(environment, pretend="yes"))["xla"] == [function]
    assert seen(launched(environment, pretend="yes", xla="off"))["xla"] == []


@pytest.mark.parametrize("environment", ["tf2.5", "tf2.15", "tf2.21"])
def test_keras_computes_in_mixed_precision_and_operations_are_deterministic(launched, environment):
    outcome = launched(environment, precision="mixed_float16", deterministic="on")
    assert seen(outcome) == {"xla": [], "precision": "mixed_float16", "deterministic": "on"}
    assert outcome.observations["computed in"] == "float16"

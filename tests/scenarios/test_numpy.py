"""The scenarios on TensorFlow's NumPy API, with NumPy itself in its place."""

from types import SimpleNamespace

import numpy as np
import numpy_behaviour
import pytest
from kit import NumpyModel

from harness.scenarios.header import parse

TF = SimpleNamespace(experimental=SimpleNamespace(numpy=np))


class Bench(dict):
    def observe(self, name, value):
        self[name] = value


def test_what_the_guide_states_of_types_and_shapes_is_true_of_numpy(scenarios):
    path = scenarios / "numpy_behaviour.py"
    expectations = parse(path.read_text(encoding="utf-8"), path).expect
    for experiment in ("promotion", "literals", "broadcasting", "indexing"):
        bench = Bench()
        numpy_behaviour.EXPERIMENTS[experiment](bench, np, None, np)
        stated = {entry.observation: entry.value for entry in expectations if entry.when["experiment"] == experiment}
        assert {name: bench.get(name.replace("tnp.add", "+"), bench.get(name)) for name in stated} == stated


def test_numpy_s_sigmoid_is_measured_without_tensorflow(perform, scenarios):
    source = (scenarios / "numpy_sigmoid.py").read_text(encoding="utf-8")
    launched = perform(source, axes={"variant": "numpy", "size": "32"})
    assert launched.end["status"] == "ok"
    (fingerprint,) = launched.of("fingerprint")
    assert fingerprint["values"]["dtype"] == "float32"


def test_the_model_is_a_dense_and_a_linear_layer_and_the_same_each_time():
    one, other = NumpyModel(TF), NumpyModel(TF)
    assert [weight.shape for weight in one.weights] == [(32, 64), (64,), (64, 2)]
    inputs, labels = one.batch(5)
    assert (inputs.shape, labels.shape) == ((5, 32), (5, 2))
    assert {array.dtype for array in [*one.weights, inputs, labels, one.predict(inputs)]} == {np.dtype("float32")}
    assert np.array_equal(one.predict(inputs), other.predict(inputs))
    kernel, bias, projection = one.weights
    assert one.predict(inputs) == pytest.approx(np.maximum(inputs @ kernel + bias, 0) @ projection)

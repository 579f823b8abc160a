"""The scenarios on TensorFlow's NumPy API, with NumPy itself in its place."""

from types import SimpleNamespace

import numpy as np
import numpy_behaviour
import numpy_per_example
import numpy_sigmoid
import pytest
from kit import NumpyModel

from harness.catalog.header import parse

TF = SimpleNamespace(experimental=SimpleNamespace(numpy=np))


class Bench(dict):
    """A bench that keeps what it is told."""

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


def test_numpy_can_be_assigned_to():
    bench = Bench()
    numpy_behaviour.assignment(bench, np, None, np)
    assert bench["x[1] = -1"] == "no error"


def test_an_index_that_raises_is_told_by_its_error_and_one_of_other_values_as_that():
    class Reversed(np.ndarray):
        def __getitem__(self, index):
            if isinstance(index, tuple) and [0, 2] in index:
                raise TypeError("Only integers")
            return np.asarray(self)[::-1][index]

    def reshape(x, shape):
        return x.reshape(shape).view(Reversed)

    tnp = SimpleNamespace(arange=np.arange, asarray=np.asarray, reshape=reshape)
    bench = Bench()
    numpy_behaviour.indexing(bench, np, None, tnp)
    assert bench["x[0, [0, 2]]"] == "TypeError"
    assert bench["x[..., 0]"] == "other values than NumPy's"


def test_a_device_is_kind_and_number_also_of_an_array_that_only_holds_a_tensor():
    tensor = SimpleNamespace(device="/job:localhost/replica:0/task:0/device:CPU:0")
    assert numpy_behaviour.device(tensor) == numpy_behaviour.device(SimpleNamespace(data=tensor)) == "CPU:0"


def test_the_sigmoid_is_the_same_by_either_library():
    values = np.array([-1.0, 0.0, 2.0], "float32")
    for variant in ("numpy", "tnp"):
        sigmoid, x = numpy_sigmoid.make_sigmoid(np, TF, variant, values)
        assert sigmoid(x).dtype == np.float32
        assert sigmoid(x) == pytest.approx([0.26894142, 0.5, 0.88079708])


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


def test_each_example_is_handed_over_as_a_batch_of_one():
    model = SimpleNamespace(gradients=lambda inputs, labels: (inputs.shape, labels.shape))
    tf = SimpleNamespace(experimental=TF.experimental, vectorized_map=lambda work, batch: work([x[0] for x in batch]))
    gradients = numpy_per_example.make_gradients(tf, model, "vectorized_map")
    assert gradients(np.ones((3, 32)), np.ones((3, 2))) == ((1, 32), (1, 2))

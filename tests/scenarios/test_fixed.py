"""The outputs that prove which model it was: without Keras, on a model made of two matrices."""

import numpy as np
import pytest
from kit.fixed import fixed_batch, fixed_outputs, fixed_weights

SHAPES = [(40, 30, 128), (128,), (128, 64), (64,), (64, 1), (1,)]  # of the small model of keras_step


class Model:
    def __init__(self, channels, activation=np.tanh):
        self.weights = [np.ones((channels, 8), "float32"), np.zeros(8), np.ones((8, 1)), np.zeros(1)]
        self.activation = activation

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        assert [weight.shape for weight in weights] == [weight.shape for weight in self.weights]
        self.weights = weights

    def predict_on_batch(self, x):
        kernel, bias, last, offset = self.weights
        return 1 / (1 + np.exp(-(self.activation(x.mean(axis=1) @ kernel + bias) @ last + offset)))


def test_the_same_model_gives_the_same_outputs_whatever_it_was_trained_to():
    trained = Model(30)
    trained.weights = [weight + 3 for weight in trained.weights]
    np.random.seed(5)
    first = fixed_outputs(Model(30), (32, 140, 30), "float32")
    np.random.seed(6)
    assert fixed_outputs(trained, (32, 140, 30), "float32") == first
    assert all(type(value) is float for value in first)


@pytest.mark.slow
def test_rows_differ_and_no_output_is_saturated():
    for length in (140, 14000):
        outputs = fixed_outputs(Model(30), (32, length, 30), "float64")
        assert len(set(outputs)) == 32
        assert np.std(outputs) > 0.02
        assert 0.01 < min(outputs) < max(outputs) < 0.99


def test_fixed_numbers_carry_a_float32s_digits_on_every_numpy():
    class Third(Model):
        def predict_on_batch(self, x):
            return np.full((len(x), 1), 1 / 3)

    assert fixed_outputs(Third(30), (2, 5, 30), "float32") == [0.3333333, 0.3333333]
    # RandomState's streams are frozen: every NumPy in a lock draws the same.
    assert fixed_weights([(2, 1)])[0].ravel() == pytest.approx([0.35123, -0.09777], abs=1e-5)
    batch = fixed_batch((2, 3, 4), "float32")
    assert (batch.shape, batch.dtype) == ((2, 3, 4), np.float32)
    assert batch[0, 0, 0] == pytest.approx(fixed_batch((2, 3, 4), "float64")[0, 0, 0], rel=1e-6)


def test_a_signal_neither_grows_nor_fades():
    weights = fixed_weights(SHAPES)
    assert [weight.shape for weight in weights] == SHAPES
    kernel, bias, dense = weights[:3]
    assert kernel.std() == pytest.approx((40 * 30) ** -0.5, rel=0.01)
    assert dense.std() == pytest.approx(128**-0.5, rel=0.05)
    assert bias.std() == pytest.approx(0.1, rel=0.2)

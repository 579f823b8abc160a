"""The model whose gradients the NumPy API's guide takes: https://www.tensorflow.org/guide/tf_numpy.

A dense layer of 64 units, rectified, and a linear one: 32 numbers in, 2 out, squared loss. All of it is float32.
"""

from .fixed import fixed_batch, fixed_weights

FEATURES, UNITS, OUTPUTS = 32, 64, 2


class NumpyModel:
    """The guide's model on weights that are always the same; `weights` are arrays, not variables."""

    def __init__(self, tf):
        self._tf = tf
        self._tnp = tf.experimental.numpy
        shapes = [(FEATURES, UNITS), (UNITS,), (UNITS, OUTPUTS)]
        self.weights = [self.array(weight) for weight in fixed_weights(shapes)]

    def array(self, values):
        """An array of the NumPy API with these values."""
        return self._tnp.asarray(values, dtype=self._tnp.float32)

    def batch(self, size):
        """Inputs, (size, 32), and labels, (size, 2)."""
        values = fixed_batch((size, FEATURES + OUTPUTS), "float32")
        return self.array(values[:, :FEATURES]), self.array(values[:, FEATURES:])

    def predict(self, inputs):
        """Return the model's predictions, (n, 2), for inputs (n, 32)."""
        kernel, bias, projection = self.weights
        hidden = self._tnp.maximum(self._tnp.matmul(inputs, kernel) + bias, 0)
        return self._tnp.matmul(hidden, projection)

    def gradients(self, inputs, labels):
        """The gradients of the squared loss by the three weights."""
        with self._tf.GradientTape() as tape:
            tape.watch(self.weights)  # they are no variables, which a tape would watch by itself
            loss = self._tnp.sum(self._tnp.square(self.predict(inputs) - labels))
        return tape.gradient(loss, self.weights)

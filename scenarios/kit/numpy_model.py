"""The model of the guide to the NumPy API, with its gradients: https://www.tensorflow.org/guide/tf_numpy.

It has a dense layer of 64 units with ReLU, and a linear layer, with 32 inputs, 2 outputs and a squared loss. All values
are float32.
"""

from .fixed import fixed_batch, fixed_weights

FEATURES, UNITS, OUTPUTS = 32, 64, 2


class NumpyModel:
    """The guide's model with constant weights. `weights` are arrays, not variables."""

    def __init__(self, tf):
        self._tf = tf
        self._tnp = tf.experimental.numpy
        shapes = [(FEATURES, UNITS), (UNITS,), (UNITS, OUTPUTS)]
        self.weights = [self.array(weight) for weight in fixed_weights(shapes)]

    def array(self, values):
        """Return an array of the NumPy API with these values."""
        return self._tnp.asarray(values, dtype=self._tnp.float32)

    def batch(self, size):
        """Return inputs of shape (size, 32), and labels of shape (size, 2)."""
        values = fixed_batch((size, FEATURES + OUTPUTS), "float32")
        return self.array(values[:, :FEATURES]), self.array(values[:, FEATURES:])

    def predict(self, inputs):
        """Return the model's predictions, (n, 2), for inputs (n, 32)."""
        kernel, bias, projection = self.weights
        hidden = self._tnp.maximum(self._tnp.matmul(inputs, kernel) + bias, 0)
        return self._tnp.matmul(hidden, projection)

    def gradients(self, inputs, labels):
        """Return the gradients of the squared loss with respect to the three weights."""
        with self._tf.GradientTape() as tape:
            tape.watch(self.weights)  # a tape watches only variables automatically
            loss = self._tnp.sum(self._tnp.square(self.predict(inputs) - labels))
        return tape.gradient(loss, self.weights)

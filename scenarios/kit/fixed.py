"""Constant weights and inputs, and a Keras model's predictions for them, as proof of the work done."""


def fixed_outputs(model, shape, dtype):
    """Return the model's predictions for a constant batch as floats, to the 7 digits of a float32.

    shape, dtype: the shape and the type of the batch. This function replaces the model's weights, so call it last.
    Raises TensorFlow's own errors if the weights can't be set or the prediction fails.
    """
    model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
    return digits(model.predict_on_batch(fixed_batch(shape, dtype)))


def digits(values):
    """Return the numbers of an array or tensor as a flat list of floats, to the 7 digits of a float32."""
    import numpy as np  # imported here, because an import before TensorFlow would be in no phase

    return [float("{:.7g}".format(value)) for value in np.ravel(values)]


def fixed_weights(shapes):
    """Return constant weights of these shapes: normal noise, scaled so that layers keep the size of their inputs.

    Kernels are divided by the square root of their number of inputs, and biases by 10. Use them only for kernels and
    biases: the values can be negative, but the variance in a batch normalization can't.
    """
    import numpy as np

    noise = np.random.RandomState(42)
    return [
        noise.standard_normal(shape) * (0.1 if len(shape) == 1 else np.prod(shape[:-1]) ** -0.5) for shape in shapes
    ]


def fixed_batch(shape, dtype):
    """Return constant normal noise, plus a separate level for each channel of each row.

    Without these levels, an average over a row would always be about 0.
    """
    import numpy as np

    noise = np.random.RandomState(7)
    levels = noise.standard_normal((shape[0],) + (1,) * (len(shape) - 2) + shape[-1:])
    return (levels + noise.standard_normal(shape)).astype(dtype)

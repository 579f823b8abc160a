"""Weights and inputs that are always the same, and what a Keras model predicts on them: proof of the work done."""


def fixed_outputs(model, shape, dtype):
    """Return the model's predictions as floats, to the 7 digits of a float32.

    shape: the batch's; dtype: the type to which the batch is cast. It sets the model's weights, so call it last. Raises
    the release's errors if weights can't be set, or nothing can be predicted.
    """
    model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
    return digits(model.predict_on_batch(fixed_batch(shape, dtype)))


def digits(values):
    """The numbers in an array or tensor, one float after another, to the 7 digits that a float32 has."""
    import numpy as np  # here: before TensorFlow, its import would be in no phase

    return [float("{:.7g}".format(value)) for value in np.ravel(values)]


def fixed_weights(shapes):
    """Normal noise that neither grows nor fades from layer to layer: kernels by their inputs, biases a tenth.

    For kernels and biases alone: a variance, as batch normalisation keeps it, must not be negative.
    """
    import numpy as np

    noise = np.random.RandomState(42)
    return [
        noise.standard_normal(shape) * (0.1 if len(shape) == 1 else np.prod(shape[:-1]) ** -0.5) for shape in shapes
    ]


def fixed_batch(shape, dtype):
    """Return normal noise in which the channels of each row have their own level.

    An average over noise alone would always be 0.
    """
    import numpy as np

    noise = np.random.RandomState(7)
    levels = noise.standard_normal((shape[0],) + (1,) * (len(shape) - 2) + shape[-1:])
    return (levels + noise.standard_normal(shape)).astype(dtype)

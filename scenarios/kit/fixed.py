"""Weights and inputs that are always the same, and what a Keras model predicts on them: proof of the work done."""


def fixed_outputs(model, shape, dtype):
    """The model's predictions, one float after another, to the 7 digits that a float32 has.

    shape: the batch's; dtype: what the batch is cast to. It sets the model's weights, so it is the last thing to do.
    Raises whatever the release raises where weights cannot be set, or nothing can be predicted.
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
    """Normal noise; each row's channels have a level of their own, since an average over noise alone is always 0."""
    import numpy as np

    noise = np.random.RandomState(7)
    levels = noise.standard_normal((shape[0],) + (1,) * (len(shape) - 2) + shape[-1:])
    return (levels + noise.standard_normal(shape)).astype(dtype)

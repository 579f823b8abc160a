# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "One training step of a well-known model"
# source = "https://keras.io/api/applications/"
# tags   = ["keras", "training", "models"]
#
# [tool.harness.axes]
# model = ["resnet50", "mobilenet_v2", "lstm_language_model"]
#
# [[tool.harness.compare]]
# name    = "release vs release"
# along   = "environment"
# ///
"""One training step of a model of `keras.applications`, or of a language model. It takes about 1 s on one CPU core.

No weights are downloaded: constant noise replaces them. Each release trains in its default mode: 1.x in a graph, 2.x in
a traced function.

model  resnet50, mobilenet_v2: 4 and 8 images of 128 by 128, 1,000 classes; lstm_language_model: 16 texts of 32 tokens,
       an embedding of 256 numbers, an LSTM of 512 units, and a prediction of the next of 10,000 tokens
"""

import zlib

from kit import digits, fixed_batch, main

IMAGE, CLASSES = 128, 1000
IMAGES = {"resnet50": 4, "mobilenet_v2": 8}
EPSILON = 1.001e-5
TEXTS, TOKENS, VOCABULARY, WIDTH, UNITS = 16, 32, 10000, 256, 512


def scenario(bench, *, model="resnet50"):
    """Measure one training step."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        network = make_model(keras, model)
        network.compile("sgd", "sparse_categorical_crossentropy")
        network.set_weights(fixed_weights(network))
        x, y = make_batch(model)

    def step():
        return network.train_on_batch(x, y)

    with bench.phase("first call"):
        losses = [float(bench.fetch(step()))]
    losses.append(float(step()))
    steps = 2 + bench.measure(step)
    bench.placed(network.weights)
    bench.observe("tensorflow", tf.__version__)
    bench.fingerprint(
        parameters=int(network.count_params()),
        loss=digits(losses[0])[0],
        decreases=losses[1] < losses[0],
        steps_called=steps,
        steps_counted=read_counter(keras, network),
    )


def make_model(keras, name):
    """Return the model of that name, not compiled."""
    if name in IMAGES:
        applications = {"resnet50": keras.applications.ResNet50, "mobilenet_v2": keras.applications.MobileNetV2}
        network = applications[name](weights=None, input_shape=(IMAGE, IMAGE, 3), classes=CLASSES)
        return with_epsilon(keras, network) if name == "resnet50" else network
    layers = keras.layers
    inputs = layers.Input((TOKENS,), dtype="int32")
    x = layers.Embedding(VOCABULARY, WIDTH)(inputs)
    x = layers.LSTM(UNITS, return_sequences=True)(x)
    return keras.models.Model(inputs, layers.Dense(VOCABULARY, activation="softmax")(x))


def with_epsilon(keras, network):
    """Return the network with EPSILON in its normalizations, because the ResNet50 of 1.x has another value."""
    config = network.get_config()
    found = [layer["config"] for layer in config["layers"] if "epsilon" in layer["config"]]
    if all(layer["epsilon"] == EPSILON for layer in found):
        return network
    for layer in found:
        layer["epsilon"] = EPSILON
    return keras.models.Model.from_config(config)


def make_batch(name):
    """Return a batch of inputs and targets."""
    import numpy as np

    noise = np.random.RandomState(1)
    if name in IMAGES:
        count = IMAGES[name]
        return fixed_batch((count, IMAGE, IMAGE, 3), "float32"), noise.randint(0, CLASSES, (count, 1))
    tokens = noise.randint(0, VOCABULARY, (TEXTS, TOKENS + 1))
    return tokens[:, :-1].astype("int32"), tokens[:, 1:, None]


def fixed_weights(network):
    """Return noise for kernels, ones for scales and variances of normalizations, and zeros for other weights.

    Kernels of one shape are equal, because the order of layers differs between releases.
    """
    import numpy as np

    values = []
    for weight in network.weights:
        shape = tuple(map(int, weight.shape))
        if len(shape) > 1:
            noise = np.random.RandomState(zlib.crc32(repr(shape).encode()))
            values.append(noise.standard_normal(shape) * (2.0 / np.prod(shape[:-1])) ** 0.5)
        else:
            values.append(np.full(shape, float("gamma" in weight.name or "variance" in weight.name)))
    return values


def read_counter(keras, network):
    """Return the number of steps that the optimizer counted."""
    counter = network.optimizer.iterations
    if hasattr(counter, "numpy"):
        try:
            return int(counter.numpy())
        except (NotImplementedError, RuntimeError):  # a variable of a graph
            pass
    return int(keras.backend.get_value(counter))


if __name__ == "__main__":
    main(scenario)

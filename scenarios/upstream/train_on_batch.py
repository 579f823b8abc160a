# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "train_on_batch on arrays, by release"
# source = "https://github.com/tensorflow/tensorflow/issues/33487"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# network = ["conv", "lstm", "deep"]
# mode    = ["default", "graph"]
#
# [tool.harness.default]
# mode = "default"
#
# [[tool.harness.needs]]
# when     = { mode = "graph" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't train if eager execution is disabled."
#
# [[tool.harness.claim]]
# issue    = "T#33487"
# reported = "2.0 takes 47 to 276 % longer than 1.14 for train_on_batch of a small model"
# worse    = { environment = "tf2.0" }
# better   = { environment = "tf1.14" }
# when     = { network = "conv" }
# ratio    = [1.47, 3.76]
# fixed    = "2.1"
# hardware = "GTX 1070"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#67033"
# reported = "train_on_batch is about 100 times slower in 2.16.1 than in 2.15.1, and warns of retracing"
# worse    = { environment = "tf2.16" }
# better   = { environment = "tf2.15" }
# when     = { network = "lstm" }
# ratio    = [80, 125]
# hardware = "Windows 10 and WSL"
# version  = "2.16.1"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#39665"
# reported = "a large model on large data: 2.2 takes 1.97 times as long as 1.14"
# worse    = { environment = "tf2.2" }
# better   = { environment = "tf1.14" }
# when     = { network = "deep" }
# ratio    = [1.6, 2.5]
# hardware = "GTX 1070"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#39665"
# reported = "in graph mode, it takes 1.56 times as long"
# worse    = { environment = "tf2.2" }
# better   = { environment = "tf1.14" }
# when     = { network = "deep", mode = "graph" }
# ratio    = [1.25, 1.95]
# hardware = "GTX 1070"
# program  = "similar"
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""One `train_on_batch` of a NumPy batch, in each release's default mode or in graph mode.

network  conv: one convolution over 140 time steps of 30 channels and two dense layers; lstm: 20 LSTM units on one time
         step and three small dense layers, in batches of 250; deep: ten convolutions over 1,400 time steps, 10 % of the
         work in the issue
"""

from kit import fixed_batch, fixed_outputs, main

BATCHES = {"conv": (32, 140, 30), "lstm": (250, 1, 14), "deep": (8, 1400, 30)}


def scenario(bench, *, network="conv", mode="default"):
    """Measure one training step."""
    with bench.phase("import"):
        import tensorflow as tf

        if mode == "graph" and tf.executing_eagerly():
            tf.compat.v1.disable_eager_execution()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    shape = BATCHES[network]
    with bench.phase("build"):
        model = make_model(keras, network)
        model.compile("sgd", "binary_crossentropy")
        x = fixed_batch(shape, "float32")
        y = (x.reshape(len(x), -1)[:, :1] > 0).astype("float32")
    with bench.phase("first call"):
        model.train_on_batch(x, y)
    bench.measure(lambda: model.train_on_batch(x, y), document=200)
    bench.fingerprint(parameters=int(model.count_params()), outputs=fixed_outputs(model, shape, "float32"))


def make_model(keras, network):
    """Return the model of that name, which computes a number between 0 and 1 for each row."""
    layers = keras.layers
    inputs = x = layers.Input(BATCHES[network][1:])
    if network == "lstm":
        x = layers.LSTM(20)(x)
        for units in (20, 16, 8):
            x = layers.Dense(units, activation="relu")(x)
    elif network == "conv":
        x = layers.Conv1D(128, 40, strides=4, padding="same")(x)
    else:
        x = layers.Conv1D(64, 40, strides=4)(x)
        for _ in range(8):
            x = layers.Conv1D(64, 12, padding="same")(x)
        x = layers.Conv1D(128, 20, strides=2)(x)
    if network != "lstm":
        x = layers.GlobalAveragePooling1D()(x)
        x = layers.Dense(64, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Twenty calls of a Keras method, with changing shapes"
# source = "https://github.com/tensorflow/tensorflow/issues/38561"
# tags   = ["upstream", "calls"]
#
# [tool.harness.axes]
# call   = ["predict", "train_on_batch"]
# shapes = ["changing", "same"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.0"]
# reason   = "TensorFlow 1 builds the graph of a model only once, for all shapes."
#
# [[tool.harness.claim]]
# issue    = "T#38561"
# reported = "predict traces again for each new length of its input: 5 out of the last 5 calls, and so on"
# worse    = { environment = "tf2.2", shapes = "changing" }
# better   = { environment = "tf2.2", shapes = "same" }
# when     = { call = "predict" }
# of       = "traces"
# ratio    = [5, 20]
# hardware = "a Mac"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#38742"
# reported = "train_on_batch traces again for each new length: fixed in 2.1, and back in 2.2"
# worse    = { environment = "tf2.2" }
# better   = { environment = "tf2.1" }
# when     = { call = "train_on_batch", shapes = "changing" }
# of       = "traces"
# ratio    = [5, 20]
# fixed    = "2.3"
# hardware = "Colab"
# version  = "2.2.0rc3"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "shapes that change vs one shape"
# along   = "shapes"
# plus    = "changing"
# against = "same"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""Twenty calls with an array of one row: with 1 to 20 numbers, or always with 20. How often is the model traced?

A layer of the model counts how often Python executes it. If a release runs the model operation by operation, Python
executes it at each call.
"""

from kit import main

CALLS = 20


def scenario(bench, *, call="predict", shapes="changing"):
    """Time twenty calls, including the tracing in the first call, and count the traces."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    traces = []
    with bench.phase("build"):
        model = make_model(tf, keras, traces)
        lengths = range(1, CALLS + 1) if shapes == "changing" else [CALLS] * CALLS
        batches = [np.ones((1, length), "float32") for length in lengths]
        method = {"predict": lambda x: model.predict(x, verbose=0), "train_on_batch": train(np, model)}[call]
    del traces[:]

    def call_all():
        for batch in batches:
            method(batch)

    bench.once(call_all)
    bench.observe("traces", len(traces))
    bench.fingerprint(parameters=int(model.count_params()))


def make_model(tf, keras, traces):
    """Return a model: the sum of a row of any length, times a weight. `traces` gets an item at each execution."""

    class Sum(keras.layers.Layer):
        def call(self, x):
            traces.append("sum")
            return tf.reduce_sum(x, axis=1, keepdims=True)

    inputs = keras.layers.Input((None,))
    model = keras.models.Model(inputs, keras.layers.Dense(1)(Sum()(inputs)))
    model.compile("sgd", "mse")
    return model


def train(np, model):
    """Return a function that trains the model on a row."""
    y = np.ones((1, 1), "float32")
    return lambda x: model.train_on_batch(x, y)


if __name__ == "__main__":
    main(scenario)

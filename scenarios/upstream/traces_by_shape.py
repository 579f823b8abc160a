# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Number of traces of predict_on_batch with many batch sizes"
# source = "https://github.com/tensorflow/tensorflow/issues/34907"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# sizes = ["many", "one"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "traces"
#
# [[tool.harness.claim]]
# issue    = "T#34907"
# reported = "predict_on_batch is traced again for every batch size: in 2.1.0rc0, fixed in 2.1, and back in 2.2"
# worse    = { environment = "tf2.2" }
# better   = { environment = "tf2.1" }
# ratio    = [8, 30]                # 30 sizes: a trace each, against a few in all
# of       = "traces"
# when     = { sizes = "many" }
# hardware = "Debian Stretch"
# program  = "similar"
# fixed    = "2.3"                  # T#38742, which says that it came back
# ///
"""The number of traces in 30 calls, and the time of these calls.

sizes  many: batches of 1 to 30 rows; one: 30 batches of 30 rows
"""

from kit import main

MOST = 30


def scenario(bench, *, sizes="many"):
    """Time the calls, and count how often the model was traced."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    traces = []
    with bench.phase("build"):
        model = make_model(tf, keras, traces)
        batches = [np.ones((size if sizes == "many" else MOST, 1), "float32") for size in range(1, MOST + 1)]
        del traces[:]

    def step():
        for batch in batches:
            results = model.predict_on_batch(batch)
        return results

    results = bench.once(step)
    bench.observe("traces", len(traces))
    bench.fingerprint(total=float(np.sum(results)))


def make_model(tf, keras, traces):
    """Return a model that doubles its input. Each trace adds an item to `traces`."""

    class Double(keras.layers.Layer):
        def call(self, x):
            if not tf.executing_eagerly():
                traces.append("call")
            return 2 * x

    inputs = keras.layers.Input((1,))
    model = keras.models.Model(inputs, Double()(inputs))
    model.compile(loss="mse")
    return model


if __name__ == "__main__":
    main(scenario)

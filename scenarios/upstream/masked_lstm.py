# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A step of fit of a masked LSTM, in eager and in graph mode"
# source = "https://github.com/tensorflow/tensorflow/issues/30561"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# mode = ["eager", "graph"]
#
# [[tool.harness.needs]]
# when     = { mode = "graph" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't fit if eager execution is disabled."
#
# [[tool.harness.claim]]
# issue    = "T#30561"
# reported = "a step takes 91 ms with eager execution, and 49 to 66 ms without it"
# worse    = { environment = "tf2.0", mode = "eager" }
# better   = { environment = "tf2.0", mode = "graph" }
# ratio    = [1.4, 1.9]
# hardware = "Quadro P1000"
# version  = "2.0.0-beta0"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "eager vs graph"
# along   = "mode"
# plus    = "eager"
# against = "graph"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""A training step of 100 LSTM units and a dense unit, on sequences of 20 to 40 time steps, masked by their lengths.

The issue has sequences of a few hundred time steps in batches of 64. Here, batches have 16 sequences, and a call has
four batches.
"""

from kit import fixed_batch, main

BATCHES, BATCH, LENGTH, CHANNELS, CELLS = 4, 16, 40, 100, 100


def scenario(bench, *, mode="eager"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        if tf.executing_eagerly() != (mode == "eager"):
            (tf.compat.v1.enable_eager_execution if mode == "eager" else tf.compat.v1.disable_eager_execution)()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((LENGTH, CHANNELS))
        masked = keras.layers.Masking()(inputs)
        cells = keras.layers.LSTM(CELLS)(masked)
        model = keras.models.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(cells))
        model.compile("sgd", "binary_crossentropy")
        x = fixed_batch((BATCH * BATCHES, LENGTH, CHANNELS), "float32")
        for row, sequence in enumerate(x):
            sequence[LENGTH // 2 + row % (LENGTH // 2) :] = 0
        y = np.arange(len(x))[:, None].astype("float32") % 2

    def epoch():
        model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)

    with bench.phase("first call"):
        bench.fetch(epoch())
    bench.measure(epoch, steps=BATCHES)
    bench.fingerprint(parameters=int(model.count_params()))


if __name__ == "__main__":
    main(scenario)

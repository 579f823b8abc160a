# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A training step of a new model and of a loaded model"
# source = "https://github.com/tensorflow/tensorflow/issues/38827"
# tags   = ["upstream", "load", "not reproduced"]
#
# [tool.harness.axes]
# model = ["loaded", "made"]
#
# [[tool.harness.claim]]
# issue    = "T#38827"
# reported = "training is extremely slow after loading the model (no number reported; a triager saw it faster)"
# worse    = { environment = "tf2.1", model = "loaded" }
# better   = { environment = "tf2.1", model = "made" }
# ratio    = [2, 10]
# hardware = "not reported"
# program  = "guessed"
# [[tool.harness.claim]]
# issue    = "T#38710"
# reported = "an epoch takes 3 minutes, and 12 minutes after loading the model"
# worse    = { environment = "tf2.1", model = "loaded" }
# better   = { environment = "tf2.1", model = "made" }
# ratio    = [3.2, 5]
# hardware = "Windows 7"
# program  = "guessed"
# [[tool.harness.claim]]
# issue    = "T#39459"
# reported = "fit takes 10 times as long after loading the model from h5"
# worse    = { environment = "tf2.1", model = "loaded" }
# better   = { environment = "tf2.1", model = "made" }
# ratio    = [8, 12.5]
# hardware = "not reported; a GPU"
# program  = "guessed"
#
# [[tool.harness.compare]]
# name    = "a loaded model vs one that was made"
# along   = "model"
# plus    = "loaded"
# against = "made"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""A training step of two LSTM layers and a dense layer in `fit`. The model is new, or saved to h5 and loaded again."""

import os
import tempfile

from kit import fixed_batch, main

BATCHES, BATCH, LENGTH, CHANNELS, CELLS = 4, 16, 20, 8, 32


def scenario(bench, *, model="loaded"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((LENGTH, CHANNELS))
        x = keras.layers.LSTM(CELLS, return_sequences=True)(inputs)
        x = keras.layers.Dropout(0.2)(keras.layers.LSTM(CELLS)(x))
        network = keras.models.Model(inputs, keras.layers.Dense(1)(x))
        network.compile(keras.optimizers.Adam(), "mean_squared_error")
        x = fixed_batch((BATCHES * BATCH, LENGTH, CHANNELS), "float32")
        y = np.ascontiguousarray(x[:, 0, :1])
        network.train_on_batch(x[:BATCH], y[:BATCH])
    if model == "loaded":
        with bench.phase("load"):
            path = os.path.join(tempfile.mkdtemp(), "model.h5")
            network.save(path)
            # h5 has only the name of the loss, which Keras 3 doesn't find.
            network = keras.models.load_model(path, compile=False)
            network.compile(keras.optimizers.Adam(), "mean_squared_error")

    def epoch():
        network.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)

    with bench.phase("first call"):
        bench.fetch(epoch())
    bench.measure(epoch, steps=BATCHES)
    bench.placed(network.weights)
    bench.fingerprint(parameters=int(network.count_params()))


if __name__ == "__main__":
    main(scenario)

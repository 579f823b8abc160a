# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A training step with a GRU and with an LSTM"
# source = "https://github.com/tensorflow/tensorflow/issues/57005"
# tags   = ["upstream", "layers", "not reproduced"]
#
# [tool.harness.axes]
# layer = ["GRU", "LSTM"]
#
# [[tool.harness.compare]]
# name    = "GRU vs LSTM"
# along   = "layer"
# plus    = "GRU"
# against = "LSTM"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#57005"
# reported = "an epoch takes 4 hours with a GRU, and 20 minutes with an LSTM (triage could not reproduce it)"
# worse    = { environment = "tf2.7", layer = "GRU" }
# better   = { environment = "tf2.7", layer = "LSTM" }
# ratio    = [6, 24]                # 12
# hardware = "several GPUs"
# program  = "similar"
# ///
"""A training step on a batch of 16 sequences: 50 time steps of 20 numbers, and 64 units as in the issue.

layer  GRU, LSTM: with activation tanh, implementation 2, and all time steps returned
"""

from kit import main

BATCH, TIME_STEPS, WIDTH, UNITS = 16, 50, 20, 64


def scenario(bench, *, layer="GRU"):
    """Measure one training step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((TIME_STEPS, WIDTH))
        make = getattr(keras.layers, layer)
        sequences = make(UNITS, activation="tanh", return_sequences=True)(inputs)
        model = keras.models.Model(inputs, keras.layers.Dense(1)(sequences))
        model.compile(optimizer="adam", loss="mse")
        batch = np.ones((BATCH, TIME_STEPS, WIDTH), "float32"), np.ones((BATCH, TIME_STEPS, 1), "float32")
    with bench.phase("first call"):
        model.train_on_batch(*batch)
    bench.measure(lambda: model.train_on_batch(*batch))
    bench.placed(model.weights)
    bench.fingerprint(outputs=[int(size) for size in model.predict_on_batch(batch[0]).shape])


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per model that is trained and cleared, by kind of model"
# source = "https://github.com/tensorflow/tensorflow/issues/80753"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# model = ["lstm", "wide", "deep", "deep_eager", "subclass"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#80753"
# reported = "in 2.18 each model of a loop keeps 20 to 30 MB, though the session is cleared"
# worse    = { environment = "tf2.18", model = "lstm" }
# bytes    = [15000000, 35000000]   # 824.98 MB, 850.34 MB, 876.81 MB, 904.02 MB after the 19th to 22nd model
# of       = "memory growth"
# hardware = "Ubuntu, and a Mac with M1"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "K#21090"
# reported = "in 2.19 each model of a loop keeps about 50 MB, in spite of clear_session and garbage collection"
# worse    = { environment = "tf2.19", model = "wide" }
# bytes    = [35000000, 70000000]
# of       = "memory growth"
# hardware = "Windows 11"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#43702"
# reported = "in 2.3.1 each deep model keeps about 25 MB, though the session is cleared"
# worse    = { environment = "tf2.3", model = "deep" }
# bytes    = [12000000, 50000000]   # 25,229 to 58,290 KB per model
# of       = "memory growth"
# hardware = "CPU, Windows"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#43702"
# reported = "with run_eagerly=True each deep model keeps memory all the same (a user could not reproduce it)"
# worse    = { environment = "tf2.3", model = "deep_eager" }
# bytes    = [500000, 20000000]     # no number that could be read
# of       = "memory growth"
# hardware = "CPU, Windows and Linux"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#61791"
# reported = "memory grows with each subclassed model that is trained in a loop in 2.11 to 2.13, but not in 2.9.2"
# worse    = { environment = "tf2.13", model = "subclass" }
# bytes    = [500000, 80000000]     # no number that could be read; its weights take 5 MB here, and 484 MB there
# of       = "memory growth"
# hardware = "RTX A5000"
# program  = "similar"
# ///
"""The memory that the process keeps after each of 8 models is trained by `fit`, deleted, cleared and garbage-collected.

model  lstm: two LSTMs of 64 and 32 units, 5 epochs; wide: two dense layers of 2,000 units, on 320 rows; deep: 200 dense
       layers of one unit, on one row; deep_eager: the same with run_eagerly=True; subclass: a custom class with four
       dense layers, on 320 rows
"""

import gc

from kit import main

MODELS, COLUMNS, ROWS, LAYERS = 8, 100, 320, 200


def scenario(bench, *, model="lstm"):
    """Record the memory of the process over the models."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        shape = {"lstm": (6, 4, 3), "wide": (ROWS, COLUMNS), "subclass": (ROWS, COLUMNS)}.get(model, (1, 1))
        x, y = np.ones(shape, "float32"), np.ones((shape[0], 1), "float32")
        make = {"lstm": make_lstm, "wide": make_wide, "subclass": make_subclass}.get(model, make_deep)
        eager = {"run_eagerly": True} if model == "deep_eager" else {}

    def step():
        trained = make(keras, shape[1:])
        trained.compile(optimizer="sgd" if make is make_deep else "adam", loss="mse", **eager)
        trained.fit(x, y, epochs=5 if model == "lstm" else 1, batch_size=2 if model == "lstm" else 32, verbose=0)
        parameters = trained.count_params()
        del trained
        keras.backend.clear_session()
        gc.collect()
        return int(parameters)

    with bench.phase("first call"):
        parameters = step()
    bench.memory(step, MODELS)
    bench.fingerprint(parameters=parameters)


def make_lstm(keras, shape):
    """Return a model of two recurrent layers and a dense layer."""
    inputs = keras.layers.Input(shape)
    hidden = keras.layers.LSTM(64, return_sequences=True)(inputs)
    hidden = keras.layers.Dropout(0.2)(keras.layers.LSTM(32)(hidden))
    return keras.models.Model(inputs, keras.layers.Dense(1)(hidden))


def make_wide(keras, shape):
    """Return a model of two dense layers of 2,000 units."""
    inputs = keras.layers.Input(shape)
    hidden = keras.layers.Dense(2000, activation="relu")(inputs)
    hidden = keras.layers.Dense(2000, activation="relu")(hidden)
    return keras.models.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(hidden))


def make_deep(keras, shape):
    """Return a model of 200 dense layers of one unit."""
    inputs = hidden = keras.layers.Input(shape)
    for _ in range(LAYERS):
        hidden = keras.layers.Dense(1)(hidden)
    return keras.models.Model(inputs, hidden)


def make_subclass(keras, shape):
    """Return a model of a custom class."""

    class Dense4(keras.Model):
        def __init__(self):
            super(Dense4, self).__init__()
            self.dense1 = keras.layers.Dense(100, activation="relu")
            self.dense2 = keras.layers.Dense(1000, activation="relu")
            self.dense3 = keras.layers.Dense(1000, activation="relu")
            self.dense4 = keras.layers.Dense(100, activation="softmax")

        def call(self, inputs):
            return self.dense4(self.dense3(self.dense2(self.dense1(inputs))))

    return Dense4()


if __name__ == "__main__":
    main(scenario)

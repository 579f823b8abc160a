# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per model that is created, trained and deleted"
# source = "https://github.com/tensorflow/tensorflow/issues/41973"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# training = ["fit", "fit_cleared", "function"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#41973"
# reported = "a loop that creates and fits a functional model keeps memory each time, in spite of garbage collection"
# worse    = { environment = "tf2.3", training = "fit" }
# bytes    = [10000, 3000000]       # no number that could be read; up to 2.3 all such models are put into one graph
# of       = "memory growth"
# hardware = "Windows 10"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "TK#286"
# reported = "memory grows steadily in a loop that creates and fits models in 2.11 to 2.15, even with clear_session"
# worse    = { environment = "tf2.11", training = "fit_cleared" }
# bytes    = [10000, 3000000]       # no number that could be read; in 2.9.2 it is almost constant
# of       = "memory growth"
# hardware = "RTX A5000"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "K#20552"
# reported = "in Keras 3 memory has a clear upward trend over 500 models, though the session is cleared"
# worse    = { environment = "tf2.18", training = "fit_cleared" }
# bytes    = [4000000, 18000000]    # 1,673 MB at the 114th, 1,761 MB at the 124th: 9 MB a model, of two LSTMs
# of       = "memory growth"
# hardware = "CPU, Ubuntu and a Mac"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#62854"
# reported = "memory grows with each trained model if train() is a tf.function, and otherwise it does not"
# worse    = { environment = "tf2.15", training = "function" }
# bytes    = [100000, 10000000]     # no number that could be read; its weights and Adam's moments take 1.6 MB
# of       = "memory growth"
# hardware = "CPU, Ubuntu 22.04"
# program  = "similar"
# ///
"""The memory that the process keeps after each of 12 small models is trained for one step on 32 rows of 10 numbers.

A model has a dense layer of 32 units and a dense layer of 1 unit.

training  fit: with compile and fit; fit_cleared: the same, and after each model the session is cleared and garbage is
          collected; function: with a method that is a tf.function, a tape and SGD, and cleared like fit_cleared
"""

import gc

from kit import main

MODELS = 12


def scenario(bench, *, training="fit"):
    """Record the memory of the process over the models."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        x, y = np.ones((32, 10), "float32"), np.ones((32, 1), "float32")

    def make():
        inputs = keras.layers.Input((10,))
        return keras.models.Model(inputs, keras.layers.Dense(1)(keras.layers.Dense(32)(inputs)))

    def fit():
        model = make()
        model.compile(optimizer="adam", loss="mse")
        model.fit(x, y, verbose=0)
        if training == "fit_cleared":
            clear()

    class Trained:
        def __init__(self):
            self.model = make()

        @tf.function
        def train(self):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(x) - y) ** 2)
            weights = self.model.trainable_variables
            for weight, gradient in zip(weights, tape.gradient(loss, weights)):  # noqa: B905, Python 3.6
                weight.assign_sub(0.01 * gradient)

    def by_function():
        trained = Trained()  # the method has only a weak reference to the model
        trained.train()
        del trained
        clear()

    def clear():
        keras.backend.clear_session()
        gc.collect()

    step = by_function if training == "function" else fit
    with bench.phase("first call"):
        step()
    bench.memory(step, MODELS)
    bench.fingerprint(parameters=int(make().count_params()))


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A training step in fit, Keras 2 and Keras 3"
# source = "https://github.com/keras-team/keras/issues/18648"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# network = ["tiny", "dropout"]
#
# [[tool.harness.claim]]
# issue    = "K#18648"
# reported = "an epoch of one tiny batch takes 31 to 33 ms in Keras 3, and 1.5 ms in Keras 2"
# worse    = { environment = "tf2.16" }
# better   = { environment = "tf2.15" }
# when     = { network = "tiny" }
# ratio    = [10, 21]
# hardware = "not reported"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "K#19953"
# reported = "Keras 3 is significantly slower than Keras 2 (no number reported)"
# worse    = { environment = "tf2.16" }
# better   = { environment = "tf2.15" }
# when     = { network = "dropout" }
# ratio    = [1.1, 3]
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""One step of `fit`.

network  tiny: four dense layers of 20 units in float32, a custom loss, and all 100 rows in one batch, so that an epoch
         is a step; dropout: ten dense layers of 128 units and dropout, batches of 500 rows of four numbers, an AUC as
         metric, ten batches per epoch
"""

from kit import fixed_batch, main

BATCH = {"tiny": 100, "dropout": 500}
COLUMNS = {"tiny": 1, "dropout": 4}
EPOCHS = {"tiny": 20, "dropout": 1}
BATCHES = {"tiny": 1, "dropout": 10}


def scenario(bench, *, network="tiny"):
    """Measure one training step."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        model = make_model(tf, keras, network)
        x = fixed_batch((BATCH[network] * BATCHES[network], COLUMNS[network]), "float32")
        y = (x[:, :1] > 0).astype("float32")

    def fit():
        return model.fit(x, y, batch_size=BATCH[network], epochs=EPOCHS[network], verbose=0) and None

    with bench.phase("first call"):
        bench.fetch(fit())
    bench.measure(fit, steps=EPOCHS[network] * BATCHES[network])
    bench.placed(model.weights)
    bench.fingerprint(parameters=int(model.count_params()))


def make_model(tf, keras, network):
    """Return the network of that name, compiled."""
    layers = keras.layers
    inputs = x = layers.Input((COLUMNS[network],))
    if network == "tiny":
        for _ in range(3):
            x = layers.Dense(20, activation="tanh")(x)
        model = keras.models.Model(inputs, layers.Dense(1)(x))
        model.compile("adam", lambda truth, prediction: tf.reduce_mean(tf.square(truth - prediction)))
        return model
    for _ in range(10):
        x = layers.Dense(128, activation="relu")(x)
        x = layers.Dropout(0.1)(x)
    model = keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", keras.losses.BinaryCrossentropy(label_smoothing=0.05), metrics=[keras.metrics.AUC()])
    return model


if __name__ == "__main__":
    main(scenario)

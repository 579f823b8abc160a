# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "An epoch of fit on very little data, with and without a validation set"
# source = "https://github.com/tensorflow/tensorflow/issues/57645"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# validation = ["yes", "no"]
# mode       = ["eager", "graph"]
#
# [[tool.harness.needs]]
# when     = { mode = "graph" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't fit if eager execution is disabled."
#
# [[tool.harness.claim]]
# issue    = "T#57645"
# reported = "fit with a validation set takes 36 s, and 3.9 s if eager execution is disabled"
# worse    = { environment = "tf2.9", mode = "eager" }
# better   = { environment = "tf2.9", mode = "graph" }
# when     = { validation = "yes" }
# ratio    = [7, 12]
# hardware = "Colab"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#57645"
# reported = "fit takes 36 s with a validation set, and 3.3 s without it"
# worse    = { environment = "tf2.9", validation = "yes" }
# better   = { environment = "tf2.9", validation = "no" }
# when     = { mode = "eager" }
# ratio    = [8, 14]
# hardware = "Colab"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "eager vs graph"
# along   = "mode"
# plus    = "eager"
# against = "graph"
# [[tool.harness.compare]]
# name    = "with vs without a validation set"
# along   = "validation"
# plus    = "yes"
# against = "no"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""One epoch with one batch of 100 rows, in a `fit` of 10 epochs.

An epoch has only one training step, so its time shows the overhead of an epoch.
"""

from kit import fixed_batch, fixed_weights, main

EPOCHS = 10
ROWS, COLUMNS = 100, 4


def scenario(bench, *, validation="yes", mode="eager"):
    """Measure an epoch."""
    with bench.phase("import"):
        import tensorflow as tf

        if tf.executing_eagerly() != (mode == "eager"):
            (tf.compat.v1.enable_eager_execution if mode == "eager" else tf.compat.v1.disable_eager_execution)()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((COLUMNS,))
        hidden = keras.layers.Dense(8, activation="tanh")(inputs)
        model = keras.models.Model(inputs, keras.layers.Dense(1)(hidden))
        model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
        model.compile("sgd", "mse")
        x = fixed_batch((ROWS, COLUMNS), "float32")
        y = x[:, :1].copy()
    options = {"validation_data": (x, y)} if validation == "yes" else {}

    def fit():
        return model.fit(x, y, batch_size=ROWS, epochs=EPOCHS, verbose=0, **options)

    with bench.phase("first call"):
        losses = bench.fetch(fit()).history["loss"]
    bench.measure(lambda: fit() and None, steps=EPOCHS)
    bench.fingerprint(losses=[float("{:.4g}".format(loss)) for loss in losses])


if __name__ == "__main__":
    main(scenario)

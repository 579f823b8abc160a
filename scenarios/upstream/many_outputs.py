# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A training step of a small model with many outputs and metrics"
# source = "https://github.com/tensorflow/tensorflow/issues/45676"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# mode = ["eager", "graph"]
#
# [[tool.harness.needs]]
# when     = { mode = "eager" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, only graph mode (its default) is measured."
# advice   = "Use mode=graph."
# [[tool.harness.needs]]
# when     = { mode = "graph" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't fit if eager execution is disabled."
#
# [[tool.harness.claim]]
# issue    = "T#45676"
# reported = "an epoch takes 3 s in 2.4, and 1 to 2 s in 2.3"
# worse    = { environment = "tf2.4" }
# better   = { environment = "tf2.3" }
# when     = { mode = "eager" }
# ratio    = [1.5, 3]
# hardware = "a GPU"
# program  = "guessed"
# [[tool.harness.claim]]
# issue    = "T#45888"
# reported = "with eager execution disabled, training takes more than twice as long in 2.4 as in 2.3.1"
# worse    = { environment = "tf2.4" }
# better   = { environment = "tf2.3" }
# when     = { mode = "graph" }
# ratio    = [1.8, 2.5]
# hardware = "RTX 2070, Core i9 9900K, Windows"
# program  = "guessed"
#
# [[tool.harness.compare]]
# name    = "graph vs eager"
# along   = "mode"
# plus    = "graph"
# against = "eager"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""A step of `fit` for a dense model with six outputs, each with a loss and a metric. A call has 20 batches of 64 rows.

The models of the issue aren't available. For one model, the losses and metrics are known. For the other model, the
slices, products and squares in its custom layer are known.
"""

from kit import fixed_batch, fixed_outputs, main

BATCHES, BATCH, COLUMNS, OUTPUTS = 20, 64, 32, 6


def scenario(bench, *, mode="eager"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        if mode == "graph" and tf.executing_eagerly():
            tf.compat.v1.disable_eager_execution()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((COLUMNS,))
        hidden = keras.layers.Dense(64, activation="relu")(inputs)
        names = ["output{}".format(number) for number in range(OUTPUTS)]
        outputs = [keras.layers.Dense(1, name=name)(hidden) for name in names]
        model = keras.models.Model(inputs, outputs)
        losses = dict.fromkeys(names, "mse")
        model.compile("sgd", losses, metrics={name: ["mae"] for name in names})
        x = fixed_batch((BATCHES * BATCH, COLUMNS), "float32")
        y = {name: np.ascontiguousarray(x[:, :1]) for name in names}

    def epoch():
        model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)

    with bench.phase("first call"):
        bench.fetch(epoch())
    bench.measure(epoch, steps=BATCHES)
    bench.fingerprint(
        parameters=int(model.count_params()), outputs=fixed_outputs(model, (BATCH, COLUMNS), "float32")[:8]
    )


if __name__ == "__main__":
    main(scenario)

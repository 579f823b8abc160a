# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "The parts of an eager training step"
# source = "https://github.com/keras-team/tf-keras/issues/238"
# tags   = ["upstream", "optimizers"]
#
# [tool.harness.axes]
# part      = ["loss", "gradients", "apply"]
# optimizer = ["default", "legacy"]
#
# [tool.harness.default]
# optimizer = "default"
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.0"]
# reason   = "This step needs eager mode."
# [[tool.harness.needs]]
# when     = { optimizer = "legacy" }
# requires = ["tensorflow>=2.11,<2.16"]
# reason   = "Only these releases also include the optimizers of 2.10."
#
# [[tool.harness.claim]]
# issue    = "TK#238"
# reported = "apply_gradients takes twice as long as the model and its loss: 57 ms and 27 ms"
# worse    = { environment = "tf2.13", part = "apply" }
# better   = { environment = "tf2.13", part = "loss" }
# ratio    = [1.65, 2.6]
# hardware = "not reported; Ubuntu 20.04"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "applying gradients vs the loss"
# along   = "part"
# plus    = "apply"
# against = "loss"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""Parts of an eager training step of three dense layers, with batches of 64, and SGD as in the guide in the issue.

part  loss: the model and its loss, on a tape; gradients: the same, and the tape's gradients; apply: only
      `apply_gradients`, with gradients that are already computed
"""

from kit import fixed_batch, main

BATCH, COLUMNS, CLASSES = 64, 784, 10


def scenario(bench, *, part="apply", optimizer="default"):
    """Measure one part."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = x = keras.layers.Input((COLUMNS,))
        for units in (64, 64):
            x = keras.layers.Dense(units, activation="relu")(x)
        model = keras.models.Model(inputs, keras.layers.Dense(CLASSES)(x))
        optimizers = keras.optimizers.legacy if optimizer == "legacy" else keras.optimizers
        rule = optimizers.SGD(1e-3)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        batch = tf.constant(fixed_batch((BATCH, COLUMNS), "float32"))
        classes = tf.constant([row % CLASSES for row in range(BATCH)])

    def forward():
        with tf.GradientTape() as tape:
            value = loss(classes, model(batch, training=True))
        return tape, value

    def backward():
        tape, value = forward()
        return tape.gradient(value, model.trainable_weights)

    with bench.phase("first call"):
        gradients = bench.fetch(backward())
    steps = {
        "loss": lambda: forward()[1],
        "gradients": backward,
        "apply": lambda: rule.apply_gradients(zip(gradients, model.trainable_weights)),  # noqa: B905, Python 3.6
    }
    bench.measure(steps[part])
    bench.placed(model.weights)
    bench.fingerprint(parameters=int(model.count_params()))


if __name__ == "__main__":
    main(scenario)

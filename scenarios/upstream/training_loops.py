# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A training step of a small network, by training loop"
# source = "https://github.com/tensorflow/tensorflow/issues/30596"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# loop    = ["eager", "function", "fit"]
# network = ["conv", "dense"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.0"]
# reason   = "The loops iterate over a dataset in eager mode."
#
# [[tool.harness.claim]]
# issue    = "T#30596"
# reported = "a loop with a gradient tape takes over 8 minutes, and fit takes 1 minute and 41 seconds"
# worse    = { environment = "tf2.0", loop = "eager" }
# better   = { environment = "tf2.0", loop = "fit" }
# when     = { network = "conv" }
# ratio    = [3.8, 5.9]
# hardware = "Tesla K80"
# version  = "a beta of 2.0"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#31938"
# reported = "a step with a gradient tape in a tf.function is over 10 times slower than fit"
# worse    = { environment = "tf2.0", loop = "function" }
# better   = { environment = "tf2.0", loop = "fit" }
# when     = { network = "conv" }
# ratio    = [10, 20]
# hardware = "Colab"
# version  = "a beta of 2.0"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#28714"
# reported = "fit trains a dense network much faster than a gradient tape (no number reported)"
# worse    = { environment = "tf2.0", loop = "eager" }
# better   = { environment = "tf2.0", loop = "fit" }
# when     = { network = "dense" }
# ratio    = [2, 20]
# hardware = "Titan V"
# version  = "2.0.0.dev20190510"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#48844"
# reported = "eager training is about 10 times slower than expected (the answer: use tf.function in production)"
# worse    = { environment = "tf2.4", loop = "eager" }
# better   = { environment = "tf2.4", loop = "function" }
# when     = { network = "dense" }
# ratio    = [8, 12.5]
# hardware = "Colab CPU"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "a tape vs fit"
# along   = "loop"
# plus    = "eager"
# against = "fit"
# [[tool.harness.compare]]
# name    = "a tape in a function vs fit"
# along   = "loop"
# plus    = "function"
# against = "fit"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""One training step, in epochs of 20 batches of 16 rows from a dataset.

loop     eager: a gradient tape and `apply_gradients`, operation by operation; function: the same step as a tf.function;
         fit: Keras's loop
network  conv: two small convolutions and three dense layers on images of 28 × 28; dense: three dense layers on 784
         numbers
"""

from kit import fixed_batch, fixed_outputs, main

BATCHES, BATCH, CLASSES = 20, 16, 10
SHAPES = {"conv": (28, 28, 1), "dense": (784,)}


def scenario(bench, *, loop="eager", network="conv"):
    """Measure a step."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    shape = (BATCH,) + SHAPES[network]
    with bench.phase("build"):
        model = make_model(keras, network)
        loss = keras.losses.SparseCategoricalCrossentropy()
        x = fixed_batch(shape, "float32")
        y = [row % CLASSES for row in range(BATCH)]
        dataset = tf.data.Dataset.from_tensors((x, y)).repeat(BATCHES)
        epoch = make_epoch(tf, model, loss, dataset, loop)
    with bench.phase("first call"):
        bench.fetch(epoch())
    bench.measure(epoch, steps=BATCHES)
    bench.placed(model.weights)
    bench.fingerprint(parameters=int(model.count_params()), outputs=fixed_outputs(model, shape, "float32"))


def make_model(keras, network):
    """Return the network of that name."""
    layers = keras.layers
    inputs = x = layers.Input(SHAPES[network])
    if network == "conv":
        for filters in (6, 16):
            x = layers.Conv2D(filters, 3, activation="relu")(x)
            x = layers.AveragePooling2D(2)(x)
        x = layers.Flatten()(x)
    for units in (120, 84) if network == "conv" else (64, 64):
        x = layers.Dense(units, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(CLASSES, activation="softmax")(x))


def make_epoch(tf, model, loss, dataset, loop):
    """Return a function that trains for an epoch and returns its last loss, if it is known."""
    if loop == "fit":
        model.compile(tf.keras.optimizers.RMSprop(1e-3), loss)
        return lambda: model.fit(dataset, epochs=1, verbose=0) and None

    optimizer = tf.keras.optimizers.RMSprop(1e-3)

    def train(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905, Python 3.6
        return value

    step = tf.function(train) if loop == "function" else train

    def epoch():
        for x, y in dataset:
            value = step(x, y)
        return value

    return epoch


if __name__ == "__main__":
    main(scenario)

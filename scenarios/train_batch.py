# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "One training step with a gradient tape"
# tags   = ["seed", "function", "training"]
#
# [tool.harness.axes]
# mode  = ["eager", "function"]
# batch = { sweep = [1, 4, 16, 32, 64, 256, 1024, 4096] }
#
# [tool.harness.default]
# batch = 32
#
# [[tool.harness.expect]]
# observation = "parameters"
# value       = 101770
#
# [[tool.harness.compare]]
# name    = "function vs eager"
# along   = "mode"
# plus    = "function"
# against = "eager"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""A custom training step from a lesson on speeding up training with tf.function: in eager mode, and as a function.

The network has a dense layer of 128 rectified units for images of 28 × 28, and 10 classes. It is trained with
cross-entropy and Adam, in batches of 32. An epoch is 1,875 of these steps, or 60,000 images in batches of another size.
The images are noise, which doesn't change the time of a step.
"""

from kit import digits, eager_tensorflow, fixed_batch, fixed_weights, main

PIXELS, UNITS, CLASSES = 784, 128, 10
EPOCH = 60000
PROVEN_STEPS = 10


def scenario(bench, *, mode="function", batch="32"):
    """Measure one step, after ten steps whose losses prove the training."""
    size = int(batch)
    with bench.phase("import"):
        tf = eager_tensorflow()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        network = make_network(keras)
        optimizer = keras.optimizers.Adam()
        x = tf.constant(fixed_batch((size, PIXELS), "float32"))
        y = tf.constant([image % CLASSES for image in range(size)])
        train = make_step(tf, network, optimizer)
        if mode == "function":
            train = tf.function(train)
    with bench.phase("first call"):
        losses = [bench.fetch(train(x, y))]
    losses += [train(x, y) for _ in range(PROVEN_STEPS - 1)]

    steps = bench.measure(lambda: train(x, y), document=max(1, EPOCH // size))
    bench.observe("parameters", int(network.count_params()))
    bench.placed(network.weights)
    bench.fingerprint(
        losses=digits([loss.numpy() for loss in losses]),
        steps_called=PROVEN_STEPS + steps,
        steps_counted=int(optimizer.iterations.numpy()),
    )


def make_network(keras):
    """Return the network with constant weights."""
    layers = keras.layers
    inputs = layers.Input(shape=(PIXELS,))
    hidden = layers.Dense(UNITS, activation="relu")(inputs)
    network = keras.models.Model(inputs, layers.Dense(CLASSES)(hidden))
    network.set_weights(fixed_weights([weight.shape for weight in network.get_weights()]))
    return network


def make_step(tf, network, optimizer):
    """Return the function `train_batch(x, y)`, which makes one step of gradient descent and returns the loss."""
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def train_batch(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, network(x, training=True))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))  # noqa: B905, Python 3.6
        return loss

    return train_batch


if __name__ == "__main__":
    main(scenario)

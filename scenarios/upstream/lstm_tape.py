# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "The gradient of an LSTM, with a persistent and a plain tape"
# source = "https://github.com/tensorflow/tensorflow/issues/51818"
# tags   = ["upstream", "layers"]
#
# [tool.harness.axes]
# tape  = ["persistent", "plain"]
# layer = ["LSTM", "GRU"]
#
# [[tool.harness.compare]]
# name    = "persistent vs plain"
# along   = "tape"
# plus    = "persistent"
# against = "plain"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#51818"
# reported = "with a persistent tape, the gradient of an LSTM is very slow; new code in recurrent_v2 makes it fast"
# worse    = { environment = "tf2.6", tape = "persistent" }
# better   = { environment = "tf2.6", tape = "plain" }
# ratio    = [2, 50]                # "drastically", and no number that could be read
# when     = { layer = "LSTM" }
# hardware = "RTX Titan"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#44917"
# reported = "with an optimizer that needs per-example gradients, LSTM and GRU train 8 times slower in 2.4 and later"
# worse    = { environment = "tf2.4" }
# better   = { environment = "tf2.3" }
# ratio    = [4, 12]                # 15 s and over 2 minutes an epoch, two nightly builds apart
# when     = { layer = "LSTM", tape = "persistent" }
# hardware = "V100"
# version  = "a nightly wheel of 2020-10-20, and 2.4.0rc1"
# program  = "similar"
# ///
"""The gradients of a recurrent and a dense layer in a traced function, for 8 sequences of 50 time steps of 20 numbers.

tape   persistent: a persistent tape computes the gradients of each layer in a separate call, as some optimizers do for
       each example; plain: one call
layer  the recurrent layer, with 32 units
"""

from kit import digits, fixed_weights, main

BATCH, TIME_STEPS, WIDTH, UNITS = 8, 50, 20, 32


def scenario(bench, *, tape="persistent", layer="LSTM"):
    """Measure one call."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        network = keras.models.Sequential([getattr(keras.layers, layer)(UNITS), keras.layers.Dense(1)])
        x = tf.ones((BATCH, TIME_STEPS, WIDTH))
        network(x)
        network.set_weights(fixed_weights([weight.shape for weight in network.get_weights()]))

        @tf.function
        def gradients():
            with tf.GradientTape(persistent=tape == "persistent") as recorded:
                loss = tf.reduce_mean(network(x) ** 2)
            if tape == "plain":
                return recorded.gradient(loss, network.trainable_variables)
            return [one for part in network.layers for one in recorded.gradient(loss, part.trainable_variables)]

    with bench.phase("first call"):
        values = bench.fetch(gradients())
    bench.measure(gradients)
    bench.placed(network.weights)
    bench.fingerprint(bias=digits(values[2])[:4])


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "The first call of an unrolled LSTM"
# source = "https://github.com/tensorflow/tensorflow/issues/34920"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# mode = ["function", "eager"]
#
# [[tool.harness.compare]]
# name    = "function vs eager"
# along   = "mode"
# plus    = "function"
# against = "eager"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#34920"
# reported = "the first call of an unrolled LSTM takes 12.8 s in a tf.function and 0.21 s without it"
# worse    = { environment = "tf2.0", mode = "function" }
# better   = { environment = "tf2.0", mode = "eager" }
# ratio    = [30, 120]              # 61 over 300 time steps; here there are 100 of them
# hardware = "CPU, Windows 10"
# program  = "similar"
# ///
"""The first call of a layer, in the tape of a training step: 100 time steps of 256 numbers, 256 units, one row.

mode  function: the layer is called in a tf.function, which traces every time step; eager: without a tf.function
"""

from kit import main

TIME_STEPS, WIDTH = 100, 256


def scenario(bench, *, mode="function"):
    """Time the first and only call."""
    with bench.phase("import"):
        import tensorflow as tf

        layers = tf.keras.layers
    bench.device()
    with bench.phase("build"):
        layer = layers.LSTM(WIDTH, unroll=True)
        x = tf.zeros((1, TIME_STEPS, WIDTH))

        def call():
            return layer(x)

        if mode == "function":
            call = tf.function(call)

    def first():
        with tf.GradientTape():
            return call()

    output = bench.once(first)
    bench.fingerprint(shape=[int(size) for size in output.shape], parameters=int(layer.count_params()))


if __name__ == "__main__":
    main(scenario)

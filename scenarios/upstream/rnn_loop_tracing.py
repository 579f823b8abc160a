# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "The first call of a function that runs an LSTM cell step by step"
# source = "https://github.com/tensorflow/tensorflow/issues/38628"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# loop = ["range", "while_loop"]
#
# [[tool.harness.compare]]
# name    = "range vs while_loop"
# along   = "loop"
# plus    = "range"
# against = "while_loop"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#38628"
# reported = "the first call takes 10 s if a for loop runs the cell, and almost no time with tf.while_loop"
# worse    = { environment = "tf2.1", loop = "range" }
# better   = { environment = "tf2.1", loop = "while_loop" }
# ratio    = [10, 100]              # "nearly instant" has no number; their graphs were 3.5 MB and 180 kB
# hardware = "CPU and GPU, Windows and Linux"
# program  = "similar"
# ///
"""The first call of a function: 100 steps of a cell with 32 units. Each step gets the output of the previous step.

loop  range: Python's range, which tracing unrolls; while_loop: tf.while_loop, whose body is traced once
"""

from kit import digits, fixed_weights, main

STEPS, UNITS = 100, 32


def scenario(bench, *, loop="range"):
    """Time the first and only call."""
    with bench.phase("import"):
        import tensorflow as tf

        layers = tf.keras.layers
    bench.device()
    with bench.phase("build"):
        cell = layers.LSTMCell(UNITS)
        cell.build((1, UNITS))
        cell.set_weights(fixed_weights([weight.shape for weight in cell.get_weights()]))

        def turn(x, h, c):
            x, (h, c) = cell(x, [h, c])
            return x, h, c

        def unrolled(x, h, c):
            for _ in range(STEPS):
                x, h, c = turn(x, h, c)
            return x

        def looped(x, h, c):
            state = (0, x, h, c)
            return tf.while_loop(lambda i, *_: i < STEPS, lambda i, *state: (i + 1,) + turn(*state), state)[1]

        function = tf.function(unrolled if loop == "range" else looped)
        start = [tf.ones((1, UNITS))] * 3
    output = bench.once(lambda: function(*start))
    bench.fingerprint(output=digits(output)[:4])


if __name__ == "__main__":
    main(scenario)

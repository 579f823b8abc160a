# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "2,048 slices of a tensor, in one call of a tf.function and in eager mode"
# source = "https://github.com/tensorflow/tensorflow/issues/39850"
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
# issue    = "T#39850"
# reported = "taking slices of an array in a tf.function takes about 23 times as long as without it"
# worse    = { environment = "tf2.1", mode = "function" }
# better   = { environment = "tf2.1", mode = "eager" }
# ratio    = [12, 45]               # of the first call: later ones trace nothing
# hardware = "one GPU"
# program  = "same"
# ///
"""The first call, as in the issue: a loop takes every row of a tensor of 16 × 128 × 4, and returns the last row.

mode  function: the loop is in a tf.function, which traces it; eager: the loop is plain Python
"""

from kit import digits, main

SHAPE = (16, 128, 4)


def scenario(bench, *, mode="function"):
    """Time the first and only call."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        inputs = tf.reshape(tf.range(16.0 * 128 * 4), SHAPE)

        def take(inputs):
            for row in range(SHAPE[0]):
                for column in range(SHAPE[1]):
                    taken = inputs[row, column, :]
            return taken

        if mode == "function":
            take = tf.function(take)
    taken = bench.once(lambda: take(inputs))
    bench.fingerprint(taken=digits(taken))


if __name__ == "__main__":
    main(scenario)

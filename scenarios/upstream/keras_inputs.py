# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Sums of two Keras inputs"
# source = "https://github.com/tensorflow/tensorflow/issues/61363"
# tags   = ["upstream", "calls"]
#
# [[tool.harness.claim]]
# issue    = "T#61363"
# reported = "3,000 sums of two inputs take 24 s in 2.13, and 5.3 s in 2.12"
# worse    = { environment = "tf2.13" }
# better   = { environment = "tf2.12" }
# ratio    = [3.6, 5.7]
# hardware = "CPU, Debian 11"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "K#18301"
# reported = "3,000 sums of two inputs take 24 s with Keras 2.13.1, and 6 s with 2.12.0"
# worse    = { environment = "tf2.13" }
# better   = { environment = "tf2.12" }
# ratio    = [3.2, 5]
# hardware = "CPU, Linux"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "TK#155"
# reported = "the same issue in the tf-keras repository"
# worse    = { environment = "tf2.13" }
# better   = { environment = "tf2.12" }
# ratio    = [3.2, 5]
# hardware = "CPU, Linux"
# program  = "similar"
#
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""900 sums of two symbolic inputs of a model. Each sum adds a layer, and none is ever computed.

The issues have 3,000 sums. In 2.13, each sum takes longer than the sum before, so the ratio holds only for 3,000 sums.
"""

from kit import main

SUMS = 900


def scenario(bench):
    """Time the sums."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        x, y = keras.layers.Input((1,)), keras.layers.Input((1,))

    def add():
        for _ in range(SUMS):
            total = x + y
        shapes.append(total.shape)

    shapes = []
    bench.once(add)
    bench.fingerprint(shape=[int(size) for size in shapes[0][1:]])  # the number of rows isn't fixed


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "The sum of two Keras inputs"
# source = "https://github.com/tensorflow/tensorflow/issues/61363"
# tags   = ["upstream", "calls"]
#
# [[tool.harness.claim]]
# issue    = "T#61363"
# reported = "3,000 sums of two inputs take 24 s in 2.13, and 5.3 s in 2.12"
# worse    = { environment = "tf2.13" }
# better   = { environment = "tf2.12" }
# ratio    = [3.6, 5.7]
# hardware = "CPU; Debian 11"
# [[tool.harness.claim]]
# issue    = "K#18301"
# reported = "3,000 sums of two inputs take 24 s with Keras 2.13.1, and 6 s with 2.12.0"
# worse    = { environment = "tf2.13" }
# better   = { environment = "tf2.12" }
# ratio    = [3.2, 5]
# hardware = "CPU; Linux"
#
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""x + y of two symbolic inputs of a model to be, again and again, each of which adds a layer: none is ever computed."""

from kit import main


def scenario(bench):
    """Measure one sum."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras when something of it is first asked for
    bench.device()
    with bench.phase("build"):
        x, y = keras.layers.Input((1,)), keras.layers.Input((1,))
    with bench.phase("first call"):
        total = bench.fetch(x + y)

    def add():
        x + y  # noqa: B018

    bench.measure(add, document=3000)
    bench.fingerprint(shape=[None if size is None else int(size) for size in total.shape])


if __name__ == "__main__":
    main(scenario)

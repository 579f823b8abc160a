# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "An embedding lookup with a NumPy array, in a tf.function and in eager mode"
# source = "https://github.com/tensorflow/tensorflow/issues/35840"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# mode    = ["function", "eager"]
# indices = ["array", "tensor"]
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
# issue    = "T#35840"
# reported = "an embedding layer takes more than twice as long in a tf.function as in eager mode"
# worse    = { environment = "tf2.0", mode = "function" }
# better   = { environment = "tf2.0", mode = "eager" }
# ratio    = [2, 4]
# when     = { indices = "array" }
# hardware = "GTX 2080"
# program  = "similar"
# ///
"""One lookup of 100 rows in an embedding of 1,000 rows with 300 numbers each.

mode     function: the layer is called in a tf.function; eager: it is called without a tf.function
indices  array: a NumPy array, as in the issue, which each call converts to a tensor; tensor: a tensor
"""

from kit import main

ROWS, WIDTH, TAKEN = 1000, 300, 100


def scenario(bench, *, mode="function", indices="array"):
    """Measure one lookup."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        layers = tf.keras.layers
    bench.device()
    with bench.phase("build"):
        layer = layers.Embedding(ROWS, WIDTH)
        layer.build((None,))
        layer.set_weights([np.linspace(-1, 1, ROWS * WIDTH, dtype="float32").reshape(ROWS, WIDTH)])
        rows = np.arange(0, ROWS, ROWS // TAKEN)
        if indices == "tensor":
            rows = tf.constant(rows)
        call = tf.function(layer.call) if mode == "function" else layer
    with bench.phase("first call"):
        vectors = bench.fetch(call(rows))
    bench.measure(lambda: call(rows))
    bench.placed(layer.weights)
    bench.fingerprint(total=float(tf.reduce_sum(vectors)), shape=[int(size) for size in vectors.shape])


if __name__ == "__main__":
    main(scenario)

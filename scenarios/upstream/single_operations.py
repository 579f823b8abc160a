# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "Slow single operations"
# source = "https://github.com/tensorflow/tensorflow/issues/38898"
# tags   = ["upstream", "kernels"]
#
# [tool.harness.axes]
# operation = [
#     "unique_int32", "unique_float32", "ragged_constant", "constant", "prod_gradient", "sum_gradient", "lookup_list",
#     "lookup_array",
# ]
#
# [[tool.harness.needs]]
# when     = { operation = "lookup_list" }
# requires = ["tensorflow>=2.11"]
# reason   = "IntegerLookup takes a NumPy array as its vocabulary, with which it is compared, in 2.11 and later."
# [[tool.harness.needs]]
# when     = { operation = "lookup_array" }
# requires = ["tensorflow>=2.11"]
# reason   = "IntegerLookup takes a NumPy array as its vocabulary in 2.11 and later."
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#38898"
# reported = "unique_with_counts takes 400 ms for float32, and 235 ms for int32 (PyTorch, which isn't measured: 5 ms)"
# worse    = { environment = "tf2.1", operation = "unique_float32" }
# better   = { environment = "tf2.1", operation = "unique_int32" }
# ratio    = [1.3, 2.2]
# hardware = "not reported; the GPU is a V100"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#47853"
# reported = "tf.ragged.constant of ten million numbers takes 15 s, and tf.constant takes 50 ms"
# worse    = { environment = "tf2.4", operation = "ragged_constant" }
# better   = { environment = "tf2.4", operation = "constant" }
# ratio    = [150, 600]
# hardware = "Colab"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#23901"
# reported = "training is about 20 times slower with reduce_prod than with reduce_sum"
# worse    = { environment = "tf1.14", operation = "prod_gradient" }
# better   = { environment = "tf1.14", operation = "sum_gradient" }
# ratio    = [10, 40]
# hardware = "not reported"
# version  = "1.5 to 1.11"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#65610"
# reported = "a call of an IntegerLookup takes 6.2 ms if its vocabulary is a list, and 0.29 ms if it is an array"
# worse    = { environment = "tf2.14", operation = "lookup_list" }
# better   = { environment = "tf2.14", operation = "lookup_array" }
# ratio    = [14, 33]
# hardware = "not reported; Ubuntu 20.04"
# program  = "similar"
# ///
"""One operation in eager mode.

operation  unique_int32, unique_float32: unique_with_counts of a million numbers below 1,024; ragged_constant, constant:
           a tensor of 200,000 numbers, from an array; prod_gradient, sum_gradient: the gradient of reduce_prod or
           reduce_sum over the last axis of 8 x 8 x 8 x 8 x 8 numbers; lookup_list, lookup_array: a call of an
           IntegerLookup on 2 x 4 numbers. Its vocabulary of 10,000 numbers is a list or an array
"""

from kit import eager_tensorflow, main

WORK = {"unique": 1000000, "constant": 200000, "gradient": 8**5, "lookup": 8}


def scenario(bench, *, operation="unique_int32"):
    """Measure one operation."""
    with bench.phase("import"):
        import numpy as np

        tf = eager_tensorflow()
        if operation.startswith("lookup"):
            tf.keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        step = make_step(tf, np, operation)
    with bench.phase("first call"):
        bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(numbers=[WORK[kind] for kind in WORK if kind in operation])


def make_step(tf, np, operation):
    """Return a function that runs the operation once."""
    noise = np.random.RandomState(7)
    if operation.startswith("unique"):
        numbers = tf.constant(noise.randint(1024, size=WORK["unique"]).astype(operation.split("_")[1]))
        return lambda: tf.unique_with_counts(numbers)
    if operation.endswith("constant"):
        array = noise.randint(10, size=WORK["constant"])
        make = tf.constant if operation == "constant" else tf.ragged.constant
        return lambda: make(array)
    if operation.endswith("gradient"):
        return gradient(tf, noise, tf.reduce_prod if operation.startswith("prod") else tf.reduce_sum)
    vocabulary = np.arange(10000)
    layer = tf.keras.layers.IntegerLookup(vocabulary=vocabulary.tolist() if operation == "lookup_list" else vocabulary)
    data = np.array([[10, 20, 30, 40], [50, 60, 70, 20000]])
    return lambda: layer(data)


def gradient(tf, noise, reduce):
    """Return a step that computes the gradient of a reduction over the last axis."""
    x = tf.constant(noise.random_sample((8,) * 5).astype("float32") + 0.5)

    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            reduced = reduce(x, axis=-1)
        return tape.gradient(reduced, x)

    return step


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "py_function that returns lists or arrays"
# source = "https://github.com/tensorflow/tensorflow/issues/47470"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# results = ["lists", "arrays"]
#
# [[tool.harness.compare]]
# name    = "lists vs arrays"
# along   = "results"
# plus    = "lists"
# against = "arrays"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#47470"
# reported = "a py_function that returns a tuple of lists takes 10 s, and other return types are fast"
# worse    = { environment = "tf2.4", results = "lists" }
# better   = { environment = "tf2.4", results = "arrays" }
# ratio    = [3, 100]               # the thread's other number was not to be read
# hardware = "CPU, Ubuntu 20.04"
# program  = "similar"
# ///
"""A pass over a dataset of 20 elements, per element. A Python function maps each element to two vectors.

results  lists: a tuple of two lists of 100 lists of 10 floats; arrays: a tuple of two NumPy arrays of that shape
"""

from kit import main

ELEMENTS = 20


def scenario(bench, *, results="lists"):
    """Measure one pass."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        arrays = np.ones((100, 10), "float32"), np.zeros((100, 10), "float32")
        returned = arrays if results == "arrays" else tuple(array.tolist() for array in arrays)

        def mapped(element):
            return tf.py_function(lambda element: returned, [element], [tf.float32, tf.float32])

        dataset = tf.data.Dataset.range(ELEMENTS).map(mapped)

    def step():
        for pair in dataset:  # noqa: B007, only the last is used
            pass
        return pair

    with bench.phase("first call"):
        ones, zeros = step()
    bench.measure(step, steps=ELEMENTS)
    bench.fingerprint(ones=float(tf.reduce_sum(ones)), zeros=float(tf.reduce_sum(zeros)))


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "Python functions in a dataset: numpy_function and py_function"
# source = "https://github.com/tensorflow/tensorflow/issues/37488"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# call = ["numpy_lambda", "numpy_named", "py_function"]
#
# [[tool.harness.compare]]
# name    = "lambda vs named"
# along   = "call"
# plus    = "numpy_lambda"
# against = "numpy_named"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#37488"
# reported = "from 1.15 on, numpy_function of a lambda takes 2 to 8 times as long as in 1.14"
# worse    = { environment = "tf2.1", call = "numpy_lambda" }
# better   = { environment = "tf1.14", call = "numpy_lambda" }
# ratio    = [2, 8]
# hardware = "Colab, and a server with a V100; the work is on the CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#53620"
# reported = "py_function in Dataset.map is slower in 2.6 and 2.7 than in 2.5"
# worse    = { environment = "tf2.7", call = "py_function" }
# better   = { environment = "tf2.5", call = "py_function" }
# ratio    = [1.1, 3]               # the numbers are in a notebook that the thread does not show
# hardware = "CPU, Ubuntu 20.04"
# program  = "similar"
# ///
"""A pass over a dataset of 100 elements, to each of which a Python function is mapped. The time is per element.

The function adds 0.5 to its argument 200 times.

call  numpy_lambda: numpy_function of a lambda that passes another argument; numpy_named: numpy_function of a function
      of the module; py_function: py_function of the function of the module
"""

from kit import eager_tensorflow, main

ELEMENTS, ADDITIONS = 100, 200


def scenario(bench, *, call="numpy_lambda"):
    """Measure one pass."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):

        def mapped(start):
            if call == "numpy_lambda":
                return tf.numpy_function(lambda start: add_up(start, ADDITIONS), [start], tf.float32)
            if call == "numpy_named":
                return tf.numpy_function(add_up, [start], tf.float32)
            return tf.py_function(add_up, [start], tf.float32)

        dataset = tf.data.Dataset.range(ELEMENTS).map(mapped)

    def step():
        for element in dataset:  # noqa: B007, only the last is used
            pass
        return element

    with bench.phase("first call"):
        last = step()
    bench.measure(step, steps=ELEMENTS)
    bench.fingerprint(last=float(last.numpy()))


def add_up(start, additions=ADDITIONS):
    """Add 0.5 to `start` repeatedly."""
    import numpy as np

    total = float(start)
    for _ in range(additions):
        total = max(total, total + 0.5)
    return np.float32(total)


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per call of py_function"
# source = "https://github.com/tensorflow/tensorflow/issues/35010"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# call  = ["py_function", "numpy_function"]
# where = ["eager", "dataset"]
#
# [[tool.harness.compare]]
# name    = "py_function vs numpy_function"
# along   = "call"
# plus    = "py_function"
# against = "numpy_function"
# of      = "memory growth"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#35010"
# reported = "memory grows with each call of py_function in eager mode, and numpy_function does not leak"
# worse    = { environment = "tf2.0", call = "py_function" }
# bytes    = [200000, 1000000]      # 100,000 floats a call, in the example for 2.4: what it takes and what it returns
# of       = "memory growth"
# when     = { where = "eager" }
# hardware = "macOS and others"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#61344"
# reported = "py_function in Dataset.map keeps 11 to 52 MiB per 1,000 steps in 2.13, and none in 2.15"
# worse    = { environment = "tf2.13", call = "py_function" }
# bytes    = [11000, 55000]
# of       = "memory growth"
# when     = { where = "dataset" }
# hardware = "Colab, and RTX 2080 Ti"
# program  = "similar"
# fixed    = "2.15"
#
# [[tool.harness.claim]]
# issue    = "T#51839"
# reported = "py_function in an endless loop leaks the arrays that it is given or returns, in 2.6 and nightly wheels"
# worse    = { environment = "tf2.6", call = "py_function" }
# bytes    = [200000, 1000000]      # 100,000 floats are given and returned here, and 40 million numbers there
# of       = "memory growth"
# when     = { where = "eager" }
# hardware = "Colab"
# program  = "similar"
# ///
"""The memory growth over 100 calls of a Python function, which computes the cosines of 100,000 floats with NumPy.

call   py_function: the Python function gets tensors, which a tape may record; numpy_function: it gets arrays
where  eager: a call in eager mode; dataset: the function is mapped over a dataset, and a step takes the next element
"""

from kit import main

CALLS, FLOATS = 100, 100000


def scenario(bench, *, call="py_function", where="eager"):
    """Record the memory of the process over the calls."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        x = tf.ones([FLOATS])
        by = getattr(tf, call)

        def cosines(x):
            return by(np.cos, [x], tf.float32)

        elements = iter(tf.data.Dataset.from_tensors(x).repeat().map(lambda x: cosines(x + 1 - 1)))
    # Each call gets a new tensor, because the same tensor would be kept only once.
    step = (lambda: cosines(tf.ones([FLOATS]))) if where == "eager" else (lambda: next(elements))
    with bench.phase("first call"):
        result = step()
    bench.memory(step, CALLS)
    bench.fingerprint(first=float(result[0]), size=int(result.shape[0] or FLOATS))


if __name__ == "__main__":
    main(scenario)

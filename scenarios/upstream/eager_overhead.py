# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "One small operation: TensorFlow's eager mode, NumPy and Python numbers"
# source = "https://github.com/tensorflow/tensorflow/issues/120"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# work = ["add", "slice"]
# way  = ["tensors", "numbers", "numpy"]
#
# [[tool.harness.exclude]]          # a slice has no second operand
# work = "slice"
# way  = "numbers"
#
# [[tool.harness.compare]]
# name  = "numpy vs others"
# along = "way"
# plus  = "numpy"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#120"
# reported = "in eager mode c += 1 is much slower than tf.add of two tensors, because 1 becomes a tensor each time"
# worse    = { environment = "tf1.14", way = "numbers" }
# better   = { environment = "tf1.14", way = "tensors" }
# ratio    = [1.5, 10]              # 5 µs an addition of tensors on 1.12; of the other no number is told
# when     = { work = "add" }
# hardware = "a developer's machine, CPU"
# version  = "1.12"
# program  = "same"
#
# [[tool.harness.claim]]
# issue    = "T#39750"
# reported = "slicing a tensor takes 50.7 µs, and slicing a NumPy array takes 0.163 µs"
# worse    = { environment = "tf2.1", way = "tensors" }
# better   = { environment = "tf2.1", way = "numpy" }
# ratio    = [150, 600]             # 311
# when     = { work = "slice" }
# hardware = "CPU, macOS"
# program  = "similar"
# ///
"""100 operations in a Python loop, per operation.

work  add: one is added to a counter; slice: the first 100 of 10 million floats are taken
way   tensors: all operands are tensors; numbers: += with the Python number 1; numpy: NumPy's scalars and arrays
"""

from kit import eager_tensorflow, main

OPERATIONS = 100


def scenario(bench, *, work="add", way="tensors"):
    """Measure 100 operations in a Python loop."""
    with bench.phase("import"):
        import numpy as np

        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        step = WORK[work](tf, np, way)
    with bench.phase("first call"):
        result = step()
    bench.measure(step, steps=OPERATIONS)
    bench.fingerprint(total=float(np.sum(np.asarray(result))))


def make_add(tf, np, way):
    """Return a step that counts to 100."""
    zero, one = (np.float32(0), np.float32(1)) if way == "numpy" else (tf.constant(0.0), tf.constant(1.0))

    def with_numbers():
        c = zero
        for _ in range(OPERATIONS):
            c += 1
        return c

    def with_tensors():
        c = zero
        for _ in range(OPERATIONS):
            c = tf.add(c, one)
        return c

    def with_numpy():
        c = zero
        for _ in range(OPERATIONS):
            c = c + one
        return c

    return {"numbers": with_numbers, "tensors": with_tensors, "numpy": with_numpy}[way]


def make_slice(tf, np, way):
    """Return a step that takes the same slice 100 times."""
    values = np.zeros(10_000_000, dtype="float32")
    if way == "tensors":
        values = tf.constant(values)

    def step():
        for _ in range(OPERATIONS):
            taken = values[:100]
        return taken

    return step


WORK = {"add": make_add, "slice": make_slice}


if __name__ == "__main__":
    main(scenario)

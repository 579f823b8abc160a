# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Eleven products of large matrices, including tracing"
# tags   = ["seed", "function"]
#
# [tool.harness.axes]
# mode      = ["eager", "function"]
# structure = ["flat", "nested"]
# calls     = { sweep = [1, 10], unit = "calls" }
# [[tool.harness.exclude]]          # in plain Python, a nested function makes no difference
# mode      = "eager"
# structure = "nested"
#
# [[tool.harness.compare]]
# name    = "function vs eager"
# along   = "mode"
# plus    = "function"
# against = "eager"
# [[tool.harness.compare]]
# name    = "flat vs nested"
# along   = "structure"
# plus    = "flat"
# against = "nested"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The lesson's loop over matrices of 1000 × 1000 ones: s = 0, then s += x·y, and ten times s += (s·y) ∘ x.

Here, x·y is the matrix product, and ∘ multiplies element by element. A step is a new tf.function, its tracing, and N
calls. In eager mode, a step is only the calls. The products of a call are 22 GFLOP and take the same time in both
modes, so only the overhead can differ.

structure  flat: the loop is in the function; nested: the loop is in another function that the function calls, and that
           is traced together with it
"""

from kit import eager_tensorflow, main, traced_calls

SIDE = 1000
LOOPS = 10


def scenario(bench, *, mode="function", structure="flat", calls="1"):
    """Measure `calls` calls, and the tracing before them."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        x = y = tf.ones([SIDE, SIDE])
        step = traced_calls(tf, make_compute(tf, structure), mode, calls, x, y)
    with bench.phase("first call"):
        values = step(calls=1).numpy()
    bench.measure(step)
    bench.fingerprint(corners=[float(values[0, 0]), float(values[-1, -1])])


def make_compute(tf, structure):
    """Return the measured function of the matrices x and y."""

    def loop(s, x, y):
        for _ in range(LOOPS):
            s += tf.matmul(s, y) * x
        return s

    def nested(x, y):
        return loop(tf.zeros([SIDE, SIDE]) + tf.matmul(x, y), x, y)

    def flat(x, y):
        s = tf.zeros([SIDE, SIDE])
        s += tf.matmul(x, y)
        for _ in range(LOOPS):
            s += tf.matmul(s, y) * x
        return s

    return {"flat": flat, "nested": nested}[structure]


if __name__ == "__main__":
    main(scenario)

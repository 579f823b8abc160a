# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A Jacobian in eager mode, as a whole or from gradients"
# source = "https://github.com/tensorflow/tensorflow/issues/48314"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# way    = ["jacobian", "loop", "gradients"]
# values = ["3", "1001", "500"]
#
# [tool.harness.default]
# values = "3"
#
# [[tool.harness.compare]]
# name    = "jacobian vs gradients"
# along   = "way"
# plus    = "jacobian"
# against = "gradients"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#48314"
# reported = "three derivatives take 5.3 s by tape.jacobian, and 0.08 s by tape.gradient"
# worse    = { environment = "tf2.4", way = "jacobian" }
# better   = { environment = "tf2.4", way = "gradients" }
# when     = { values = "3" }
# ratio    = [40, 100]
# hardware = "CPU, Scientific Linux 7"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#48314"
# reported = "1,001 derivatives take 27 s by tape.gradient, and 6 s by tape.jacobian"
# worse    = { environment = "tf2.4", way = "gradients" }
# better   = { environment = "tf2.4", way = "jacobian" }
# when     = { values = "1001" }
# ratio    = [3, 7]
# hardware = "CPU, Scientific Linux 7"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#36227"
# reported = "without vectorization (experimental_use_pfor), a Jacobian of 500 outputs takes 5 times as long"
# worse    = { environment = "tf2.0", way = "loop" }
# better   = { environment = "tf2.0", way = "jacobian" }
# when     = { values = "500" }
# ratio    = [3, 8]
# hardware = "not reported; Scientific Linux 7"
# program  = "similar"
# ///
"""The derivatives of 3, 500 or 1,001 values with respect to their inputs. Each value takes 50 sines and products.

way     jacobian: tape.jacobian of the vector, of which only the diagonal is needed; loop: tape.jacobian without
        vectorization; gradients: tape.gradient of each value separately
"""

from kit import digits, main

CHAIN = 50


def scenario(bench, *, way="jacobian", values="3"):
    """Measure all derivatives."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        x = tf.linspace(0.1, 1.0, int(values))
        step = by_gradients(tf, x) if way == "gradients" else by_jacobian(tf, x, way)
    with bench.phase("first call"):
        derivatives = bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(total=float("{:.4g}".format(sum(digits(derivatives)))))


def chain(tf, x):
    """Compute the function whose derivatives are measured."""
    for _ in range(CHAIN):
        x = tf.sin(x) * 1.1
    return x


def by_jacobian(tf, x, way):
    """Return a function that computes the whole Jacobian."""

    def step():
        with tf.GradientTape(persistent=way == "loop") as tape:
            tape.watch(x)
            y = chain(tf, x)
        return tf.linalg.diag_part(tape.jacobian(y, x, experimental_use_pfor=way != "loop"))

    return step


def by_gradients(tf, x):
    """Return a function that computes one derivative after the other."""
    values = [tf.constant(value) for value in x.numpy()]

    def one(value):
        with tf.GradientTape() as tape:
            tape.watch(value)
            y = chain(tf, value)
        return tape.gradient(y, value)

    return lambda: tf.stack([one(value) for value in values])


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "session.run of a small network"
# source = "https://github.com/tensorflow/tensorflow/issues/43620"
# tags   = ["upstream", "calls"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#43620"
# reported = "session.run of the same simple script takes 20 % longer in 2.3 than in 1.15"
# worse    = { environment = "tf2.3" }
# better   = { environment = "tf1.15" }
# ratio    = [1.1, 1.35]
# hardware = "Quadro P1000, and without a GPU"
# program  = "guessed"
# ///
"""One run of a session: three dense layers of 64 units, and a feed of 32 rows of 16 numbers."""

from kit import digits, fixed_batch, fixed_weights, main


def scenario(bench):
    """Measure one run."""
    with bench.phase("import"):
        import tensorflow as tf

        v1 = tf.compat.v1
    bench.device()
    with bench.phase("build"), tf.Graph().as_default():
        x = y = v1.placeholder(tf.float32, (None, 16))
        for kernel in fixed_weights([(16, 64), (64, 64), (64, 1)]):
            y = tf.tanh(tf.matmul(y, v1.Variable(kernel.astype("float32"))))
        session = v1.Session()
        session.run(v1.global_variables_initializer())
        rows = fixed_batch((32, 16), "float32")

    def step():
        return session.run(y, {x: rows})

    with bench.phase("first call"):
        outputs = step()
    bench.measure(step)
    bench.fingerprint(outputs=[float("{:.4g}".format(value)) for value in digits(outputs)[:8]])


if __name__ == "__main__":
    main(scenario)

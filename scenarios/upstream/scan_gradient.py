# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "The gradient of tf.scan, by a persistent or a plain tape"
# source = "https://github.com/tensorflow/tensorflow/issues/51393"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# tape = ["persistent", "plain", "none"]
#
# [[tool.harness.compare]]
# name    = "persistent vs plain"
# along   = "tape"
# plus    = "persistent"
# against = "plain"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#51393"
# reported = "tf.scan with a trained parameter is slower in 2.5 than in 2.3 (its numbers are in an image)"
# worse    = { environment = "tf2.5" }
# better   = { environment = "tf2.3" }
# when     = { tape = "persistent" }
# ratio    = [1.2, 5]
# hardware = "CPU"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#51393"
# reported = "in 2.6, training is as fast as in 2.3 again if the tape is not persistent"
# worse    = { environment = "tf2.6", tape = "persistent" }
# better   = { environment = "tf2.6", tape = "plain" }
# ratio    = [1.2, 5]
# hardware = "CPU"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#51393"
# reported = "inference is slower than in 2.3 too, most likely because of tf.scan"
# worse    = { environment = "tf2.6" }
# better   = { environment = "tf2.3" }
# when     = { tape = "none" }
# ratio    = [1.1, 5]
# hardware = "CPU"
# program  = "similar"
# ///
"""One call of a traced function: a scan over 60 time steps, as in a conditional random field, and its gradient.

Each step adds a trained matrix of 20 x 20 numbers to the state of 16 rows of 20 numbers, and reduces it with logsumexp.

tape  persistent, plain: the kind of tape that computes the gradient with respect to the matrix; none: only the scan
"""

from kit import digits, fixed_batch, main

STEPS, ROWS, LABELS = 60, 16, 20


def scenario(bench, *, tape="persistent"):
    """Measure one call, after the tracing."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        x = tf.constant(fixed_batch((STEPS, ROWS, LABELS), "float32"))
        matrix = tf.Variable(fixed_batch((LABELS, LABELS), "float32"))
        function = make_function(tf, matrix, tape)
    with bench.phase("first call"):
        bench.fetch(function(x))
    bench.measure(lambda: function(x), steps=STEPS)
    bench.fingerprint(total=digits(compute_scan(tf, matrix, x))[0])


def compute_scan(tf, matrix, x):
    """Return the sum of the states after the last step."""

    def advance(state, scores):
        return tf.reduce_logsumexp(state[:, :, None] + matrix, axis=1) + scores

    return tf.reduce_sum(tf.scan(advance, x[1:], initializer=x[0])[-1])


def make_function(tf, matrix, tape):
    """Return a traced function that computes the sum, or its gradient with respect to the matrix."""

    @tf.function
    def forward(x):
        return compute_scan(tf, matrix, x)

    @tf.function
    def backward(x):
        with tf.GradientTape(persistent=tape == "persistent") as recorded:
            total = compute_scan(tf, matrix, x)
        return recorded.gradient(total, matrix)

    return forward if tape == "none" else backward


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A loop of 100 passes in a tf.function: unrolled, tf.range, tf.while_loop, and plain Python"
# source = "https://github.com/tensorflow/tensorflow/issues/40708"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# body = ["multiply", "add", "network"]
# loop = ["range", "tf_range", "while_loop", "python"]
#
# [[tool.harness.exclude]]          # without TensorFlow there are plain numbers alone
# body = "multiply"
# loop = "python"
# [[tool.harness.exclude]]
# body = "network"
# loop = "python"
#
# [[tool.harness.compare]]
# name    = "tf.range vs range"
# along   = "loop"
# plus    = "tf_range"
# against = "range"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#40708"
# reported = "in a tf.function, a loop over tf.range takes 2.12 ms on the CPU, and the same over range 0.3 ms"
# worse    = { environment = "tf2.2", loop = "tf_range" }
# better   = { environment = "tf2.2", loop = "range" }
# ratio    = [4, 12]                # 7 on the CPU, 230 on the GPU
# when     = { body = "multiply" }
# hardware = "Colab CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#38910"
# reported = "a trivial loop in a tf.function takes 300 times as long as in pure Python"
# worse    = { environment = "tf2.1", loop = "tf_range" }
# better   = { environment = "tf2.1", loop = "python" }
# ratio    = [150, 600]
# when     = { body = "add" }
# hardware = "GTX 1080 Ti"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#36557"
# reported = "a network with a loop over tf.range takes about 7 times as long as with a loop over range"
# worse    = { environment = "tf2.2", loop = "tf_range" }
# better   = { environment = "tf2.2", loop = "range" }
# ratio    = [4, 12]                # on a nightly build of February 2020, before 2.2
# when     = { body = "network" }
# hardware = "4 Titan Xp"
# version  = "a nightly wheel of February 2020"
# program  = "similar"
# ///
"""One call of a traced function that loops 100 times.

body  multiply: 1,000 floats times a constant; add: one scalar is added to another; network: two small dense layers, on
      one row
loop  range: Python's range, which tracing unrolls; tf_range: tf.range, from which AutoGraph makes a TensorFlow loop;
      while_loop: an explicit tf.while_loop; python: plain floats, without TensorFlow
"""

from kit import digits, fixed_weights, main

PASSES = 100
FACTOR = 1.001
WIDTH = 8


def scenario(bench, *, body="multiply", loop="range"):
    """Measure one call, after the tracing."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        function, start = make(tf, body, loop)
    with bench.phase("first call"):
        result = bench.fetch(function(start))
    bench.measure(lambda: function(start), steps=PASSES)
    bench.fingerprint(result=digits(result)[:WIDTH])


def make(tf, body, loop):
    """Return the measured function of one argument, and its argument."""
    if loop == "python":
        return count, 0.0
    turn, start = BODIES[body](tf)

    def unrolled(x):
        for _ in range(PASSES):
            x = turn(x)
        return x

    def looped(x):
        for _ in tf.range(PASSES):
            x = turn(x)
        return x

    def written_out(x):
        return tf.while_loop(lambda i, x: i < PASSES, lambda i, x: (i + 1, turn(x)), (0, x))[1]

    return tf.function({"range": unrolled, "tf_range": looped, "while_loop": written_out}[loop]), start


def count(x):
    """Run the loop of `add` without TensorFlow."""
    for _ in range(PASSES):
        x = x + 1.0
    return x


def multiply(tf):
    """Return a pass of the loop that multiplies 1,000 floats by a constant, and its first argument."""
    return lambda x: x * tf.constant(FACTOR), tf.range(1000, dtype=tf.float32)


def add(tf):
    """Return a pass of the loop that adds one scalar to another, and its first argument."""
    return lambda x: x + 1.0, tf.constant(0.0)


def network(tf):
    """Return a pass of the loop that applies two constant dense layers to a row, and its first argument."""
    weights = [tf.Variable(weight.astype("float32")) for weight in fixed_weights([(WIDTH, WIDTH)] * 2)]

    def turn(x):
        for weight in weights:
            x = tf.tanh(tf.matmul(x, weight) + 0.5)
        return x

    return turn, tf.ones((1, WIDTH))


BODIES = {"multiply": multiply, "add": add, "network": network}


if __name__ == "__main__":
    main(scenario)

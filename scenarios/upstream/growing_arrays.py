# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "A result that grows in a loop: TensorArray, while_loop, and a Python list"
# source = "https://github.com/tensorflow/tensorflow/issues/46518"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# loop = [
#     "eager_array", "eager_list", "function_array", "function_list", "while_loop", "unrolled", "while_gradient",
#     "unrolled_gradient",
# ]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#46518"
# reported = "in eager mode, a TensorArray is very slow, compared with a Python list that is stacked"
# worse    = { environment = "tf2.4", loop = "eager_array" }
# better   = { environment = "tf2.4", loop = "eager_list" }
# ratio    = [2, 100]               # no number could be read
# hardware = "not reported"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#46518"
# reported = "in a tf.function, a loop with a list runs faster than one with a TensorArray (a maintainer's answer)"
# worse    = { environment = "tf2.4", loop = "function_array" }
# better   = { environment = "tf2.4", loop = "function_list" }
# ratio    = [2, 1000]
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#9527"
# reported = "a recurrence by while_loop and TensorArray is about 200 times slower than a static graph"
# worse    = { environment = "tf1.14", loop = "while_loop" }
# better   = { environment = "tf1.14", loop = "unrolled" }
# ratio    = [50, 400]
# hardware = "CPU"
# version  = "1.1"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#9527"
# reported = "the gradient of a recurrence is about 2 times slower by while_loop than in a static graph"
# worse    = { environment = "tf1.14", loop = "while_gradient" }
# better   = { environment = "tf1.14", loop = "unrolled_gradient" }
# ratio    = [1.5, 3]
# hardware = "CPU"
# version  = "1.1"
# program  = "similar"
# ///
"""100 results, collected in a loop.

loop  eager_array, eager_list: the numbers up to 100, in eager mode; function_array, function_list: the same numbers in
      a tf.function, with tf.range or range; while_loop, unrolled: repeated rotations of 32 points, in a session;
      while_gradient, unrolled_gradient: the same rotations, and the gradient with respect to the angle
"""

from kit import eager_tensorflow, main

PASSES, POINTS = 100, 32


def scenario(bench, *, loop="eager_array"):
    """Measure all passes of the loop, after the tracing."""
    by_session = not loop.startswith(("eager", "function"))
    with bench.phase("import"):
        import numpy as np

        if by_session:
            import tensorflow as tf
        else:
            tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        step = session_step(tf, np, loop) if by_session else collect_step(tf, loop)
    with bench.phase("first call"):
        result = bench.fetch(step())
    bench.measure(step, steps=PASSES)
    bench.fingerprint(numbers=int(np.size(result)))


def collect_step(tf, loop):
    """Return a function that collects the numbers."""

    def by_writes():
        collected = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in range(PASSES):
            collected = collected.write(i, i)
        return collected.stack()

    def by_list():
        collected = []
        for i in range(PASSES):
            collected.append(i)
        return tf.stack(collected)

    def by_array():
        collected = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(PASSES):
            collected = collected.write(i, i)
        return collected.stack()

    if loop == "eager_array":
        return by_writes
    if loop == "eager_list":
        return by_list
    return tf.function(by_array if loop == "function_array" else by_list)


def session_step(tf, np, loop):
    """Return a function that runs the rotations in a session."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        points = v1.placeholder(tf.float32, (POINTS, 2))
        angle = v1.get_variable("angle", (), initializer=v1.constant_initializer(0.1))
        places = in_while(tf, points, angle) if loop.startswith("while") else unrolled(tf, points, angle)
        fetched = v1.gradients(tf.reduce_sum(places), angle)[0] if "gradient" in loop else places
        session = v1.Session()
        session.run(v1.global_variables_initializer())
    corner = np.tile([1.0, 0.5], (POINTS, 1))
    return lambda: session.run(fetched, {points: corner})


def turn(tf, points, angle):
    """Return the points after a rotation by the angle."""
    sine, cosine = tf.sin(angle), tf.cos(angle)
    return tf.matmul(points, tf.reshape(tf.stack([cosine, sine, -sine, cosine]), (2, 2)))


def unrolled(tf, points, angle):
    """Return the positions of the points after each rotation, without a loop in the graph."""
    places = []
    for _ in range(PASSES):
        points = turn(tf, points, angle)
        places.append(points)
    return tf.stack(places)


def in_while(tf, points, angle):
    """Return the positions of the points after each rotation, with a loop in the graph."""

    def advance(i, points, places):
        points = turn(tf, points, angle)
        return i + 1, points, places.write(i, points)

    places = tf.TensorArray(tf.float32, size=PASSES)
    return tf.while_loop(lambda i, *_: i < PASSES, advance, (0, points, places))[2].stack()


if __name__ == "__main__":
    main(scenario)

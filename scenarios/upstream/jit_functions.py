# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.5"]
#
# [tool.harness]
# title  = "A tf.function with jit_compile, and without it"
# source = "https://github.com/tensorflow/tensorflow/issues/62808"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# work   = ["convolution", "recurrence", "unrolled", "attention", "dense"]
# jit    = ["yes", "no"]
# inputs = ["same", "new"]
#
# [tool.harness.default]
# inputs = "same"
#
# [[tool.harness.needs]]
# when     = { work = "convolution", jit = "yes" }
# requires = ["tensorflow>=2.13"]
# reason   = "XLA can compile the gradient of extract_patches in 2.13 and later."
#
# [[tool.harness.compare]]
# name    = "XLA vs no XLA"
# along   = "jit"
# plus    = "yes"
# against = "no"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#62808"
# reported = "training with a convolution made of patches is much slower with jit_compile (no number reported)"
# worse    = { environment = "tf2.15", jit = "yes" }
# better   = { environment = "tf2.15", jit = "no" }
# when     = { work = "convolution" }
# ratio    = [1.5, 100]
# hardware = "Ubuntu 23.04"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#55811"
# reported = "with XLA, a recurrent layer is 2 to 5 times slower in a while_loop than unrolled"
# worse    = { environment = "tf2.7", work = "recurrence" }
# better   = { environment = "tf2.7", work = "unrolled" }
# when     = { jit = "yes" }
# ratio    = [2, 5]
# hardware = "RTX 2080 Ti"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "TK#92"
# reported = "XLA takes 5 minutes to compile a recurrent layer that is unrolled over 240 time steps"
# worse    = { environment = "tf2.7", work = "unrolled" }
# better   = { environment = "tf2.7", work = "recurrence" }
# when     = { jit = "yes" }
# of       = "first call"
# ratio    = [5, 1000]              # no number of the loop in the thread
# hardware = "RTX 2080 Ti"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/java/issues/473"
# reported = "2.7.1 compiles a vision transformer for 30 s at the first call, and 2.9.1 does not"
# worse    = { environment = "tf2.7" }
# better   = { environment = "tf2.9" }
# when     = { work = "attention", jit = "yes" }
# of       = "first call"
# ratio    = [2, 100]
# hardware = "not reported; Linux"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#59713"
# reported = "some calls of a compiled function are very slow, though it is not compiled again (no number reported)"
# worse    = { environment = "tf2.7", inputs = "new" }
# better   = { environment = "tf2.7", inputs = "same" }
# when     = { work = "dense", jit = "yes" }
# ratio    = [2, 1000]
# hardware = "CPU, Windows 10"
# program  = "similar"
# ///
"""One call of a traced function.

work    convolution: a training step of two convolutions of 3 x 3 to 32 channels, each computed as a sum of patches
        times weights, on 10 images of 28 x 28; recurrence, unrolled: 240 time steps of a cell of 16 units on 16 rows,
        with or without a while_loop; attention: four blocks of a small transformer on 50 positions; dense: three layers
        of 64 units
jit     yes: XLA compiles the function, or only the convolutions; no: nothing is compiled
inputs  the inputs of each call: new inputs have other values and the same shape
"""

from kit import digits, fixed_batch, fixed_weights, main

SHAPES = {
    "convolution": (10, 28, 28, 1),
    "recurrence": (240, 16, 16),
    "unrolled": (240, 16, 16),
    "attention": (1, 50, 64),
    "dense": (32, 64),
}


def scenario(bench, *, work="convolution", jit="yes", inputs="same"):
    """Measure one call, after the tracing."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        x = fixed_batch(SHAPES[work], "float32")
        batches = [tf.constant(x * (1 + i / 100)) for i in range(20 if inputs == "new" else 1)]
        function = MAKERS[work](tf, jit == "yes")
    with bench.phase("first call"):
        result = bench.fetch(function(batches[0]))
    calls = [0]

    def step():
        calls[0] += 1
        return function(batches[calls[0] % len(batches)])

    bench.measure(step)
    bench.fingerprint(result=float("{:.3g}".format(digits(tf.reduce_sum(result))[0])))


def variables(tf, *shapes):
    """Return constant weights."""
    return [tf.Variable(weight.astype("float32")) for weight in fixed_weights(shapes)]


def convolution(tf, jit):
    """Return a training step. As in the issue, XLA compiles only the convolutions."""
    weights = variables(tf, (32, 9), (32, 9 * 32))

    @tf.function(jit_compile=jit)
    def convolve(x, weight):
        patches = tf.image.extract_patches(x, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
        return tf.nn.relu(tf.reduce_sum(weight * tf.expand_dims(patches, 3), axis=-1))

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            hidden = tf.nn.max_pool2d(convolve(x, weights[0]), 2, 2, "VALID")
            loss = tf.reduce_mean(tf.square(convolve(hidden, weights[1])))
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):  # noqa: B905, Python 3.6
            weight.assign_sub(1e-6 * gradient)
        return loss

    return train


def cell(tf, state, x, weights):
    """Return the next state of the recurrence."""
    return tf.tanh(tf.matmul(state, weights[0]) + tf.matmul(x, weights[1]))


def recurrence(tf, jit):
    """Return a function that computes the states of all time steps in a TensorFlow loop."""
    weights = variables(tf, (16, 16), (16, 16))

    @tf.function(jit_compile=jit)
    def run(x):
        def advance(i, state, states):
            state = cell(tf, state, x[i], weights)
            return i + 1, state, states.write(i, state)

        states = tf.TensorArray(tf.float32, size=240, element_shape=(16, 16))
        return tf.while_loop(lambda i, *_: i < 240, advance, (0, tf.zeros((16, 16)), states), maximum_iterations=240)[
            2
        ].stack()

    return run


def unrolled(tf, jit):
    """Return a function that computes the states of all time steps without a loop in the graph."""
    weights = variables(tf, (16, 16), (16, 16))

    @tf.function(jit_compile=jit)
    def run(x):
        state, states = tf.zeros((16, 16)), []
        for i in range(240):
            state = cell(tf, state, x[i], weights)
            states.append(state)
        return tf.stack(states)

    return run


def attention(tf, jit):
    """Return a function of blocks of attention and dense layers."""
    blocks = [variables(tf, (64, 64), (64, 64), (64, 64), (64, 256), (256, 64)) for _ in range(4)]

    def normal(x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-6)

    @tf.function(jit_compile=jit)
    def run(x):
        for queries, keys, values, wide, narrow in blocks:
            y = normal(x)
            scores = tf.matmul(tf.matmul(y, queries), tf.matmul(y, keys), transpose_b=True) / 8.0
            x = x + tf.matmul(tf.nn.softmax(scores), tf.matmul(y, values))
            x = x + tf.matmul(tf.nn.gelu(tf.matmul(normal(x), wide)), narrow)
        return x

    return run


def dense(tf, jit):
    """Return a function of three dense layers."""
    weights = variables(tf, (64, 64), (64, 64), (64, 64))

    @tf.function(jit_compile=jit)
    def run(x):
        for weight in weights:
            x = tf.tanh(tf.matmul(x, weight))
        return x

    return run


MAKERS = {
    "convolution": convolution,
    "recurrence": recurrence,
    "unrolled": unrolled,
    "attention": attention,
    "dense": dense,
}


if __name__ == "__main__":
    main(scenario)

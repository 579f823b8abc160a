# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A training step with Adam: a tape in a tf.function, and a session"
# source = "https://github.com/tensorflow/tensorflow/issues/38972"
# tags   = ["upstream", "optimizers"]
#
# [tool.harness.axes]
# way = ["function", "session"]
#
# [[tool.harness.needs]]
# when     = { way = "function" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1 eager mode is not the default."
#
# [[tool.harness.claim]]
# issue    = "T#38972"
# reported = "a gradient tape in a tf.function is much slower than a session (no number reported)"
# worse    = { environment = "tf2.2", way = "function" }
# better   = { environment = "tf2.2", way = "session" }
# ratio    = [2, 10]
# hardware = "not reported; Ubuntu 18.04"
# version  = "2.2.0rc3"
# program  = "guessed"
#
# [[tool.harness.compare]]
# name    = "a function vs a session"
# along   = "way"
# plus    = "function"
# against = "session"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""A training step of four dense layers with Adam, on a batch of NumPy arrays.

way  function: a gradient tape and Keras's Adam in a tf.function; session: the same network in a graph, with the Adam of
     TensorFlow 1 and `Session.run` with a feed_dict
"""

from kit import fixed_batch, fixed_weights, main

BATCH, COLUMNS, LAYERS, UNITS = 32, 64, 4, 64


def scenario(bench, *, way="function"):
    """Measure one step."""
    with bench.phase("import"):
        import tensorflow as tf

        if way == "session" and tf.executing_eagerly():
            tf.compat.v1.disable_eager_execution()
        if way == "function":
            tf.keras.optimizers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        x = fixed_batch((BATCH, COLUMNS), "float32")
        weights = [array.astype("float32") for array in fixed_weights([(UNITS, UNITS)] * LAYERS)]
        train = {"function": function_step, "session": session_step}[way](tf, weights, x)
    with bench.phase("first call"):
        first = float(bench.fetch(train()))
    bench.measure(train)
    bench.fingerprint(first_loss=float("{:.4g}".format(first)))


def forward(tf, variables, x):
    """Return the mean square of the last layer's output for x."""
    for variable in variables:
        x = tf.tanh(tf.matmul(x, variable))
    return tf.reduce_mean(tf.square(x))


def function_step(tf, weights, x):
    """Return a function that trains with a tape and returns the loss."""
    variables = [tf.Variable(array) for array in weights]
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = forward(tf, variables, x)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))  # noqa: B905, Python 3.6
        return loss

    return lambda: train(tf.constant(x))


def session_step(tf, weights, x):
    """Return a function that trains in a session and returns the loss."""
    v1 = tf.compat.v1
    variables = [v1.get_variable(str(number), initializer=array) for number, array in enumerate(weights)]
    batch = v1.placeholder(tf.float32, x.shape)
    loss = forward(tf, variables, batch)
    train = v1.train.AdamOptimizer(1e-3).minimize(loss)
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return lambda: session.run([loss, train], {batch: x})[0]


if __name__ == "__main__":
    main(scenario)

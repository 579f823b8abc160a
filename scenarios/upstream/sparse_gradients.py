# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A training step of a large embedding"
# source = "https://github.com/keras-team/keras/issues/19992"
# tags   = ["upstream", "optimizers"]
#
# [tool.harness.axes]
# api       = ["tf.keras", "keras", "tensorflow"]
# optimizer = ["adam", "sgd"]
#
# [[tool.harness.needs]]
# when     = { api = "keras" }
# requires = ["keras<2.4"]
# reason   = "In 2.4 and later, the package keras is tf.keras itself, or needs it for training."
# advice   = "Use api=tf.keras."
# [[tool.harness.needs]]
# when     = { api = "tensorflow" }
# requires = ["tensorflow<2.0"]
# reason   = "This step uses a session, which only TensorFlow 1 supports."
# advice   = "Use api=tf.keras."
#
# [[tool.harness.claim]]
# issue    = "K#19992"
# reported = "Adam on an embedding takes 294 ms with Keras 3 and 238 ms with Keras 2; a triager saw 5 to 7 %"
# worse    = { environment = "tf2.17", optimizer = "adam" }
# better   = { environment = "tf2.11", optimizer = "adam" }
# when     = { api = "tf.keras" }
# ratio    = [1.05, 1.25]
# hardware = "Colab"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "K#4365"
# reported = "a batch takes 2.3 s with Keras, which makes the gradients dense, and 20 ms with TensorFlow itself"
# worse    = { environment = "tf1.14", api = "keras" }
# better   = { environment = "tf1.14", api = "tensorflow" }
# when     = { optimizer = "sgd" }
# ratio    = [90, 145]
# hardware = "not reported"
# version  = "Keras 1 and TensorFlow 0.11"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "keras vs tf.keras"
# along   = "api"
# plus    = "keras"
# against = "tf.keras"
# [[tool.harness.compare]]
# name    = "Adam vs SGD"
# along   = "optimizer"
# plus    = "adam"
# against = "sgd"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""A training step of an embedding of 200,000 words with 64 numbers each: 128 rows of 20 words, mean squared error.

api  tf.keras: the Keras in TensorFlow; keras: the separate package; tensorflow: a session of TensorFlow 1, without
     Keras

The issue K#4365 has 793,471 words with 512 numbers each. So if gradients are dense, its update is 32 times as large.
"""

from kit import fixed_batch, main

WORDS, NUMBERS, ROWS, LENGTH = 200000, 64, 128, 20
RATE = 0.01


def scenario(bench, *, api="tf.keras", optimizer="adam"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = None
        if api == "keras":
            import keras
        elif api == "tf.keras":
            keras = tf.keras
            keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    x = np.random.RandomState(7).randint(0, WORDS, (ROWS, LENGTH)).astype("int32")
    y = fixed_batch((ROWS, LENGTH, NUMBERS), "float32")
    with bench.phase("build"):
        train = keras_step(keras, optimizer, x, y) if keras else session_step(tf, optimizer, x, y)
    with bench.phase("first call"):
        first = bench.fetch(train())
    bench.measure(train)
    bench.fingerprint(first_loss=float("{:.3g}".format(np.ravel(first)[0])))


def keras_step(keras, optimizer, x, y):
    """Return a function that trains with Keras and returns the loss."""
    words = keras.layers.Input((LENGTH,), dtype="int32")
    rows = keras.layers.Embedding(WORDS, NUMBERS, embeddings_initializer="zeros")(words)
    model = keras.models.Model(words, rows)
    # Keras 2.2 and Keras 3 have different names for the rate, so it is passed by position
    rule = {"adam": keras.optimizers.Adam, "sgd": keras.optimizers.SGD}[optimizer]
    model.compile(rule(RATE), "mse")
    return lambda: model.train_on_batch(x, y)


def session_step(tf, optimizer, x, y):
    """Return a function that trains in a session of TensorFlow 1 and returns the loss."""
    v1 = tf.compat.v1
    words = v1.placeholder(tf.int32, x.shape)
    targets = v1.placeholder(tf.float32, y.shape)
    table = v1.get_variable("table", (WORDS, NUMBERS), initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, words) - targets))
    rule = {"adam": v1.train.AdamOptimizer, "sgd": v1.train.GradientDescentOptimizer}[optimizer]
    train = rule(RATE).minimize(loss)
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return lambda: session.run([loss, train], {words: x, targets: y})[0]


if __name__ == "__main__":
    main(scenario)

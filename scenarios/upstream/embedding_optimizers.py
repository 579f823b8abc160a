# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "A training step of a large embedding, by optimizer"
# source = "https://github.com/keras-team/keras/issues/18279"
# tags   = ["upstream", "optimizers"]
#
# [tool.harness.axes]
# optimizer = ["sgd", "momentum", "adagrad", "adam"]
# kind      = ["new", "legacy", "session"]
#
# [[tool.harness.needs]]
# when     = { kind = "new" }
# requires = ["tensorflow>=2.11"]
# reason   = "The optimizers of Keras are new in 2.11."
# [[tool.harness.needs]]
# when     = { kind = "legacy" }
# requires = ["tensorflow>=2.11,<2.16"]
# reason   = "Keras has legacy optimizers in 2.11 to 2.15."
# advice   = "Use kind=new."
# [[tool.harness.needs]]
# when     = { kind = "session" }
# requires = ["tensorflow<2.0"]
# reason   = "This step uses a session, which only TensorFlow 1 supports."
# advice   = "Use kind=new."
#
# [[tool.harness.compare]]
# name    = "new vs legacy"
# along   = "kind"
# plus    = "new"
# against = "legacy"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "K#18279"
# reported = "for large embeddings, the new SGD is several times slower than the legacy one"
# worse    = { environment = "tf2.12", kind = "new" }
# better   = { environment = "tf2.12", kind = "legacy" }
# when     = { optimizer = "sgd" }
# ratio    = [1.5, 50]              # the numbers are in a notebook
# hardware = "Tesla T4"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "TK#45"
# reported = "for large embeddings, the new Adagrad is several times slower than the legacy one"
# worse    = { environment = "tf2.12", kind = "new" }
# better   = { environment = "tf2.12", kind = "legacy" }
# when     = { optimizer = "adagrad" }
# ratio    = [1.5, 50]
# hardware = "Tesla T4"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "TK#45"
# reported = "for embeddings, the new Adam is faster than the legacy one"
# worse    = { environment = "tf2.12", kind = "legacy" }
# better   = { environment = "tf2.12", kind = "new" }
# when     = { optimizer = "adam" }
# ratio    = [1.1, 10]
# hardware = "Tesla T4"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "https://github.com/NVIDIA-Merlin/models/issues/1098"
# reported = "training is 2 times slower with Adagrad than with the legacy Adagrad"
# worse    = { environment = "tf2.11", kind = "new" }
# better   = { environment = "tf2.11", kind = "legacy" }
# when     = { optimizer = "adagrad" }
# ratio    = [1.6, 2.5]
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#14075"
# reported = "with an embedding of 500,000 x 256, momentum runs 5 batches per second, and Adam 11.6"
# worse    = { environment = "tf1.14", optimizer = "momentum" }
# better   = { environment = "tf1.14", optimizer = "adam" }
# when     = { kind = "session" }
# ratio    = [1.8, 2.9]
# hardware = "K40"
# version  = "1.3.1"
# program  = "guessed"
# ///
"""One training step of an embedding of 200,000 words with 64 numbers each: 128 rows of 20 words, mean squared error.

kind  new, legacy: `train_on_batch` with the optimizer of tf.keras.optimizers, or of tf.keras.optimizers.legacy;
      session: the optimizer of tf.train, in a session of TensorFlow 1
"""

from kit import fixed_batch, main

WORDS, NUMBERS, ROWS, LENGTH = 200000, 64, 128, 20
RATE = 0.01


def scenario(bench, *, optimizer="sgd", kind="new"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        tf.keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    x = np.random.RandomState(7).randint(0, WORDS, (ROWS, LENGTH)).astype("int32")
    y = fixed_batch((ROWS, LENGTH, NUMBERS), "float32")
    with bench.phase("build"):
        make = session_step if kind == "session" else keras_step
        train = make(tf, optimizer, kind, x, y)
    with bench.phase("first call"):
        first = bench.fetch(train())
    bench.measure(train)
    bench.fingerprint(first_loss=float("{:.3g}".format(np.ravel(first)[0])))


def keras_step(tf, optimizer, kind, x, y):
    """Return a function that trains with Keras and returns the loss."""
    keras = tf.keras
    rules = keras.optimizers.legacy if kind == "legacy" else keras.optimizers
    words = keras.layers.Input((LENGTH,), dtype="int32")
    rows = keras.layers.Embedding(WORDS, NUMBERS, embeddings_initializer="zeros")(words)
    model = keras.models.Model(words, rows)
    if optimizer == "momentum":
        rule = rules.SGD(RATE, momentum=0.9)
    else:
        rule = {"sgd": rules.SGD, "adagrad": rules.Adagrad, "adam": rules.Adam}[optimizer](RATE)
    model.compile(rule, "mse")
    return lambda: model.train_on_batch(x, y)


def session_step(tf, optimizer, kind, x, y):
    """Return a function that trains in a session of TensorFlow 1 and returns the loss."""
    v1 = tf.compat.v1
    words = v1.placeholder(tf.int32, x.shape)
    targets = v1.placeholder(tf.float32, y.shape)
    table = v1.get_variable("table", (WORDS, NUMBERS), initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, words) - targets))
    if optimizer == "momentum":
        rule = v1.train.MomentumOptimizer(RATE, 0.9)
    else:
        rules = v1.train
        rule = {"sgd": rules.GradientDescentOptimizer, "adagrad": rules.AdagradOptimizer, "adam": rules.AdamOptimizer}[
            optimizer
        ](RATE)
    train = rule.minimize(loss)
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return lambda: session.run([loss, train], {words: x, targets: y})[0]


if __name__ == "__main__":
    main(scenario)

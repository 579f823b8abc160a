# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A step of fit, with and without run_eagerly"
# source = "https://github.com/tensorflow/tensorflow/issues/35052"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# run_eagerly = ["no", "yes"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.0"]
# reason   = "fit on a dataset needs eager mode here."
#
# [[tool.harness.claim]]
# issue    = "T#35052"
# reported = "in 2.0, fit is much slower by default than with run_eagerly=True (no number reported)"
# worse    = { environment = "tf2.0", run_eagerly = "no" }
# better   = { environment = "tf2.0", run_eagerly = "yes" }
# ratio    = [1.5, 10]
# fixed    = "2.1"
# hardware = "CentOS 7, CPU"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#35052"
# reported = "in the nightly wheel before 2.1, a step takes 1 ms by default, and 11 ms with run_eagerly=True"
# worse    = { environment = "tf2.1", run_eagerly = "yes" }
# better   = { environment = "tf2.1", run_eagerly = "no" }
# ratio    = [8, 14]
# hardware = "Colab"
# version  = "a nightly wheel before 2.1"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "run_eagerly vs the default"
# along   = "run_eagerly"
# plus    = "yes"
# against = "no"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""A training step of a factorization machine, which looks up the 20 features of each row in a large embedding.

As in the issue, it is fitted on a dataset with an AUC as metric, and a step has one batch. An epoch has 30 steps.
"""

from kit import fixed_weights, main

BATCHES, BATCH, FEATURES, VOCABULARY, FACTORS = 30, 32, 20, 10000, 8


def scenario(bench, *, run_eagerly="no"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        model = make_model(tf, keras)
        model.compile("adam", "binary_crossentropy", metrics=[keras.metrics.AUC()], run_eagerly=run_eagerly == "yes")
        noise = np.random.RandomState(7)
        x = noise.randint(0, VOCABULARY, (BATCH, FEATURES))
        y = noise.randint(0, 2, (BATCH, 1)).astype("float32")
        dataset = tf.data.Dataset.from_tensors((x, y)).repeat(BATCHES)
        model(x)
        model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
        outputs = np.ravel(model(x))

    def epoch():
        model.fit(dataset, epochs=1, verbose=0)

    with bench.phase("first call"):
        bench.fetch(epoch())
    bench.measure(epoch, steps=BATCHES)
    bench.placed(model.weights)
    bench.fingerprint(parameters=int(model.count_params()), outputs=[float("{:.4g}".format(out)) for out in outputs])


def make_model(tf, keras):
    """Return the factorization machine.

    Each feature has a weight and a few factors. The output is the sum of the weights and of the products of all pairs
    of factors.
    """

    class Machine(keras.Model):
        def __init__(self):
            super(Machine, self).__init__()
            self.weights_of = keras.layers.Embedding(VOCABULARY, 1)
            self.factors_of = keras.layers.Embedding(VOCABULARY, FACTORS)

        def call(self, features):
            linear = tf.reduce_sum(self.weights_of(features), axis=1)
            factors = self.factors_of(features)
            squared = tf.square(tf.reduce_sum(factors, axis=1)) - tf.reduce_sum(tf.square(factors), axis=1)
            return tf.sigmoid(linear + 0.5 * tf.reduce_sum(squared, axis=1, keepdims=True))

    return Machine()


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.3"]
#
# [tool.harness]
# title  = "Loading a model with a ragged input"
# source = "https://github.com/tensorflow/tensorflow/issues/43263"
# tags   = ["upstream", "load"]
#
# [tool.harness.axes]
# ragged = ["yes", "no"]
#
# [[tool.harness.needs]]
# when     = { ragged = "yes" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) has no ragged inputs."
#
# [[tool.harness.compare]]
# name    = "ragged vs dense"
# along   = "ragged"
# plus    = "yes"
# against = "no"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#43263"
# reported = "a model of custom layers takes 5 to 10 times as long to load if its input is ragged"
# worse    = { environment = "tf2.3", ragged = "yes" }
# better   = { environment = "tf2.3", ragged = "no" }
# ratio    = [5, 10]
# hardware = "Colab"
# program  = "guessed"
# ///
"""One `load_model` of a SavedModel, or of a file in the format of Keras 3.

The model has an embedding and 8 custom layers, each with a mean and a dense layer. The model of the issue isn't
available, so this model follows its description.

ragged  yes: the input is ragged; no: it isn't
"""

import os
import tempfile

from kit import main, version

LAYERS, UNITS = 8, 16


def scenario(bench, *, ragged="yes"):
    """Save the model, and load it once."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    path = os.path.join(tempfile.mkdtemp(), "model" if version(tf.__version__) < (2, 16) else "model.keras")
    options = {"ragged": True} if ragged == "yes" else {}
    with bench.phase("build"):
        block = make_block(tf, keras)
        inputs = keras.layers.Input((None,), dtype="int64", **options)
        embedded = keras.layers.Embedding(100, UNITS)(inputs)
        means = [block()(embedded) for _ in range(LAYERS)]
        model = keras.models.Model(inputs, keras.layers.Dense(1)(keras.layers.Concatenate()(means)))
    with bench.phase("save"):
        model.save(path)
    loaded = bench.once(lambda: keras.models.load_model(path, custom_objects={"Block": block}, compile=False))
    bench.fingerprint(parameters=int(loaded.count_params()))


def make_block(tf, keras):
    """Return a class of layers that accept ragged and dense inputs."""

    class Block(keras.layers.Layer):
        def __init__(self, **options):
            super(Block, self).__init__(**options)
            self._supports_ragged_inputs = True
            self.dense = keras.layers.Dense(UNITS, activation="relu")

        def call(self, x):
            return self.dense(tf.ensure_shape(tf.reduce_mean(x, axis=1), (None, UNITS)))

    return Block


if __name__ == "__main__":
    main(scenario)

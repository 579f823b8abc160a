# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Loading a Keras model, by file format"
# source = "https://github.com/tensorflow/tensorflow/issues/54477"
# tags   = ["upstream", "load"]
#
# [tool.harness.axes]
# format = ["saved_model", "h5", "keras", "weights", "plain"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.2"]
# reason   = "Custom layers can be loaded from all formats only in 2.2 and later."
# [[tool.harness.needs]]
# when     = { format = "saved_model" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't load a SavedModel."
# advice   = "Use format=keras."
# [[tool.harness.needs]]
# when     = { format = "plain" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't save a SavedModel in this way."
# advice   = "Use format=keras."
# [[tool.harness.needs]]
# when     = { format = "keras" }
# requires = ["tensorflow>=2.13"]
# reason   = "The format .keras is the default only in 2.13 and later."
#
# [[tool.harness.claim]]
# issue    = "T#54477"
# reported = "a SavedModel takes 4 to 5 times as long to load as an h5 file"
# worse    = { environment = "tf2.8", format = "saved_model" }
# better   = { environment = "tf2.8", format = "h5" }
# ratio    = [4, 5]
# hardware = "Tesla T4"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#43496"
# reported = "a model with custom layers loads in up to 15 s from a SavedModel and in 3 s from h5"
# worse    = { environment = "tf2.3", format = "saved_model" }
# better   = { environment = "tf2.3", format = "h5" }
# ratio    = [4, 6.2]
# hardware = "not reported; Linux"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#43496"
# reported = "load_model takes 15 s, and tf.saved_model.load takes 6 s"
# worse    = { environment = "tf2.3", format = "saved_model" }
# better   = { environment = "tf2.3", format = "plain" }
# ratio    = [2, 3.1]
# hardware = "not reported; Linux"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "TK#241"
# reported = "load_model takes 47 s, and creating the model with load_weights takes 9 s"
# worse    = { environment = "tf2.11", format = "saved_model" }
# better   = { environment = "tf2.11", format = "weights" }
# ratio    = [4.2, 6.5]
# hardware = "Apple M1 Pro"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "K#17652"
# reported = "loading a model takes 26 s from a SavedModel, and 5.5 s from the new format"
# worse    = { environment = "tf2.13", format = "saved_model" }
# better   = { environment = "tf2.13", format = "keras" }
# ratio    = [3.8, 5.9]
# hardware = "a maintainer's machine"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "K#19793"
# reported = "15 models load in 12 minutes from .keras files, and in 2 if they are made again and load their weights"
# worse    = { environment = "tf2.16", format = "keras" }
# better   = { environment = "tf2.16", format = "weights" }
# ratio    = [4.8, 7.5]
# hardware = "not reported; 15 processes at once"
# program  = "similar"
#
# [[tool.harness.compare]]
# name  = "a SavedModel vs other formats"
# along = "format"
# plus  = "saved_model"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""Loading a model of 12 custom layers, once. Each layer is a dense layer and a normalization.

format  saved_model, h5, keras: `load_model` from a file of that format; weights: a new model is made, and its weights
        are loaded from h5; plain: `tf.saved_model.load`, which doesn't make a Keras model
"""

import os
import tempfile

from kit import digits, fixed_batch, fixed_weights, main

LAYERS, UNITS = 12, 32


def scenario(bench, *, format="saved_model"):
    """Save the model, load it once, and prove that it is the same."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "model" + {"h5": ".h5", "weights": ".weights.h5", "keras": ".keras"}.get(format, ""))
    with bench.phase("build"):
        block = make_block(tf, keras)
        model = make_model(keras, block)
        model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
    with bench.phase("save"):
        if format == "weights":
            model.save_weights(path)
        else:
            model.save(path)
    batch = tf.constant(fixed_batch((4, UNITS), "float32"))
    outputs = digits(model(batch))
    load = {
        "plain": lambda: tf.saved_model.load(path),
        "weights": lambda: load_weights(make_model(keras, block), path),
    }.get(format, lambda: keras.models.load_model(path, custom_objects={"Block": block}, compile=False))
    loaded = bench.once(load)
    bench.fingerprint(saved=round_all(outputs), loaded=round_all(digits(loaded(batch))))


def round_all(values):
    """Return the numbers as a list, rounded to four digits."""
    return [float("{:.4g}".format(value)) for value in values]


def load_weights(model, path):
    """Load the weights of the file into the model, and return the model."""
    model.load_weights(path)
    return model


def make_block(tf, keras):
    """Return the class of the custom layer."""

    class Block(keras.layers.Layer):
        def __init__(self, **options):
            super(Block, self).__init__(**options)
            self.dense = keras.layers.Dense(UNITS, activation="relu")

        def build(self, shape):
            self.dense.build(shape)
            self.built = True

        def call(self, x):
            return x + self.dense(x)

    return Block


def make_model(keras, block):
    """Return a model of blocks, one after the other."""
    inputs = x = keras.layers.Input((UNITS,))
    for _ in range(LAYERS):
        x = block()(x)
    return keras.models.Model(inputs, x)


if __name__ == "__main__":
    main(scenario)

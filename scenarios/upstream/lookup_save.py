# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.6"]
#
# [tool.harness]
# title  = "Saving a model with a large vocabulary"
# source = "https://github.com/tensorflow/tensorflow/issues/57741"
# tags   = ["upstream", "text"]
#
# [tool.harness.axes]
# words = ["1000", "50000"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#57741"
# reported = "saving takes time for each word of a vocabulary: 3,323 s for 25 million words"
# worse    = { environment = "tf2.10", words = "50000" }
# better   = { environment = "tf2.10", words = "1000" }
# ratio    = [5, 55]               # 50 if the time is in proportion to the words
# hardware = "not reported"
# program  = "similar"
# ///
"""Saving a custom model with a StringLookup once: as a SavedModel or, with Keras 3, in the format of Keras."""

import os
import tempfile

from kit import digits, main, version


def scenario(bench, *, words="50000"):
    """Time one save."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    path = os.path.join(tempfile.mkdtemp(), "model" if version(tf.__version__) < (2, 16) else "model.keras")
    with bench.phase("build"):
        model = make_model(keras, int(words))
        numbers = model(tf.constant([["3"], ["4"]]))
    bench.once(lambda: model.save(path))
    bench.fingerprint(numbers=digits(numbers))


def make_model(keras, words):
    """Return a model that turns words into numbers."""

    class Preprocessor(keras.Model):
        def __init__(self):
            super(Preprocessor, self).__init__(trainable=False)
            self.lookup = keras.layers.StringLookup(vocabulary=[str(number) for number in range(words)])

        def call(self, inputs):
            return self.lookup(inputs)

    return Preprocessor()


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.6"]
#
# [tool.harness]
# title  = "A call of StringLookup, by the size of its vocabulary"
# source = "https://github.com/tensorflow/tensorflow/issues/60339"
# tags   = ["upstream", "text"]
#
# [tool.harness.axes]
# vocabulary = ["large", "small"]
# call       = ["layer", "model", "predict_on_batch"]
#
# [[tool.harness.compare]]
# name    = "large vs small"
# along   = "vocabulary"
# plus    = "large"
# against = "small"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#60339"
# reported = "a call of the layer takes 75.3 ms with 100,000 words, and 0.61 ms with 100"
# worse    = { environment = "tf2.11", vocabulary = "large" }
# better   = { environment = "tf2.11", vocabulary = "small" }
# when     = { call = "layer" }
# ratio    = [99, 154]
# hardware = "a virtual machine, Debian 10"
# program  = "same"
#
# [[tool.harness.claim]]
# issue    = "T#57076"
# reported = "a call of a model that has a StringLookup with a large vocabulary is extremely slow"
# worse    = { environment = "tf2.9", vocabulary = "large" }
# better   = { environment = "tf2.9", vocabulary = "small" }
# when     = { call = "model" }
# ratio    = [10, 1000]             # no number that could be read
# hardware = "Debian"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#57076"
# reported = "the time is that of eager calls, which look through all attributes of the model for losses"
# worse    = { environment = "tf2.9", call = "model" }
# better   = { environment = "tf2.9", call = "predict_on_batch" }
# when     = { vocabulary = "large" }
# ratio    = [5, 1000]              # no number that could be read
# hardware = "Debian"
# program  = "similar"
# ///
"""One call of a StringLookup with one word.

vocabulary  large: 100,000 words; small: 100 words
call        layer: a call of the layer; model: a call of a custom model that contains the layer and returns its input;
            predict_on_batch: the same model in a traced function
"""

from kit import main

WORDS = {"large": 100000, "small": 100}


def scenario(bench, *, vocabulary="large", call="layer"):
    """Measure one call."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        layer = keras.layers.StringLookup(vocabulary=[str(number) for number in range(WORDS[vocabulary])])
        model = make_model(keras, layer)
        words, numbers = tf.constant(["23"]), tf.ones((1, 1))
    steps = {
        "layer": lambda: layer(words),
        "model": lambda: model(numbers),
        "predict_on_batch": lambda: model.predict_on_batch(numbers),
    }
    with bench.phase("first call"):
        result = steps[call]()
    bench.measure(steps[call])
    bench.fingerprint(shape=[int(size) for size in result.shape], total=float(tf.reduce_sum(result)))


def make_model(keras, layer):
    """Return a model that contains a layer and doesn't use it."""

    class LookupModel(keras.Model):
        def __init__(self):
            super(LookupModel, self).__init__()
            self.lookup = layer

        def call(self, inputs):
            return inputs

    return LookupModel()


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.4"]
#
# [tool.harness]
# title  = "TextVectorization of many strings, in one or two calls of predict"
# source = "https://github.com/keras-team/keras/issues/14915"
# tags   = ["upstream", "text"]
#
# [tool.harness.axes]
# calls = ["one", "two"]
#
# [[tool.harness.compare]]
# name    = "one vs two"
# along   = "calls"
# plus    = "one"
# against = "two"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "K#14915"
# reported = "predict takes quadratic time: two calls with half of the strings each take half as long as one call"
# worse    = { environment = "tf2.5", calls = "one" }
# better   = { environment = "tf2.5", calls = "two" }
# ratio    = [1.6, 2.4]             # a million strings, and here 150,000
# hardware = "Windows 10"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#50666"
# reported = "the same issue in the TensorFlow repository"
# worse    = { environment = "tf2.5", calls = "one" }
# better   = { environment = "tf2.5", calls = "two" }
# ratio    = [1.6, 2.4]
# hardware = "Windows 10"
# program  = "similar"
# ///
"""A model turns 150,000 strings, which contain one number each, into integers, in batches of 32.

The strings are in a NumPy array. For Keras 3 (TensorFlow 2.16 and later), they are in a tensor, because Keras 3 doesn't
accept arrays of strings.

calls  one: one call of `predict` with all strings; two: two calls with half of the strings each
"""

from kit import main, version

STRINGS = 150000


def scenario(bench, *, calls="one"):
    """Time the calls once."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        if hasattr(keras.layers, "TextVectorization"):
            make = keras.layers.TextVectorization
        else:
            make = keras.layers.experimental.preprocessing.TextVectorization
        layer = make(max_tokens=200, output_mode="int", output_sequence_length=1)
        strings = (np.arange(STRINGS) % 99 + 1).astype(str)[:, None]
        layer.adapt(strings[:1000])
        inputs = keras.layers.Input((1,), dtype="string")
        model = keras.models.Model(inputs, layer(inputs))
        if version(tf.__version__) >= (2, 16):
            strings = tf.constant(strings)
        half = STRINGS // 2
        parts = [strings] if calls == "one" else [strings[:half], strings[half:]]
    with bench.phase("first call"):
        model.predict(strings[:64])
    numbers = bench.once(lambda: [model.predict(part) for part in parts])
    bench.fingerprint(total=int(sum(part.sum() for part in numbers)))


if __name__ == "__main__":
    main(scenario)

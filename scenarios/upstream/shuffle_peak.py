# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Peak memory of shuffled datasets"
# source = "https://github.com/tensorflow/tensorflow/issues/60599"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# work   = ["numbers", "fit"]
# buffer = ["all", "half", "cached", "none"]
#
# [[tool.harness.exclude]]
# work   = "numbers"
# buffer = "cached"
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "peak memory"
#
# [[tool.harness.claim]]
# issue    = "T#60599"
# reported = "shuffling all of 50 million numbers takes 10 GB, and not the expected 1 GB: 200 bytes for each number"
# worse    = { environment = "tf2.12", buffer = "all" }
# better   = { environment = "tf2.12", buffer = "none" }
# when     = { work = "numbers" }
# of       = "peak memory"
# ratio    = [1.8, 4]               # 0.8 GB for 4 million, and the program takes 0.3 to 0.5 GB
# hardware = "Ubuntu 22.04"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#54299"
# reported = "fit takes 160 GB if half of a dataset is shuffled, and 145 GB if all of it is cached and shuffled"
# worse    = { environment = "tf2.8", buffer = "half" }
# better   = { environment = "tf2.8", buffer = "cached" }
# when     = { work = "fit" }
# of       = "peak memory"
# ratio    = [1.03, 1.25]
# hardware = "Ubuntu 20.04, a virtual machine"
# program  = "similar"
# ///
"""The first of 4 million shuffled numbers, or three epochs of `fit` on 800 shuffled elements of 1 MB.

work    numbers: take the first element of a dataset of integers; fit: train on elements that a function makes
buffer  all: all elements fit into the buffer; half: half of them do; cached: all of them do, and the dataset is cached
        in memory; none: nothing is shuffled
"""

from kit import main

NUMBERS, ELEMENTS, FLOATS, BATCH, EPOCHS = 4000000, 800, 262144, 8, 3


def scenario(bench, *, work="numbers", buffer="all"):
    """Time the work once. The peak memory of the process is the result."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()

    def shuffled(dataset, elements):
        if buffer == "none":
            return dataset
        if buffer == "cached":
            dataset = dataset.cache()
        return dataset.shuffle(elements // 2 if buffer == "half" else elements)

    def number():
        return next(iter(shuffled(tf.data.Dataset.from_tensor_slices(np.arange(NUMBERS)), NUMBERS)))

    def make_element(seed):
        return tf.fill((FLOATS,), tf.cast(seed, tf.float32)), tf.ones((1,))

    def fit():
        model = keras.models.Sequential([keras.layers.Dense(1, input_shape=(FLOATS,))])
        model.compile(optimizer="sgd", loss="mse")
        dataset = shuffled(tf.data.Dataset.range(ELEMENTS).map(make_element), ELEMENTS)
        model.fit(dataset.batch(BATCH), epochs=EPOCHS, verbose=0)
        return tf.constant(EPOCHS)

    result = bench.once(number if work == "numbers" else fit)
    bench.fingerprint(shape=[int(size) for size in result.shape])


if __name__ == "__main__":
    main(scenario)

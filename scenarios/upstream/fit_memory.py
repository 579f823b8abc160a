# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Peak memory of fit on large NumPy arrays"
# source = "https://github.com/tensorflow/tensorflow/issues/35030"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# data = ["arrays", "dataset", "sequence"]
#
# [[tool.harness.needs]]
# when     = { data = "dataset" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, fit needs to know the number of steps of a dataset."
# advice   = "Use data=arrays."
# [[tool.harness.needs]]
# when     = { data = "sequence" }
# requires = ["tensorflow>=2.1"]
# reason   = "Before 2.1, a Sequence is read by fit_generator."
# advice   = "Use data=arrays."
#
# [[tool.harness.compare]]
# name    = "arrays vs others"
# along   = "data"
# plus    = "arrays"
# of      = "peak memory"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "peak memory"
#
# [[tool.harness.claim]]
# issue    = "T#35030"
# reported = "in 2.0 fit adds 5.4 GB to 2.6 GB of data, and in 1.14 what it adds does not depend on the data"
# worse    = { environment = "tf2.0", data = "arrays" }
# better   = { environment = "tf1.14", data = "arrays" }
# of       = "peak memory"
# ratio    = [1.5, 3.5]             # 2.6 to 8 GB; the program itself weighs more here
# hardware = "AMD Ryzen 7 1700, GTX 1050 Ti"
# program  = "similar"
# fixed    = "2.2"
#
# [[tool.harness.claim]]
# issue    = "T#40942"
# reported = "fit on arrays takes as much memory again as the arrays, so that a Sequence needs half of the memory"
# worse    = { environment = "tf2.3", data = "arrays" }
# better   = { environment = "tf2.3", data = "sequence" }
# of       = "peak memory"
# ratio    = [1.25, 2]              # "the proportionality constant being approximately 1"
# hardware = "Tesla V100"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#40942"
# reported = "the arrays are also copied if a dataset is made of them"
# worse    = { environment = "tf2.3", data = "dataset" }
# better   = { environment = "tf2.3", data = "sequence" }
# of       = "peak memory"
# ratio    = [1.25, 2]
# hardware = "Tesla V100"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "K#15887"
# reported = "the same issue in the Keras repository"
# worse    = { environment = "tf2.3", data = "arrays" }
# better   = { environment = "tf2.3", data = "sequence" }
# of       = "peak memory"
# ratio    = [1.25, 2]
# hardware = "Tesla V100"
# program  = "similar"
# ///
"""One epoch of a convolution with one filter on 600 images of 512 × 512 numbers of 16 bits: 315 MB.

The filter in the issue has no stride. Here, it has a stride of 8, so that an epoch takes only seconds.

data  arrays: fit is given the NumPy arrays; dataset: Dataset.from_tensor_slices of the arrays, in batches; sequence: a
      keras.utils.Sequence that takes slices of the arrays
"""

from kit import main

IMAGES, SIZE, STRIDE, BATCH, LARGEST = 600, 512, 8, 8, 5000


def scenario(bench, *, data="arrays"):
    """Time one epoch. The peak memory of the process is the result."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((SIZE, SIZE, 1))
        scaled = keras.layers.Lambda(lambda x: x / LARGEST)(inputs)
        outputs = keras.layers.Conv2D(1, 3, strides=STRIDE, activation="sigmoid", padding="same")(scaled)
        model = keras.models.Model(inputs, outputs)
        model.compile(optimizer="adam", loss="binary_crossentropy")
        x = np.ones((IMAGES, SIZE, SIZE, 1), "uint16")
        y = np.ones((IMAGES, SIZE // STRIDE, SIZE // STRIDE, 1), "bool")

    def epoch():
        if data == "sequence":
            model.fit(make_sequence(keras, x, y), epochs=1, verbose=0, shuffle=False)
        elif data == "dataset":
            model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH), epochs=1, verbose=0)
        else:
            model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0, shuffle=False)

    bench.once(epoch)
    bench.fingerprint(parameters=int(model.count_params()), images=len(x))


def make_sequence(keras, x, y):
    """Return a sequence of slices of the arrays."""

    class Slices(keras.utils.Sequence):
        def __len__(self):
            return IMAGES // BATCH

        def __getitem__(self, number):
            rows = slice(number * BATCH, (number + 1) * BATCH)
            return x[rows], y[rows]

    return Slices()


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Training on batches of a dataset, and on a tensor"
# source = "https://github.com/tensorflow/tensorflow/issues/38943"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# data = ["dataset", "tensor"]
#
# [[tool.harness.compare]]
# name    = "dataset vs tensor"
# along   = "data"
# plus    = "dataset"
# against = "tensor"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#38943"
# reported = "batches from a Dataset make train_on_batch of a ResNet50 about 7 % slower than one tensor"
# worse    = { environment = "tf2.1", data = "dataset" }
# better   = { environment = "tf2.1", data = "tensor" }
# ratio    = [1.03, 1.12]
# hardware = "GTX 1080"
# program  = "similar"
# ///
"""`train_on_batch` of four convolutions of 32 filters on 16 images of 112 x 112.

data  dataset: a dataset of this one batch, repeated forever; tensor: the batch itself
"""

from kit import main

IMAGES, SIZE, CLASSES = 16, 112, 1000


def scenario(bench, *, data="dataset"):
    """Measure one step."""
    with bench.phase("import"):
        import tensorflow as tf

        layers = tf.keras.layers
    bench.device()
    with bench.phase("build"):
        inputs = outputs = layers.Input((SIZE, SIZE, 3))
        for _ in range(4):
            outputs = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(outputs)
        outputs = layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(outputs))
        model = tf.keras.models.Model(inputs, outputs)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer="sgd", loss=loss, metrics=["accuracy"])
        x = tf.random.uniform([1, IMAGES, SIZE, SIZE, 3])
        y = tf.random.uniform([1, IMAGES, 1], minval=0, maxval=CLASSES - 1, dtype=tf.int64)
        batch = x[0], y[0]
        batches = iter(tf.data.Dataset.from_tensor_slices((x, y)).repeat())

    def step():
        return model.train_on_batch(*(next(batches) if data == "dataset" else batch))

    with bench.phase("first call"):
        bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(parameters=int(model.count_params()))


if __name__ == "__main__":
    main(scenario)

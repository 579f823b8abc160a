# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.6"]
#
# [tool.harness]
# title  = "Keras's augmentation layers on a batch of images"
# source = "https://github.com/tensorflow/tensorflow/issues/56242"
# tags   = ["upstream", "layers"]
#
# [tool.harness.axes]
# layers = ["translation", "rotation", "flip"]
# mode   = ["function", "eager"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#56242"
# reported = "augmentation layers are extremely slow after 2.9, and warn about a while_loop for RngReadAndSkip"
# worse    = { environment = "tf2.9" }
# better   = { environment = "tf2.8" }
# ratio    = [5, 1000]              # "extremely", and no number; keras-cv measured 15.6 s and 0.013 s for 1,000 images
# when     = { layers = "translation", mode = "function" }     # its warnings are of two draws and a shift
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#58108"
# reported = "random flips and translations are extremely slow in 2.9 and 2.10"
# worse    = { environment = "tf2.10" }
# better   = { environment = "tf2.8" }
# ratio    = [5, 1000]              # "extremely", and no number
# when     = { layers = "translation", mode = "eager" }        # how they were called is not told
# hardware = "not reported"
# program  = "similar"
# ///
"""A call of a layer on a batch of 64 images of 8 × 8 pixels. The images are so small that pixels take little time.

layers  translation: RandomTranslation; rotation: RandomRotation; flip: RandomFlip
mode    function: the layer is called in a tf.function, as in fit or Dataset.map; eager: without a tf.function
"""

from kit import main

SHAPE = (64, 8, 8, 3)


def scenario(bench, *, layers="translation", mode="function"):
    """Measure one batch."""
    with bench.phase("import"):
        import tensorflow as tf

        keras_layers = tf.keras.layers
    bench.device()
    with bench.phase("build"):
        layer = {
            "rotation": lambda: keras_layers.RandomRotation(0.1),
            "translation": lambda: keras_layers.RandomTranslation(0.2, 0.2),
            "flip": lambda: keras_layers.RandomFlip("horizontal"),
        }[layers]()
        images = tf.ones(SHAPE)

        def augment():
            return layer(images, training=True)

        call = tf.function(augment) if mode == "function" else augment
    with bench.phase("first call"):
        augmented = bench.fetch(call())
    bench.measure(call)
    bench.fingerprint(shape=[int(size) for size in augmented.shape])


if __name__ == "__main__":
    main(scenario)

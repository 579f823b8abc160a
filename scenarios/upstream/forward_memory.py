# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.2"]
#
# [tool.harness]
# title  = "Peak memory of a call of ResNet50V2"
# source = "https://github.com/tensorflow/tensorflow/issues/63701"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# call = ["model", "predict_on_batch"]
#
# [[tool.harness.compare]]
# name    = "a call vs predict_on_batch"
# along   = "call"
# plus    = "model"
# against = "predict_on_batch"
# of      = "peak memory"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "peak memory"
#
# [[tool.harness.claim]]
# issue    = "T#63701"
# reported = "the first call of a large model takes 0.79 to 6 GB in 2.16.1, and in 2.15.1 the memory does not explode"
# worse    = { environment = "tf2.16", call = "model" }
# better   = { environment = "tf2.15", call = "model" }
# of       = "peak memory"
# ratio    = [1.5, 10]              # their model has three times as many layers; the numbers of 2.15.1 are unknown
# hardware = "CPU, in Docker"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "K#19500"
# reported = "the same issue in the Keras repository"
# worse    = { environment = "tf2.16", call = "model" }
# better   = { environment = "tf2.15", call = "model" }
# of       = "peak memory"
# ratio    = [1.5, 10]
# hardware = "CPU, in Docker"
# program  = "similar"
# ///
"""One call of ResNet50V2 with random weights on 8 images. The issue calls ResNet152V2 on 20 images.

call  model: the model is called in eager mode; predict_on_batch: in a traced function
"""

from kit import main

IMAGES, SIZE = 8, 224


def scenario(bench, *, call="model"):
    """Time one call. The peak memory of the process is the result."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        model = keras.applications.ResNet50V2(weights=None)
        images = np.zeros((IMAGES, SIZE, SIZE, 3), "uint8")
    outputs = bench.once(lambda: model(images) if call == "model" else model.predict_on_batch(images))
    bench.fingerprint(shape=[int(size) for size in outputs.shape], parameters=int(model.count_params()))


if __name__ == "__main__":
    main(scenario)

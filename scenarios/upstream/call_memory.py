# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per call of a convolutional model"
# source = "https://github.com/tensorflow/tensorflow/issues/46661"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# model = ["convolutions", "resnet"]
# call  = ["eager", "function"]
#
# [[tool.harness.compare]]
# name    = "function vs eager"
# along   = "call"
# plus    = "function"
# against = "eager"
# of      = "memory growth"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#46661"
# reported = "two convolutions leak with each call if they are wrapped in a tf.function, and otherwise do not"
# worse    = { environment = "tf2.4", call = "function" }
# when     = { model = "convolutions" }
# bytes    = [200000, 20000000]     # the curve's numbers were not to be read; a layer's output has 1 MB
# of       = "memory growth"
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#60131"
# reported = "each call of ResNet50 leaks with Python 3.11, on a CPU"
# worse    = { environment = "tf2.13-py3.11", call = "eager" }
# when     = { model = "resnet" }
# bytes    = [100000, 5000000]      # 2.6 MB in the first three calls
# of       = "memory growth"
# hardware = "CPU, in Docker"
# version  = "2.12"
# program  = "similar"
# ///
"""400 or 120 calls with one image in a NumPy array. 40 earlier calls, which create reused buffers, don't count.

model  convolutions: two of 64 filters, 64 × 64 pixels; resnet: ResNet50 with random weights, 64 × 64 pixels
call   eager: the model is called; function: it is called in a tf.function
"""

from kit import main

SIZE, WARM, CALLS = 64, 40, {"convolutions": 400, "resnet": 120}


def scenario(bench, *, model="convolutions", call="eager"):
    """Record the memory of the process while the model is called."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        image = np.ones((1, SIZE, SIZE, 3), "float32")
        if model == "resnet":
            network = keras.applications.ResNet50(weights=None, input_shape=(SIZE, SIZE, 3))
        else:
            network = make_convolutions(keras)

        @tf.function
        def function(image):
            return network(image)

    step = (lambda: network(image)) if call == "eager" else (lambda: function(image))
    with bench.phase("first call"):
        outputs = step()
    with bench.phase("first calls"):
        for _ in range(WARM):
            step()
    bench.memory(step, CALLS[model])
    bench.fingerprint(shape=[int(size) for size in outputs.shape], parameters=int(network.count_params()))


def make_convolutions(keras):
    """Return a model of a custom class with two convolutions."""

    class Convolutions(keras.Model):
        def __init__(self):
            super(Convolutions, self).__init__()
            self.first = keras.layers.Conv2D(64, (3, 3), activation="relu", padding="same")
            self.second = keras.layers.Conv2D(64, (3, 3), activation="relu", padding="same")

        def call(self, inputs):
            return self.second(self.first(inputs))

    return Convolutions()


if __name__ == "__main__":
    main(scenario)

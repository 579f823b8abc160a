# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "Slow convolutions"
# source = "https://github.com/tensorflow/tensorflow/issues/19611"
# tags   = ["upstream", "kernels"]
#
# [tool.harness.axes]
# operation = [
#     "transposed_3d", "einsum", "conv", "depthwise", "conv_one", "depthwise_one", "conv_64", "grouped_64",
#     "dilated_layer", "dilated_nn", "train_conv", "train_separable",
# ]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#19611"
# reported = "on a CPU, conv3d_transpose takes about 100 times as long as the same product by einsum"
# worse    = { environment = "tf1.14", operation = "transposed_3d" }
# better   = { environment = "tf1.14", operation = "einsum" }
# ratio    = [50, 200]
# hardware = "CPU: Arch Linux, OS X and Windows 8"
# version  = "1.7"
# program  = "same"
#
# [[tool.harness.claim]]
# issue    = "T#42172"
# reported = "a DepthwiseConv2D takes 352 microseconds, and a Conv2D with 16 filters takes 225"
# worse    = { environment = "tf2.3", operation = "depthwise" }
# better   = { environment = "tf2.3", operation = "conv" }
# ratio    = [1.3, 1.9]
# hardware = "Colab; similar on the CPU of a laptop"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#46217"
# reported = "a DepthwiseConv2D is slower than a Conv2D if the batch has one image (no number reported)"
# worse    = { environment = "tf2.3", operation = "depthwise_one" }
# better   = { environment = "tf2.3", operation = "conv_one" }
# ratio    = [1.05, 3]
# hardware = "CPU, x86"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#19390"
# reported = "a grouped convolution by depthwise_conv2d_native takes 3 to 4 times as long as the dense one"
# worse    = { environment = "tf1.14", operation = "grouped_64" }
# better   = { environment = "tf1.14", operation = "conv_64" }
# ratio    = [3, 4.5]
# hardware = "a GPU"
# version  = "a build of May 2018"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#37883"
# reported = "a dilated convolution is slower as a layer of Keras than by tf.nn (no number could be read)"
# worse    = { environment = "tf2.1", operation = "dilated_layer" }
# better   = { environment = "tf2.1", operation = "dilated_nn" }
# ratio    = [1.2, 10]
# hardware = "a GPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#42664"
# reported = "training with SeparableConv2D is extremely slow; another user: more than 2 times slower than Conv2D"
# worse    = { environment = "tf2.3", operation = "train_separable" }
# better   = { environment = "tf2.3", operation = "train_conv" }
# ratio    = [2, 10]
# hardware = "Colab with a GPU"
# program  = "similar"
# ///
"""One convolution in eager mode, or one step of training.

operation  transposed_3d, einsum: 200 rows of 50 numbers become images of 28 x 28; conv, depthwise: layers on 2 images
           of 64 x 64 x 3; conv_one, depthwise_one: the same layers on one image; conv_64, grouped_64: a kernel of
           3 x 3 from 64 to 64 channels on 8 images of 32 x 32, dense or in 16 groups; dilated_layer, dilated_nn: with
           dilation 2, on 8 images of 64 x 64 x 16; train_conv, train_separable: `train_on_batch` of three layers of 32
           filters on 8 images of 32 x 32 x 3
"""

from kit import eager_tensorflow, fixed_batch, fixed_weights, main


def scenario(bench, *, operation="transposed_3d"):
    """Measure one convolution or step."""
    with bench.phase("import"):
        tf = eager_tensorflow()
        tf.keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        make = LAYERS.get(operation) or OPERATIONS[operation]
        step = make(tf)
    with bench.phase("first call"):
        result = bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(images=len(result) if getattr(result, "shape", ()) else 0)


def batch(tf, *shape):
    """Return a tensor of normal noise."""
    return tf.constant(fixed_batch(shape, "float32"))


def kernel(tf, *shape):
    """Return a constant kernel."""
    return tf.constant(fixed_weights([shape])[0].astype("float32"))


def transposed_3d(tf):
    """Return the step of a transposed convolution whose kernel is the whole image, as in the issue."""
    rows, filters = batch(tf, 200, 1, 1, 1, 50), kernel(tf, 28, 28, 1, 1, 50)
    return lambda: tf.nn.conv3d_transpose(rows, filters, (200, 28, 28, 1, 1), [1, 1, 1, 1, 1], "VALID")


def einsum(tf):
    """Return the step that computes the same images with a product."""
    rows, filters = batch(tf, 200, 50), kernel(tf, 28, 28, 1, 50)
    return lambda: tf.einsum("bk,hwck->bhwc", rows, filters)


def conv_64(tf):
    """Return the step of a dense convolution."""
    x, filters = batch(tf, 8, 32, 32, 64), kernel(tf, 3, 3, 64, 64)
    return lambda: tf.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME")


def grouped_64(tf):
    """Return the step of a convolution in 16 groups: four products per channel, summed over each group's channels."""
    x, filters = batch(tf, 8, 32, 32, 64), kernel(tf, 3, 3, 64, 4)

    def step():
        products = tf.nn.depthwise_conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME")
        return tf.reduce_sum(tf.reshape(products, (8, 32, 32, 16, 4, 4)), axis=4)

    return step


def dilated_nn(tf):
    """Return the step of a dilated convolution without Keras."""
    x, filters = batch(tf, 8, 64, 64, 16), kernel(tf, 3, 3, 16, 16)
    return lambda: tf.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1])


OPERATIONS = {
    "transposed_3d": transposed_3d,
    "einsum": einsum,
    "conv_64": conv_64,
    "grouped_64": grouped_64,
    "dilated_nn": dilated_nn,
}


def make_call(make, *shape):
    """Return a function that makes a step: one call of a layer."""

    def make_step(tf):
        layer, x = make(tf.keras.layers), batch(tf, *shape)
        return lambda: layer(x)

    return make_step


def make_training(name):
    """Return a function that makes a step: training a model with three layers of that name."""

    def make_step(tf):
        layers = tf.keras.layers
        inputs = outputs = layers.Input((32, 32, 3))
        for _ in range(3):
            outputs = getattr(layers, name)(32, 3, padding="same", activation="relu")(outputs)
        model = tf.keras.models.Model(inputs, layers.Conv2D(1, 1)(outputs))
        model.compile("sgd", "mse")
        x, y = fixed_batch((8, 32, 32, 3), "float32"), fixed_batch((8, 32, 32, 1), "float32")
        return lambda: model.train_on_batch(x, y)

    return make_step


LAYERS = {
    "conv": make_call(lambda layers: layers.Conv2D(16, 3, padding="same"), 2, 64, 64, 3),
    "depthwise": make_call(lambda layers: layers.DepthwiseConv2D(3, padding="same"), 2, 64, 64, 3),
    "conv_one": make_call(lambda layers: layers.Conv2D(16, 3, padding="same"), 1, 64, 64, 3),
    "depthwise_one": make_call(lambda layers: layers.DepthwiseConv2D(3, padding="same"), 1, 64, 64, 3),
    "dilated_layer": make_call(lambda layers: layers.Conv2D(16, 3, padding="same", dilation_rate=2), 8, 64, 64, 16),
    "train_conv": make_training("Conv2D"),
    "train_separable": make_training("SeparableConv2D"),
}


if __name__ == "__main__":
    main(scenario)

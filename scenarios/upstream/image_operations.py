# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "Operations on images"
# source = "https://github.com/tensorflow/tensorflow/issues/49205"
# tags   = ["upstream", "kernels"]
#
# [tool.harness.axes]
# operation = ["ssim", "patches_gradient", "conv_gradient", "patches_pooling", "pooling"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#49205"
# reported = "tf.image.ssim of 30 pairs of 500 x 500 takes 30 s in 2.5, and is not slow in 2.4 (no time could be read)"
# worse    = { environment = "tf2.5" }
# better   = { environment = "tf2.4" }
# when     = { operation = "ssim" }
# ratio    = [1.5, 100]
# hardware = "Colab with a K80"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#49206"
# reported = "the same issue, filed again as one of performance"
# worse    = { environment = "tf2.5" }
# better   = { environment = "tf2.4" }
# when     = { operation = "ssim" }
# ratio    = [1.5, 100]
# hardware = "Colab with a K80"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#59185"
# reported = "extract_patches and its gradient take 5.4 s in 2.11, and 3.1 s with the change that came after it"
# worse    = { environment = "tf2.11" }
# better   = { environment = "tf2.13" }
# when     = { operation = "patches_gradient" }
# ratio    = [1.3, 2.4]
# hardware = "Colab CPU"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#13017"
# reported = "the gradient of extract_image_patches is extremely slow, and that of a convolution is not"
# worse    = { environment = "tf1.14", operation = "patches_gradient" }
# better   = { environment = "tf1.14", operation = "conv_gradient" }
# ratio    = [2, 1000]              # no number could be read
# hardware = "CPU of a Mac"
# version  = "1.3"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#58086"
# reported = "a pooling layer made of extract_patches is extremely slow, compared with MaxPooling2D"
# worse    = { environment = "tf2.9", operation = "patches_pooling" }
# better   = { environment = "tf2.9", operation = "pooling" }
# ratio    = [2, 1000]              # no number reported
# hardware = "Colab"
# program  = "similar"
# ///
"""One call of a traced function on images.

operation  ssim: compares two images of 500 x 500; patches_gradient, conv_gradient: the gradient of the sum of squares
           of all patches of 5 x 5 from an image of 512 x 512, or of its convolution of 5 x 5 to 25 channels;
           patches_pooling, pooling: the maxima of 2 x 2 pixels in 8 images of 64 x 64 x 16, with patches or max_pool2d
"""

from kit import eager_tensorflow, fixed_batch, fixed_weights, main

SHAPES = {
    "ssim": (2, 500, 500, 1),
    "patches_gradient": (1, 512, 512, 1),
    "conv_gradient": (1, 512, 512, 1),
    "patches_pooling": (8, 64, 64, 16),
    "pooling": (8, 64, 64, 16),
}


def scenario(bench, *, operation="ssim"):
    """Measure one call, after the tracing."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        x = tf.constant(fixed_batch(SHAPES[operation], "float32"))
        function = tf.function(MAKERS[operation](tf))
    with bench.phase("first call"):
        result = bench.fetch(function(x))
    bench.measure(lambda: function(x))
    bench.fingerprint(shape=[int(size) for size in result.shape])


def ssim(tf):
    """Return a function that compares the first image with the second."""
    return lambda x: tf.image.ssim(x[:1], x[1:], 1.0)


def patches(tf, x, size, stride):
    """Return the patches of this size, one every `stride` pixels."""
    extract = tf.image.extract_patches if hasattr(tf.image, "extract_patches") else tf.extract_image_patches
    return extract(x, [1, size, size, 1], [1, stride, stride, 1], [1, 1, 1, 1], "SAME")


def gradient(tf, compute):
    """Return a function that computes the gradient of the sum of squares of `compute(x)`."""

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.square(compute(x)))
        return tape.gradient(total, x)

    return run


def conv_gradient(tf):
    """Return a function that computes the gradient of a convolution."""
    filters = tf.constant(fixed_weights([(5, 5, 1, 25)])[0].astype("float32"))
    return gradient(tf, lambda x: tf.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME"))


def patches_pooling(tf):
    """Return a function that computes maxima over patches."""
    images, height, width, channels = SHAPES["pooling"]
    shape = (images, height // 2, width // 2, 4, channels)
    return lambda x: tf.reduce_max(tf.reshape(patches(tf, x, 2, 2), shape), axis=3)


MAKERS = {
    "ssim": ssim,
    "patches_gradient": lambda tf: gradient(tf, lambda x: patches(tf, x, 5, 1)),
    "conv_gradient": conv_gradient,
    "patches_pooling": patches_pooling,
    "pooling": lambda tf: lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"),
}


if __name__ == "__main__":
    main(scenario)

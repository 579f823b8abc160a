# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A small crop of a large element of a dataset"
# source = "https://github.com/tensorflow/tensorflow/issues/35135"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# element = ["large", "small"]
# source  = ["slices", "tensors"]
#
# [[tool.harness.compare]]
# name    = "large vs small"
# along   = "element"
# plus    = "large"
# against = "small"
# [[tool.harness.compare]]
# name    = "slices vs tensors"
# along   = "source"
# plus    = "slices"
# against = "tensors"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#34936"
# reported = "cropping an element of a dataset takes 100 times as long if the element is 100 times as large"
# worse    = { environment = "tf2.0", element = "large" }
# better   = { environment = "tf2.0", element = "small" }
# ratio    = [30, 150]              # their elements were 25 times as large as these
# when     = { source = "slices" }
# hardware = "CPU, Ubuntu 18.04"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#35135"
# reported = "from_tensor_slices takes time in proportion to the size of the elements, and from_tensors does not"
# worse    = { environment = "tf2.0", source = "slices" }
# better   = { environment = "tf2.0", source = "tensors" }
# ratio    = [10, 1000]             # "orders of magnitude"
# when     = { element = "large" }
# hardware = "CPU, Ubuntu 18.04 and Windows 7"
# program  = "similar"
# ///
"""One crop of 20 × 20 numbers from a dataset's only element, which is repeated forever.

element  large: 4,000 × 2,500 floats, 40 MB; small: 400 × 250 floats
source   slices: from_tensor_slices of a tensor with an additional first dimension; tensors: from_tensors of the element
"""

from kit import main

SHAPES = {"large": (4000, 2500), "small": (400, 250)}
CROP = (20, 20)


def scenario(bench, *, element="large", source="slices"):
    """Measure one crop."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        values = tf.ones(SHAPES[element])
        if source == "slices":
            dataset = tf.data.Dataset.from_tensor_slices(values[None])
        else:
            dataset = tf.data.Dataset.from_tensors(values)
        crops = iter(dataset.repeat().map(lambda values: tf.image.random_crop(values, CROP)))
    with bench.phase("first call"):
        crop = next(crops)
    bench.measure(lambda: next(crops))
    bench.fingerprint(total=float(tf.reduce_sum(crop)))


if __name__ == "__main__":
    main(scenario)

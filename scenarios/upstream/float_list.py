# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A tf.train.FloatList from a tensor and from an array"
# source = "https://github.com/tensorflow/tensorflow/issues/61671"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# value = ["tensor", "array"]
#
# [[tool.harness.compare]]
# name    = "tensor vs array"
# along   = "value"
# plus    = "tensor"
# against = "array"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#61671"
# reported = "creating a FloatList is much faster from a NumPy array than from the same tensor"
# worse    = { environment = "tf2.13", value = "tensor" }
# better   = { environment = "tf2.13", value = "array" }
# ratio    = [10, 1000]             # "much faster"
# hardware = "RTX 4090, and CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#37580"
# reported = "a FloatList of a million zeros takes ages from a tensor, and from its array it does not, in 2.1"
# worse    = { environment = "tf2.1", value = "tensor" }
# better   = { environment = "tf2.1", value = "array" }
# ratio    = [10, 10000]            # no number in the thread
# hardware = "any"
# program  = "similar"
# ///
"""One FloatList of 2,000 numbers. In the issue, it has 10,000.

value  tensor: from an eager tensor, whose elements protobuf reads one by one; array: from a NumPy array
"""

from kit import main

NUMBERS = 2000


def scenario(bench, *, value="tensor"):
    """Measure one list."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        make = tf.train.FloatList
    bench.device()
    with bench.phase("build"):
        numbers = np.linspace(0, 1, NUMBERS)
        if value == "tensor":
            numbers = tf.constant(numbers)
    with bench.phase("first call"):
        message = make(value=numbers)
    bench.measure(lambda: make(value=numbers))
    bench.fingerprint(total=float(sum(message.value)), numbers=len(message.value))


if __name__ == "__main__":
    main(scenario)

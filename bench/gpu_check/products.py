# /// script
# requires-python = ">=3.8"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Matrix products with a known result, and operations on the GPU and on the CPU"
#
# [tool.harness.axes]
# side  = ["8192", "64"]
# calls = ["1", "10", "100"]
# ///
"""Products whose number of operations is known, so that their times can be checked against the GPU's peak.

A step is `calls` products of two matrices with `side` rows, each of which needs the result of the one before. All
elements are powers of two, and the result is 1 in float32 and in TF32.

After the products, a few operations run on the GPU and on the CPU in the same process. `bench.gpu_check.checks`
compares their results.
"""

import ctypes

from kit import digits, driver, eager_tensorflow, fixed_batch, fixed_weights, main

#: The driver's attributes of a GPU (CUdevice_attribute in cuda.h).
ATTRIBUTES = {"multiprocessors": 16, "clock_khz": 13}


def scenario(bench, *, side="8192", calls="1"):
    """Measure `calls` products per step."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        first = tf.ones([int(side), int(side)])
        second = first / float(side)

    def step():
        result = first
        for _ in range(int(calls)):
            result = tf.matmul(result, second)
        return result

    with bench.phase("first call"):
        corner = bench.fetch(step())[0, 0]
    bench.measure(step)
    bench.fingerprint(corner=float(corner.numpy()))
    if bench.device_name == "gpu":
        bench.observe("device", read_attributes())
        bench.observe("outputs", {name: compute(tf, place) for name, place in (("gpu", "GPU:0"), ("cpu", "CPU:0"))})


def read_attributes():
    """Return the facts of the driver about the first GPU; empty if the driver doesn't report them."""
    try:
        cuda = ctypes.CDLL(driver.LIBRARY)
        return {name: driver.whole(cuda.cuDeviceGetAttribute, number, 0) for name, number in ATTRIBUTES.items()}
    except (OSError, AttributeError, driver.SilentError):
        return {}


def compute(tf, place):
    """Return a few elements of the result of each operation at a place such as GPU:0."""
    left, right = fixed_weights([(256, 256), (256, 256)])
    with tf.device(place):
        batch = tf.constant(fixed_batch((1, 16, 16, 64), "float32"))
        kernel = tf.constant(fixed_weights([(3, 3, 64, 64)])[0], tf.float32)
        product = tf.matmul(tf.constant(left, tf.float32), tf.constant(right, tf.float32))
        return {
            "product": digits(product[0, :64]),
            "convolution": digits(tf.nn.conv2d(batch, kernel, 1, "SAME")[0, 8, 8]),
            "softmax": digits(tf.nn.softmax(product)[0, :64]),
        }


if __name__ == "__main__":
    main(scenario)

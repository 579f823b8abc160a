# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow", "numpy"]
#
# [tool.harness]
# title  = "The sigmoid function, for vectors of different sizes"
# source = "https://www.tensorflow.org/guide/tf_numpy"
# tags   = ["seed", "numpy"]
#
# [tool.harness.axes]
# variant = ["numpy", "tnp", "compiled"]
# size    = { sweep = [1, 32, 1024, 32768, 1048576], unit = "values" }
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.4"]
# reason   = "The NumPy API needs TensorFlow 2.4 or later."
# [[tool.harness.needs]]
# when    = { variant = "numpy" }
# devices = ["cpu"]
# reason  = "NumPy runs on the CPU only."
# advice  = "Measure it on the CPU, without --gpu; on a GPU, use variant=tnp or variant=compiled."
#
# [[tool.harness.compare]]
# name    = "tnp vs NumPy"
# along   = "variant"
# plus    = "tnp"
# against = "numpy"
# [[tool.harness.compare]]
# name    = "compiled tnp vs NumPy"
# along   = "variant"
# plus    = "compiled"
# against = "numpy"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The guide's sigmoid of a float32 vector, 1 / (1 + exp(-x)): from which size on is the NumPy API faster than NumPy?

variant  numpy: NumPy, without TensorFlow; tnp: TensorFlow's NumPy API in eager mode; compiled: the NumPy API in a
         tf.function
"""

from kit import digits, main, numpy_tensorflow

DOCUMENT_CALLS = {"cpu": 30, "gpu": 100}
FIRST = 8


def scenario(bench, *, variant="tnp", size="1024"):
    """Measure one call."""
    with bench.phase("import"):
        import numpy as np

        tf = None if variant == "numpy" else numpy_tensorflow()
    if tf:
        bench.device()
    with bench.phase("build"):
        values = np.random.RandomState(0).standard_normal(int(size)).astype("float32")
        sigmoid, x = make_sigmoid(np, tf, variant, values)
    with bench.phase("first call"):
        result = np.asarray(sigmoid(x))
    bench.measure(lambda: sigmoid(x), document=DOCUMENT_CALLS[bench.device_name])
    mean = float(result.mean(dtype="float64"))
    bench.fingerprint(dtype=str(result.dtype), mean=mean, first=digits(result[:FIRST]))


def make_sigmoid(np, tf, variant, values):
    """Return the timed function, and its argument, which has the values of the NumPy vector `values`."""
    if variant == "numpy":
        return lambda x: 1.0 / (1.0 + np.exp(-x)), values
    tnp = tf.experimental.numpy

    def sigmoid(x):
        return 1.0 / (1.0 + tnp.exp(-x))

    return tf.function(sigmoid) if variant == "compiled" else sigmoid, tnp.asarray(values)


if __name__ == "__main__":
    main(scenario)

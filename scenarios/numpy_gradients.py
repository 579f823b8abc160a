# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow", "numpy"]
#
# [tool.harness]
# title  = "Gradients of a model written with the NumPy API"
# source = "https://www.tensorflow.org/guide/tf_numpy"
# tags   = ["seed", "numpy"]
#
# [tool.harness.axes]
# mode = ["eager", "compiled"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.4"]
# reason   = "The NumPy API needs TensorFlow 2.4 or later."
#
# [[tool.harness.compare]]
# name    = "compiled vs eager"
# along   = "mode"
# plus    = "compiled"
# against = "eager"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The guide's gradients of a squared loss on a batch of 512 rows, in eager mode and in a tf.function.

The model is `NumpyModel` of the kit.
"""

from kit import NumpyModel, digits, main, numpy_tensorflow

BATCH = 512


def scenario(bench, *, mode="compiled"):
    """Measure one call."""
    with bench.phase("import"):
        import numpy as np

        tf = numpy_tensorflow()
    bench.device()
    with bench.phase("build"):
        model = NumpyModel(tf)
        inputs, labels = model.batch(BATCH)
        gradients = tf.function(model.gradients) if mode == "compiled" else model.gradients
    with bench.phase("first call"):
        outputs = bench.fetch(gradients(inputs, labels))
    bench.measure(lambda: gradients(inputs, labels))
    bench.fingerprint(sizes=digits([np.abs(np.asarray(array)).mean() for array in outputs]))


if __name__ == "__main__":
    main(scenario)

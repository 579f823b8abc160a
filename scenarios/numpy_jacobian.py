# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow", "numpy"]
#
# [tool.harness]
# title  = "The Jacobian of a batch"
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
# [[tool.harness.expect]]
# observation = "shape"
# value       = [16, 2, 32]
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
"""The guide's Jacobian: the derivatives of the 2 outputs of each of 16 examples with respect to its 32 inputs.

The model is `NumpyModel` of the kit.

mode  compiled: in a tf.function; eager: without a tf.function, so that the tape traces its own loop at each call
"""

from kit import NumpyModel, digits, main, numpy_tensorflow

BATCH = 16


def scenario(bench, *, mode="compiled"):
    """Measure one call."""
    with bench.phase("import"):
        import numpy as np

        tf = numpy_tensorflow()
    bench.device()
    with bench.phase("build"):
        model = NumpyModel(tf)
        inputs, _ = model.batch(BATCH)

        def jacobian(inputs):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = model.predict(inputs)
            return tape.batch_jacobian(outputs, inputs)

        if mode == "compiled":
            jacobian = tf.function(jacobian)
    with bench.phase("first call"):
        values = np.asarray(jacobian(inputs))
    bench.observe("shape", list(values.shape))
    bench.measure(lambda: jacobian(inputs))
    bench.fingerprint(first=digits(values[0]))


if __name__ == "__main__":
    main(scenario)

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow", "numpy"]
#
# [tool.harness]
# title  = "Gradients of each example of a batch"
# source = "https://www.tensorflow.org/guide/tf_numpy"
# tags   = ["seed", "numpy"]
#
# [tool.harness.axes]
# mode   = ["eager", "compiled"]
# method = ["vectorized_map", "map_fn"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.4"]
# reason   = "The NumPy API needs TensorFlow 2.4 or later."
#
# [[tool.harness.expect]]
# observation = "shapes"
# value       = [[128, 32, 64], [128, 64], [128, 64, 2]]
#
# [[tool.harness.compare]]
# name    = "vectorized_map vs map_fn"
# along   = "method"
# plus    = "vectorized_map"
# against = "map_fn"
# [[tool.harness.compare]]
# name    = "compiled vs eager"
# along   = "mode"
# plus    = "compiled"
# against = "eager"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The guide's gradients of a squared loss for each of 128 examples: vectorized, and by a loop.

method  vectorized_map: one vectorized computation for all examples; map_fn: a loop in the graph, or in Python
mode    compiled: in a tf.function, as in the guide; eager: without a tf.function, so that vectorized_map traces at each
        call
"""

from kit import NumpyModel, digits, main, numpy_tensorflow

BATCH = 128


def scenario(bench, *, mode="compiled", method="vectorized_map"):
    """Measure one call."""
    with bench.phase("import"):
        import numpy as np

        tf = numpy_tensorflow()
    bench.device()
    with bench.phase("build"):
        model = NumpyModel(tf)
        inputs, labels = model.batch(BATCH)
        gradients = make_gradients(tf, model, method)
        if mode == "compiled":
            gradients = tf.function(gradients)
    with bench.phase("first call"):
        arrays = [np.asarray(array) for array in gradients(inputs, labels)]
    bench.observe("shapes", [list(array.shape) for array in arrays])
    bench.measure(lambda: gradients(inputs, labels))
    bench.fingerprint(sizes=digits([np.abs(array).mean() for array in arrays]))


def make_gradients(tf, model, method):
    """Return the timed function of inputs and labels: each example's gradients with respect to the three weights."""
    tnp = tf.experimental.numpy

    def of_one(example):
        inputs, labels = example
        return model.gradients(tnp.expand_dims(inputs, 0), tnp.expand_dims(labels, 0))

    def vectorized(inputs, labels):
        return tf.vectorized_map(of_one, (inputs, labels))

    def looped(inputs, labels):
        return tf.map_fn(of_one, (inputs, labels), fn_output_signature=[tf.float32] * 3)

    return {"vectorized_map": vectorized, "map_fn": looped}[method]


if __name__ == "__main__":
    main(scenario)

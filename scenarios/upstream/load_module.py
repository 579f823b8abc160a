# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Loading a tf.Module with the loaders of TensorFlow 2 and 1"
# source = "https://github.com/tensorflow/tensorflow/issues/50705"
# tags   = ["upstream", "load"]
#
# [tool.harness.axes]
# loader = ["v2", "v1"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.0"]
# reason   = "TensorFlow 1 saves modules in a different way."
#
# [[tool.harness.claim]]
# issue    = "T#50705"
# reported = "tf.saved_model.load takes 4 times as long as the loader of TensorFlow 1"
# worse    = { environment = "tf2.3", loader = "v2" }
# better   = { environment = "tf2.3", loader = "v1" }
# ratio    = [3.2, 5]
# hardware = "Tesla V100, and Colab"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "the loader of TF 2 vs that of TF 1"
# along   = "loader"
# plus    = "v2"
# against = "v1"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""Loading a saved module of 60 functions, each with a variable, once.

loader  v2: `tf.saved_model.load`; v1: `tf.compat.v1.saved_model.loader.load` into a graph with a session
"""

import tempfile

from kit import main

FUNCTIONS = 60


def scenario(bench, *, loader="v2"):
    """Save the module, load it once, and prove that it computes."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    path = tempfile.mkdtemp()
    with bench.phase("build"):
        module = make_module(tf)
    with bench.phase("save"):
        tf.saved_model.save(module, path, signatures=module.total)
    if loader == "v2":
        loaded = bench.once(lambda: tf.saved_model.load(path))
        total = loaded.signatures["serving_default"](tf.constant(1.0))["total"].numpy()
    else:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            graph = bench.once(lambda: tf.compat.v1.saved_model.loader.load(session, ["serve"], path))
            signature = graph.signature_def["serving_default"]
            total = session.run(signature.outputs["total"].name, {signature.inputs["x"].name: 1.0})
    bench.fingerprint(total=float(total))


def make_module(tf):
    """Return a module of functions that call one another. The result is 1 plus the sum of all variables."""
    module = tf.Module()
    scalar = tf.TensorSpec([], tf.float32, name="x")
    module.variables_of = [tf.Variable(float(number)) for number in range(FUNCTIONS)]

    def adder(variable):
        return tf.function(lambda x: tf.nn.relu(x + variable), input_signature=[scalar])

    module.adders = [adder(variable) for variable in module.variables_of]

    @tf.function(input_signature=[scalar])
    def total(x):
        for add in module.adders:
            x = add(x)
        return {"total": x}

    module.total = total
    return module


if __name__ == "__main__":
    main(scenario)

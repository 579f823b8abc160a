# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "import tensorflow"
# source = "https://github.com/tensorflow/tensorflow/issues/37729"
# tags   = ["upstream", "load"]
#
# [tool.harness.axes]
# module = ["tensorflow", "contrib"]
#
# [tool.harness.default]
# module = "tensorflow"
#
# [[tool.harness.needs]]
# when     = { module = "contrib" }
# requires = ["tensorflow<2.0"]
# reason   = "TensorFlow 2 has no tensorflow.contrib."
#
# [[tool.harness.claim]]
# issue    = "T#37729"
# reported = "import tensorflow takes long, and takes significantly less time in 2.6 (no number reported)"
# worse    = { environment = "tf2.2" }
# better   = { environment = "tf2.6" }
# of       = "import"
# ratio    = [1.2, 3]
# hardware = "a Mac"
# program  = "same"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#12401"
# reported = "importing tensorflow.contrib.layers takes 6.3 s under a profiler, most of it in inspect.stack"
# worse    = { environment = "tf1.14", module = "contrib" }
# better   = { environment = "tf1.14", module = "tensorflow" }
# of       = "import"
# ratio    = [3, 10]               # a user of TFLearn: 7.6 s, and TensorFlow 0.83 s
# hardware = "not reported"
# version  = "August 2017: 1.3 or earlier"
# program  = "same"
# fixed    = "1.4"
# visible  = ["cpu"]
#
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# of    = "import"
# ///
"""The import in a fresh process. The step is the first use of Keras, which later releases load only then.

module  tensorflow: TensorFlow itself; contrib: tensorflow.contrib.layers
"""

from kit import main


def scenario(bench, *, module="tensorflow"):
    """Time the import, then the first use of Keras."""
    with bench.phase("import"):
        if module == "contrib":
            import tensorflow.contrib.layers  # noqa: F401
        import tensorflow as tf
    bench.observe("tensorflow", tf.__version__)

    def first_use():
        return str(tf.keras.layers.Dense)

    bench.once(first_use)


if __name__ == "__main__":
    main(scenario)

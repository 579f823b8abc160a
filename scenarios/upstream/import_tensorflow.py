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
# module = ["tensorflow", "keras", "contrib"]
#
# [tool.harness.default]
# module = "tensorflow"
#
# [[tool.harness.needs]]
# when     = { module = "keras" }
# requires = ["keras"]
# reason   = "The package keras isn't installed."
# [[tool.harness.needs]]
# when     = { module = "contrib" }
# requires = ["tensorflow<2.0"]
# reason   = "TensorFlow 2 has no tensorflow.contrib."
#
# [[tool.harness.claim]]
# issue    = "T#37729"
# reported = "import tensorflow takes 2.7 s in 2.7, on a CPU"
# worse    = { environment = "tf2.7" }
# of       = "import"
# seconds  = [2.1, 3.4]
# hardware = "Colab"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#37729"
# reported = "importing TensorFlow became significantly faster in 2.6 (no number reported)"
# worse    = { environment = "tf2.2" }
# better   = { environment = "tf2.6" }
# of       = "import"
# ratio    = [1.2, 3]
# hardware = "a Mac"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#110143"
# reported = "import tensorflow alone takes about 10 s in 2.20"
# worse    = { environment = "tf2.20" }
# of       = "import"
# seconds  = [8, 12.5]
# hardware = "Windows 11"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "https://github.com/capreolus-ir/capreolus/issues/89"
# reported = "importing TensorFlow takes about 10 s (September 2020; measured here with 2.3)"
# worse    = { environment = "tf2.3" }
# of       = "import"
# seconds  = [8, 12.5]
# hardware = "not reported"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "K#13538"
# reported = "importing array_to_img from Keras takes 1.6 s in 1.14"
# worse    = { environment = "tf1.14", module = "keras" }
# of       = "import"
# seconds  = [1.3, 2]
# hardware = "a CPU of AWS, Ubuntu 18.04"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#12401"
# reported = "importing tensorflow.contrib.layers takes 6.3 s under a profiler (August 2017; measured here with 1.14)"
# worse    = { environment = "tf1.14", module = "contrib" }
# of       = "import"
# seconds  = [2, 7]
# hardware = "not reported"
# visible  = ["cpu"]
#
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# of    = "import"
# ///
"""The import in a fresh process. The step is the first use of Keras, which later releases load only then.

module  tensorflow: TensorFlow itself; keras: a function of the package keras; contrib: tensorflow.contrib.layers
"""

from kit import main


def scenario(bench, *, module="tensorflow"):
    """Time the import, then the first use of Keras."""
    with bench.phase("import"):
        if module == "keras":
            from keras.preprocessing.image import array_to_img  # noqa: F401
        elif module == "contrib":
            import tensorflow.contrib.layers  # noqa: F401
        import tensorflow as tf
    bench.observe("tensorflow", tf.__version__)

    def first_use():
        return str(tf.keras.layers.Dense)

    bench.once(first_use)


if __name__ == "__main__":
    main(scenario)

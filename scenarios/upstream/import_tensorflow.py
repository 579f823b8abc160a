# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "import tensorflow"
# source = "https://github.com/tensorflow/tensorflow/issues/37729"
# tags   = ["upstream", "load"]
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
#
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# of    = "import"
# ///
"""The import, in a fresh process, and as the step the first use of Keras, which later releases load only then."""

from kit import main


def scenario(bench):
    """Time the import, then the first use of Keras."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.observe("tensorflow", tf.__version__)

    def first_use():
        return str(tf.keras.layers.Dense)

    bench.once(first_use)


if __name__ == "__main__":
    main(scenario)

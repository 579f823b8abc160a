"""Measure the same TensorFlow work in several TensorFlow releases, each in its own container."""

__version__ = "0.1.0"

#: What the package is called where packages are installed from; `harness` is another project's name there.
DISTRIBUTION = "tf-harness"

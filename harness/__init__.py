"""Measure the same TensorFlow work in several TensorFlow releases, each in its own container."""

__version__ = "0.1.0"

#: The name of the package on package indexes, where `harness` is the name of another project.
DISTRIBUTION = "tf-harness"

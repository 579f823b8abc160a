"""Measure one piece of TensorFlow work across TensorFlow releases, each in a container of its own."""

__version__ = "0.1.0"

#: What the package is called where packages are installed from; `harness` is another project's name there.
DISTRIBUTION = "tf-harness"

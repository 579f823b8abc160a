"""Measure one piece of TensorFlow work across TensorFlow releases, each in a container of its own."""

__version__ = "0.1.0"

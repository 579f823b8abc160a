"""Differences between releases that several scenarios need."""

import re


def eager_tensorflow():
    """Import TensorFlow and return it with eager execution, which must be enabled before anything else in 1.x."""
    import tensorflow as tf

    if not tf.executing_eagerly():
        tf.compat.v1.enable_eager_execution()
    return tf


def numpy_tensorflow():
    """Import TensorFlow and return it with its NumPy API, which is loaded when something of it is first asked for."""
    import tensorflow as tf

    tf.experimental.numpy  # noqa: B018
    return tf


def eager_switch(tf):
    """The function that has every tf.function run as plain Python: called with True or False. 2.3 gave it its name."""
    if hasattr(tf.config, "run_functions_eagerly"):
        return tf.config.run_functions_eagerly
    return tf.config.experimental_run_functions_eagerly


def version(text):
    """The first two numbers of a version, to be compared as numbers: "2.15.1" is (2, 15)."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])

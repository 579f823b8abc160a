"""Differences between releases that several scenarios need."""

import re


def eager_tensorflow():
    """Import TensorFlow and return it with eager execution, which must be enabled before anything else in 1.x."""
    import tensorflow as tf

    if not tf.executing_eagerly():
        tf.compat.v1.enable_eager_execution()
    return tf


def numpy_tensorflow():
    """Import TensorFlow and return it with its NumPy API, which TensorFlow loads at its first use."""
    import tensorflow as tf

    tf.experimental.numpy  # noqa: B018
    return tf


def eager_switch(tf):
    """Return the function that makes every tf.function run as plain Python (True) or not (False). 2.3 renamed it."""
    if hasattr(tf.config, "run_functions_eagerly"):
        return tf.config.run_functions_eagerly
    return tf.config.experimental_run_functions_eagerly


def version(text):
    """Return the first two numbers of a version, for comparisons: (2, 15) for "2.15.1"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])

"""Waking TensorFlow's device, so that the time it takes is not taken for something else's."""

import sys


def imported():
    """The TensorFlow that the scenario imported, None where it has imported none."""
    return sys.modules.get("tensorflow")


def initialise():
    """Initialise the devices of the TensorFlow that the scenario imported, in the mode that it chose.

    Leaves no trace in the default graph, and sizes the process-wide thread pools as the work itself would.
    Raises RuntimeError when TensorFlow was not imported.
    """
    tf = imported()
    if tf is None:
        raise RuntimeError("bench.device() was called before the scenario imported tensorflow")
    if tf.executing_eagerly():
        tf.constant(1.0).numpy()
    elif tf.__version__.startswith("1."):
        # The first session sizes the pools, and TF 1's Keras sizes its own by OMP_NUM_THREADS: so let it be that one.
        tf.keras.backend.get_session().list_devices()
    else:
        with tf.compat.v1.Session(graph=tf.Graph()) as session:
            session.list_devices()

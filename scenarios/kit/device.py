"""Waking TensorFlow's device, so that the time it takes is not taken for something else's."""

import os
import sys

# In the folder of TensorFlow 1.
MEMORY_STATS = ("contrib", "memory_stats", "python", "ops", "_memory_stats_ops.so")


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


def peak_memory(tf, gpus):
    """Return the peak bytes of TensorFlow's tensors on these GPUs ("GPU:0"), in all; None if it doesn't report it.

    It is its allocator's count for the whole launch, without memory that the allocator reserved. TensorFlow 1 has an
    operation for it, 2.5 and later a function, 2.0 to 2.4 neither.
    """
    ask = getattr(tf.config.experimental, "get_memory_info", None)
    try:
        if ask is not None:
            return sum(ask(gpu)["peak"] for gpu in gpus)
        if tf.__version__.startswith("1."):
            return sum(most_in_use(tf, gpu) for gpu in gpus)
    except Exception:  # noqa: BLE001, each release and each allocator raises its own
        pass
    return None


def most_in_use(tf, gpu):
    """Return the result of TensorFlow 1's operation for one GPU. Raises the release's errors."""
    # loaded by itself: all of tf.contrib would take seconds
    library = tf.load_op_library(os.path.join(tf.sysconfig.get_lib(), *MEMORY_STATS))
    with tf.Graph().as_default() as graph:
        with tf.device("/" + gpu):
            most = library.max_bytes_in_use()
        with tf.compat.v1.Session(graph=graph) as session:
            return int(session.run(most))

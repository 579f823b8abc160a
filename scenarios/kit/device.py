"""Initializes TensorFlow's device, so that this time isn't part of another phase."""

import os
import sys

# The path of the operations in the folder of TensorFlow 1.
MEMORY_STATS = ("contrib", "memory_stats", "python", "ops", "_memory_stats_ops.so")


def find_tensorflow():
    """Return the TensorFlow that the scenario imported, or None if it imported none."""
    return sys.modules.get("tensorflow")


def initialize():
    """Initialize the devices of the imported TensorFlow, in the mode that the scenario chose.

    This adds nothing to the default graph, and gives the thread pools of the process the size that the work itself
    would give them. Raises RuntimeError if TensorFlow wasn't imported.
    """
    tf = find_tensorflow()
    if tf is None:
        raise RuntimeError("bench.device() was called before the scenario imported tensorflow")
    if tf.executing_eagerly():
        tf.constant(1.0).numpy()
    elif tf.__version__.startswith("1."):
        # The first session sets the size of the pools. Keras in TensorFlow 1 follows OMP_NUM_THREADS, so use its
        # session.
        tf.keras.backend.get_session().list_devices()
    else:
        with tf.compat.v1.Session(graph=tf.Graph()) as session:
            session.list_devices()


def peak_memory(tf, gpus):
    """Return the total peak bytes of TensorFlow's tensors on these GPUs ("GPU:0"); None if it isn't reported.

    The number comes from TensorFlow's allocator. It covers the whole launch, and leaves out reserved memory without
    tensors. TensorFlow 1 has an operation for it, and 2.5 and later have a function. 2.0 to 2.4 have neither.
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
    """Return the peak bytes on one GPU, from TensorFlow 1's operation. Raises TensorFlow's own errors."""
    # only this library is loaded, because the import of tf.contrib takes seconds
    library = tf.load_op_library(os.path.join(tf.sysconfig.get_lib(), *MEMORY_STATS))
    with tf.Graph().as_default() as graph:
        with tf.device("/" + gpu):
            peak_bytes = library.max_bytes_in_use()
        with tf.compat.v1.Session(graph=graph) as session:
            return int(session.run(peak_bytes))

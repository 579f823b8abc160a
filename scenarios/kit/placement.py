"""Checks whether work for a GPU runs on the GPU. No check is part of a timed phase.

Devices are written as kind and number: "GPU:0". If a library is missing, no work can run on the GPU, but releases up to
2.3 still list "XLA_GPU:0". That doesn't count as a GPU.
"""

import os
import re
import subprocess
import sys

from . import driver
from .outcome import CpuFallback

# The end of a device's full name: "/job:localhost/replica:0/task:0/device:GPU:0".
DEVICE = re.compile(r"([A-Za-z_]+:\d+)$")

# TensorFlow's messages about why it uses no GPU, in all releases. On its line, a time comes before the message.
COMPLAINT = re.compile(
    r"(?:Could not (?:dlopen|load dynamic) library '(?!libnvinfer)|Could not find cuda drivers|Cannot dlopen some GPU|"
    r"failed call to cu|kernel driver does not appear|[Ii]gnoring visible gpu device).*"
)

# Lists the devices, so that TensorFlow logs why it has no GPU. It works in every release.
ASK = "from tensorflow.python.client import device_lib; device_lib.list_local_devices()"
ASK_SECONDS = 120
# Some releases, such as 2.15, report a missing library only in a detailed log.
ASK_ENVIRON = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_MAX_VLOG_LEVEL": "1"}
LAST_WORDS = 2000

# TensorFlow's message about an initialized GPU, in every release.
DESCRIPTION = re.compile(r"name: (?P<name>.*), pci bus id: (?P<pci>\S+), compute capability: (?P<capability>\d+\.\d+)")

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


def require_gpu(tf):
    """Raise CpuFallback, with TensorFlow's devices and its own reason, unless it has initialized a GPU."""
    names = list_devices(tf)
    if not any(is_gpu(device) for device in names):
        raise CpuFallback(
            "TensorFlow {} lists no GPU, only {}: {}".format(
                tf.__version__, ", ".join(sorted(names)), find_complaint(tf)
            )
        )


def list_devices(tf):
    """Return the devices that TensorFlow has initialized, in the mode that the scenario chose."""
    if tf.executing_eagerly():
        config = tf.config if hasattr(tf.config, "list_logical_devices") else tf.config.experimental
        return [short(device.name) for device in config.list_logical_devices()]
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        return [short(device.name) for device in session.list_devices()]


def find_complaint(tf):
    """Return TensorFlow's own message about why it uses no GPU.

    The message comes from a new process, because this process doesn't log it. If the new process logs no message about
    GPUs, the result is the last line of its standard error.
    """
    if not tf.test.is_built_with_cuda():
        return "it is built without CUDA"
    try:
        process = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", ASK],
            env=dict(os.environ, **ASK_ENVIRON),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ASK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "it gave no reason within {} s".format(ASK_SECONDS)
    log = process.stdout.decode("utf-8", "replace")
    complaints = [match.group(0).strip() for match in COMPLAINT.finditer(log)]
    sys.stderr.write("\n".join(complaints or [log[-LAST_WORDS:]]) + "\n")
    return complaints[0] if complaints else "it gave no reason"


def exercise(tf):
    """Run a small matrix product, activation and convolution, so that the driver compiles code for a new GPU."""

    def work(matrix, image, kernel):
        return tf.nn.relu(tf.matmul(matrix, matrix)), tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME")

    shapes = [(8, 8), (1, 8, 8, 1), (3, 3, 1, 1)]
    if tf.executing_eagerly():
        for result in work(*map(tf.ones, shapes)):
            result.numpy()
    else:
        run_alone(tf, shapes, work)


def probe(tf):
    """Return the device that TensorFlow selects by default for a matrix product."""

    def work(matrix):
        return tf.matmul(matrix, matrix, name="probe")

    if tf.executing_eagerly():
        return short(device_of(work(tf.ones((8, 8)))))
    return short(run_alone(tf, [(8, 8)], work)["probe"])


def run_alone(tf, shapes, work):
    """Run `work` on arrays of ones with these shapes, in a separate graph and session. Return its `placements`.

    The ones are fed, because TensorFlow would replace a graph of constants with its result.
    """
    import numpy as np

    graph = tf.Graph()
    with graph.as_default():
        inputs = [tf.compat.v1.placeholder(tf.float32, shape) for shape in shapes]
        results = work(*inputs)
    feed_dict = {tensor: np.ones(tensor.shape.as_list(), "float32") for tensor in inputs}
    return placements(tf, graph, results, feed_dict)


def placements(tf, graph, fetches, fed=None):
    """Run `fetches` of a graph in a new session. Return the device of each operation that ran, by operation name."""
    compat = tf.compat.v1
    metadata = compat.RunMetadata()
    config = compat.ConfigProto(allow_soft_placement=True)  # the same as in Keras's session
    with compat.Session(graph=graph, config=config) as session:
        options = compat.RunOptions(output_partition_graphs=True)
        session.run(fetches, fed, options=options, run_metadata=metadata)
    return {node.name: node.device for part in metadata.partition_graphs for node in part.node}


def devices(tf, values):
    """Return the known devices of the tensors and variables in `values` (in any nesting)."""
    names, symbolic = set(), []
    for value in leaves(values):
        tensor = tensor_in(value)
        operation = operation_of(tensor)
        if operation is not None:
            symbolic.append(operation)
        elif DEVICE.search(device_of(tensor)):  # NumPy's arrays have the device "cpu"
            names.add(short(device_of(tensor)))
    # Only variables are run, because another operation of the scenario's graph could be a training step.
    variables = [operation for operation in symbolic if operation.type in VARIABLES]
    for graph in {operation.graph for operation in variables}:
        operations = [operation for operation in variables if operation.graph is graph]
        device_by_name = placements(tf, graph, operations)
        operation_names = [operation.name for operation in operations]
        names.update(short(device_by_name[name]) for name in operation_names if name in device_by_name)
    return names


def tensor_in(value):
    """Return a value if it is a tensor or variable of TensorFlow, otherwise the tensor that it contains, or None.

    A variable of Keras 3 contains a tensor, and so does an array of the NumPy API in 2.4.
    """
    if hasattr(value, "device"):
        return value
    candidates = (getattr(value, name, None) for name in ("value", "data"))
    return next((candidate for candidate in candidates if hasattr(candidate, "device")), None)


def device_of(tensor):
    """Return the full name of the device whose memory contains an eager tensor or variable; empty if it isn't known.

    If possible, `.device` isn't used, because it is the device of the operation. TensorFlow keeps integers (int32) on
    the host and multiplies them there, but for a function's result, `.device` is the GPU.
    """
    return str(getattr(tensor, "backing_device", None) or getattr(tensor, "device", None) or "")


def gpus(tf, used):
    """Return the known facts about these TensorFlow devices ("GPU:0"): name, compute capability and PCI address."""
    gpu_devices = [device for device in list_devices(tf) if is_gpu(device)]
    facts = driver.gpus()
    if len(facts) != len(gpu_devices):
        # TensorFlow leaves out GPUs that are much smaller than the largest one. Only TensorFlow can report these, and
        # only by initializing all GPUs again.
        facts = read_descriptions()
    return [facts[number] for number in map(number_of, used) if number < len(facts)]


def read_descriptions():
    """Return the facts of `driver.gpus` for the GPUs that TensorFlow uses."""
    from tensorflow.python.client import device_lib

    matches = (DESCRIPTION.search(device.physical_device_desc) for device in device_lib.list_local_devices())
    return [match.groupdict() for match in matches if match]


def operation_of(tensor):
    """Return the operation behind a graph's tensor or variable; None if it isn't part of a graph."""
    try:
        operation = tensor.op
    except Exception:  # noqa: BLE001, for eager tensors, each release raises another error
        return None
    return operation if hasattr(operation, "graph") and hasattr(operation, "type") else None


def leaves(values):
    """Yield the values in nested lists, tuples and dicts."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        for value in values:
            for leaf in leaves(value):
                yield leaf
    else:
        yield values


def is_gpu(device):
    """Return whether a device is a GPU that can run work."""
    return device.startswith("GPU:")


def number_of(device):
    """Return the number of a device: 1 for "GPU:1"."""
    return int(device.rpartition(":")[2])


def short(device):
    """Return kind and number of a device from its full name, in upper case; otherwise the name unchanged."""
    match = DEVICE.search(device)
    return match.group(1).upper() if match else device

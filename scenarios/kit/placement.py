"""Device placement by TensorFlow: whether work for a GPU runs on it. Checked outside of everything that is timed.

Devices are written as kind and number: "GPU:0". Releases up to 2.3 also list "XLA_GPU:0" if a library is missing and no
work can run on the GPU: that doesn't count as a GPU.
"""

import os
import re
import subprocess
import sys

from . import driver
from .outcome import CpuFallback

# An operation that was placed has such a name in its device: "/job:localhost/replica:0/task:0/device:GPU:0".
DEVICE = re.compile(r"([A-Za-z_]+:\d+)$")

# TensorFlow's messages about why it uses no GPU, in all releases; before them on the line is a time.
COMPLAINT = re.compile(
    r"(?:Could not (?:dlopen|load dynamic) library '(?!libnvinfer)|Could not find cuda drivers|Cannot dlopen some GPU|"
    r"failed call to cu|kernel driver does not appear|[Ii]gnoring visible gpu device).*"
)

# Lists the devices and so says why there is none, in every release.
ASK = "from tensorflow.python.client import device_lib; device_lib.list_local_devices()"
ASK_SECONDS = 120
# Of much that it says then: 2.15 and others say that a library is missing only to who asks for details.
ASK_ENVIRON = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_MAX_VLOG_LEVEL": "1"}
LAST_WORDS = 2000

# TensorFlow's message about an initialized GPU, in every release.
DESCRIPTION = re.compile(r"name: (?P<name>.*), pci bus id: (?P<pci>\S+), compute capability: (?P<capability>\d+\.\d+)")

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


def require_gpu(tf):
    """Raise CpuFallback, with TensorFlow's devices and its own reason, unless it has initialized a GPU."""
    names = listed(tf)
    if not any(is_gpu(device) for device in names):
        raise CpuFallback(
            "TensorFlow {} lists no GPU, only {}: {}".format(tf.__version__, ", ".join(sorted(names)), complaint(tf))
        )


def listed(tf):
    """The devices that TensorFlow has initialised, in the mode that the scenario chose."""
    if tf.executing_eagerly():
        config = tf.config if hasattr(tf.config, "list_logical_devices") else tf.config.experimental
        return [short(device.name) for device in config.list_logical_devices()]
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        return [short(device.name) for device in session.list_devices()]


def complaint(tf):
    """Return TensorFlow's own message about why it uses no GPU.

    Runs a new process, because this one's stderr is silenced. Messages about GPUs go to standard error; if there are
    none, the last words are returned.
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
    words = process.stdout.decode("utf-8", "replace")
    complaints = [match.group(0).strip() for match in COMPLAINT.finditer(words)]
    sys.stderr.write("\n".join(complaints or [words[-LAST_WORDS:]]) + "\n")
    return complaints[0] if complaints else "it gave no reason"


def exercise(tf):
    """Run one small matrix product, activation and convolution: a driver compiles what a GPU has no code for."""

    def work(matrix, image, kernel):
        return tf.nn.relu(tf.matmul(matrix, matrix)), tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME")

    shapes = [(8, 8), (1, 8, 8, 1), (3, 3, 1, 1)]
    if tf.executing_eagerly():
        for result in work(*map(tf.ones, shapes)):
            result.numpy()
    else:
        run_alone(tf, shapes, work)


def probe(tf):
    """The device that TensorFlow takes for a matrix product that nobody has placed."""

    def work(matrix):
        return tf.matmul(matrix, matrix, name="probe")

    if tf.executing_eagerly():
        return short(device_of(work(tf.ones((8, 8)))))
    return short(run_alone(tf, [(8, 8)], work)["probe"])


def run_alone(tf, shapes, work):
    """Run `work` on ones of these shapes in its own graph and session; see `placements`.

    The ones are fed, because a graph of constants is simplified until nothing is left to run.
    """
    import numpy as np

    graph = tf.Graph()
    with graph.as_default():
        inputs = [tf.compat.v1.placeholder(tf.float32, shape) for shape in shapes]
        results = work(*inputs)
    fed = {tensor: np.ones(tensor.shape.as_list(), "float32") for tensor in inputs}
    return placements(tf, graph, results, fed)


def placements(tf, graph, fetches, fed=None):
    """Run `fetches` of a graph in a new session; returns the device of each operation that ran, by its name."""
    compat = tf.compat.v1
    metadata = compat.RunMetadata()
    config = compat.ConfigProto(allow_soft_placement=True)  # as Keras's own session has it
    with compat.Session(graph=graph, config=config) as session:
        options = compat.RunOptions(output_partition_graphs=True)
        session.run(fetches, fed, options=options, run_metadata=metadata)
    return {node.name: node.device for part in metadata.partition_graphs for node in part.node}


def devices(tf, values):
    """Return the devices of the tensors and variables in `values`, however nested, as far as they are known."""
    names, symbolic = set(), []
    for value in leaves(values):
        tensor = tensor_in(value)
        operation = operation_of(tensor)
        if operation is not None:
            symbolic.append(operation)
        elif DEVICE.search(device_of(tensor)):  # NumPy's arrays have one too, "cpu"
            names.add(short(device_of(tensor)))
    # Only variables: to run another operation of the scenario's graph may be to train once more.
    variables = [operation for operation in symbolic if operation.type in VARIABLES]
    for graph in {operation.graph for operation in variables}:
        own = [operation for operation in variables if operation.graph is graph]
        placed = placements(tf, graph, own)
        names.update(short(placed[operation.name]) for operation in own if operation.name in placed)
    return names


def tensor_in(value):
    """The tensor or variable of TensorFlow's own: a variable of Keras 3 holds one, and an array of 2.4's NumPy API."""
    if hasattr(value, "device"):
        return value
    held = (getattr(value, name, None) for name in ("value", "data"))
    return next((inner for inner in held if hasattr(inner, "device")), None)


def device_of(tensor):
    """Return the full name of the device whose memory has an eager tensor or variable; empty if there is none.

    `.device` is the operation's device: for integers (int32), which TensorFlow keeps and multiplies on the host, a
    function reports the GPU.
    """
    return str(getattr(tensor, "backing_device", None) or getattr(tensor, "device", None) or "")


def gpus(tf, used):
    """What is known of these of TensorFlow's devices ("GPU:0"): name, capability and PCI address of each."""
    own = [device for device in listed(tf) if is_gpu(device)]
    facts = driver.gpus()
    if len(facts) != len(own):
        # It leaves out GPUs that are much smaller than the largest. Which ones only it can tell, and only by
        # initialising all of them once more.
        facts = described()
    return [facts[number] for number in map(number_of, used) if number < len(facts)]


def described():
    """Return the facts of `driver.gpus` for the GPUs that TensorFlow uses."""
    from tensorflow.python.client import device_lib

    matches = (DESCRIPTION.search(device.physical_device_desc) for device in device_lib.list_local_devices())
    return [match.groupdict() for match in matches if match]


def operation_of(tensor):
    """Return the operation behind a graph's tensor or variable; None if it isn't part of a graph."""
    try:
        operation = tensor.op
    except Exception:  # noqa: BLE001, eager tensors raise what their release raises
        return None
    return operation if hasattr(operation, "graph") and hasattr(operation, "type") else None


def leaves(values):
    """What is in lists, tuples and dicts, one after another."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        for value in values:
            for leaf in leaves(value):
                yield leaf
    else:
        yield values


def is_gpu(device):
    """Whether a device is a GPU that work runs on."""
    return device.startswith("GPU:")


def number_of(device):
    """The number of a device: 1 of "GPU:1"."""
    return int(device.rpartition(":")[2])


def short(device):
    """Kind and number of a device by its full name, upper case; the name itself where it has none."""
    match = DEVICE.search(device)
    return match.group(1).upper() if match else device

# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow", "numpy"]
#
# [tool.harness]
# title  = "Behavior of the NumPy API, and differences from NumPy"
# source = "https://www.tensorflow.org/guide/tf_numpy"
# tags   = ["seed", "numpy", "behaviour"]
#
# [tool.harness.axes]
# experiment = [
#   "promotion", "literals", "prefer_float32", "broadcasting", "indexing", "assignment", "interoperation", "devices",
# ]
# behaviour = ["plain", "numpy"]
#
# [[tool.harness.exclude]]
# experiment = "prefer_float32"     # the switch is the one that sets NumPy's behaviour
# behaviour  = "plain"
# [[tool.harness.exclude]]          # the switch has no part in these
# experiment = "broadcasting"
# behaviour  = "numpy"
# [[tool.harness.exclude]]
# experiment = "assignment"
# behaviour  = "numpy"
# [[tool.harness.exclude]]
# experiment = "devices"
# behaviour  = "numpy"
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.4"]
# reason   = "The NumPy API needs TensorFlow 2.4 or later."
# [[tool.harness.needs]]
# when     = { behaviour = "numpy" }
# requires = ["tensorflow>=2.5"]
# reason   = "In 2.4, arrays have a separate class that always behaves like NumPy."
# advice   = "Use behaviour=plain."
#
# [[tool.harness.expect]]
# observation = "tnp.add of int32 and int32, int64, float32, float64"
# value       = ["int32", "int64", "float64", "float64"]
# when        = { experiment = "promotion" }
# [[tool.harness.expect]]
# observation = "tnp.add of int64 and int32, int64, float32, float64"
# value       = ["int64", "int64", "float64", "float64"]
# when        = { experiment = "promotion" }
# [[tool.harness.expect]]
# observation = "tnp.add of float32 and int32, int64, float32, float64"
# value       = ["float64", "float64", "float32", "float64"]
# when        = { experiment = "promotion" }
# [[tool.harness.expect]]
# observation = "tnp.add of float64 and int32, int64, float32, float64"
# value       = ["float64", "float64", "float64", "float64"]
# when        = { experiment = "promotion" }
# [[tool.harness.expect]]
# observation = "asarray(1)"
# value       = "int64"
# when        = { experiment = "literals" }
# [[tool.harness.expect]]
# observation = "asarray(1.0)"
# value       = "float64"
# when        = { experiment = "literals" }
# [[tool.harness.expect]]
# observation = "asarray(1.0)"
# value       = "float32"
# when        = { experiment = "prefer_float32" }
# [[tool.harness.expect]]
# observation = "shape of (2, 3) + (3,) + (1, 2, 1)"
# value       = [1, 2, 3]
# when        = { experiment = "broadcasting" }
# [[tool.harness.expect]]
# observation = "x[1, newaxis, 1:3, ...]"
# value       = [1, 2, 4]
# when        = { experiment = "indexing" }
# [[tool.harness.expect]]
# observation = "x[:, (True, False, True), :]"
# value       = [2, 2, 4]
# when        = { experiment = "indexing", behaviour = "numpy" }
# [[tool.harness.expect]]
# observation = "x[1, (0, 0, 1), asarray([0, 1, 1])]"
# value       = [3]
# when        = { experiment = "indexing", behaviour = "numpy" }
# [[tool.harness.expect]]
# observation = "x[1] = -1"
# value       = "TypeError"
# when        = { experiment = "assignment" }
# [[tool.harness.expect]]
# observation = "asarray(tensor) is the tensor"
# value       = true
# when        = { experiment = "interoperation" }
# [[tool.harness.expect]]
# observation = "tnp + numpy is a tensor"
# value       = true
# when        = { experiment = "interoperation" }
# ///
"""The guide's experiments on the NumPy API that don't measure times, each in a separate process.

behaviour   plain: TensorFlow's default; numpy: after `experimental_enable_numpy_behavior()`, which can't be undone
experiment  promotion: the type of a sum; literals: the types of Python numbers; prefer_float32: the same types, with
            `prefer_float32`; broadcasting: the shape of a sum; indexing: the shapes of results, if their values equal
            NumPy's; assignment: the error of an assignment to an item; interoperation: the results of NumPy's functions
            for arrays of the API, and of the API's functions for NumPy's arrays; devices: the devices of arrays
"""

import operator
from functools import partial

from kit import catch_error, main, numpy_tensorflow

TYPES = ("int32", "int64", "float32", "float64")


def scenario(bench, *, experiment="promotion", behaviour="plain"):
    """Run one experiment, and time nothing."""
    with bench.phase("import"):
        import numpy as np

        tf = numpy_tensorflow()
        tnp = tf.experimental.numpy
    if behaviour == "numpy":
        tnp.experimental_enable_numpy_behavior(prefer_float32=experiment == "prefer_float32")
    bench.device()
    EXPERIMENTS[experiment](bench, np, tf, tnp)


def promotion(bench, np, tf, tnp):
    """Observe the types of sums, by function and by operator."""
    arrays = [tnp.asarray(np.ones(2, name)) for name in TYPES]
    for name, add in [("tnp.add", tnp.add), ("+", operator.add)]:
        for x in arrays:
            label = "{} of {} and {}".format(name, dtype(x), ", ".join(TYPES))
            bench.observe(label, [dtype_or_error(partial(add, x, y)) for y in arrays])


def literals(bench, np, tf, tnp):
    """Observe the types of arrays made from Python numbers, and of sums with Python numbers."""
    cases = [
        ("asarray(1)", lambda: tnp.asarray(1)),
        ("asarray(1.0)", lambda: tnp.asarray(1.0)),
        ("ones(1)", lambda: tnp.ones(1)),
        ("arange(2)", lambda: tnp.arange(2)),
        ("mean([1, 2])", lambda: tnp.mean(tnp.asarray([1, 2]))),
        ("int32 + 1", lambda: tnp.ones(1, tnp.int32) + 1),
        ("int32 + 1.0", lambda: tnp.ones(1, tnp.int32) + 1.0),
        ("float32 + 1", lambda: tnp.ones(1, tnp.float32) + 1),
        ("float32 + 1.0", lambda: tnp.ones(1, tnp.float32) + 1.0),
        ("add(int32, 1.0)", lambda: tnp.add(tnp.ones(1, tnp.int32), 1.0)),
    ]
    for name, make in cases:
        bench.observe(name, dtype_or_error(make))


def broadcasting(bench, np, tf, tnp):
    """Observe the shape of the guide's sum of arrays with three shapes."""
    total = tnp.ones((2, 3)) + tnp.ones((3,)) + tnp.ones((1, 2, 1))
    bench.observe("shape of (2, 3) + (3,) + (1, 2, 1)", list(total.shape))


def indexing(bench, np, tf, tnp):
    """Observe the shapes of indexing results, in the guide and others, if their values equal NumPy's; or the errors."""
    ours, theirs = tnp.reshape(tnp.arange(24), (2, 3, 4)), np.arange(24).reshape(2, 3, 4)
    cases = [
        ("x[1, newaxis, 1:3, ...]", lambda x: x[1, np.newaxis, 1:3, ...]),
        ("x[..., 0]", lambda x: x[..., 0]),
        ("x[x > 10]", lambda x: x[x > 10]),
        ("x[:, (True, False, True), :]", lambda x: x[:, (True, False, True), :]),
        ("x[1, (0, 0, 1), asarray([0, 1, 1])]", lambda x: x[1, (0, 0, 1), find_asarray(x, np, tnp)([0, 1, 1])]),
        ("x[0, [0, 2]]", lambda x: x[0, [0, 2]]),
        ("x[0, 0, ::-1]", lambda x: x[0, 0, ::-1]),
    ]
    for name, index in cases:
        failure = catch_error(lambda index=index: index(ours))
        if failure.says:
            bench.observe(name, failure.error)
        else:
            values = np.asarray(index(ours))
            same = np.array_equal(values, index(theirs))
            bench.observe(name, list(values.shape) if same else "other values than NumPy's")


def find_asarray(x, np, tnp):
    """Return the function that makes an array of the library of `x`."""
    return np.asarray if isinstance(x, np.ndarray) else tnp.asarray


def assignment(bench, np, tf, tnp):
    """Observe the error of an assignment to an item of an array."""

    def assign():
        x = tnp.arange(6)
        x[1] = -1

    failure = catch_error(assign)
    bench.observe("x[1] = -1", failure.error)
    bench.observe("x[1] = -1, says", failure.says)


def interoperation(bench, np, tf, tnp):
    """Observe the classes of the results that functions of one library return for arrays of the other library."""
    ours, theirs, tensor = tnp.ones(2), np.ones(2), tf.ones(2)
    cases = [
        ("tnp.ones", ours),
        ("np.sum(tnp)", np.sum(ours)),
        ("np.exp(tnp)", np.exp(ours)),
        ("tnp.sum(numpy)", tnp.sum(theirs)),
        ("tf.reduce_sum(tnp)", tf.reduce_sum(ours)),
        ("tnp + numpy", ours + theirs),
        ("numpy + tnp", theirs + ours),
    ]
    for name, value in cases:
        bench.observe(name, "{}.{}".format(type(value).__module__, type(value).__name__))
    bench.observe("tnp + numpy is a tensor", isinstance(ours + theirs, tf.Tensor))
    bench.observe("__array_priority__", ours.__array_priority__)
    bench.observe("asarray(tensor) is the tensor", tnp.asarray(tensor) is tensor)
    for name in ("T", "astype"):
        bench.observe("has ." + name, hasattr(ours, name))


def devices(bench, np, tf, tnp):
    """Observe the devices of the machine, and the devices of new arrays and of arrays that were copied to a device."""
    bench.observe(
        "kinds of physical device", sorted({device.device_type for device in tf.config.list_physical_devices()})
    )
    bench.observe("logical devices", [device.name for device in tf.config.list_logical_devices()])
    bench.observe("tnp.ones", device(tnp.ones(2)))
    on_cpu = tnp.ones(2)
    for name in ("/CPU:0", "/GPU:0"):
        with tf.device(name):
            bench.observe("tnp.ones under " + name, device(tnp.ones(2)))
            bench.observe("tnp.copy under " + name, device(tnp.copy(on_cpu)))


def device(array):
    """Return the device of an array, by kind and number.

    Arrays of 2.4 have no device, but their tensors have one.
    """
    full = getattr(array, "device", None) or array.data.device
    return full.split("device:")[-1]


def dtype(array):
    """Return NumPy's name for the type of an array."""
    return getattr(array.dtype, "name", str(array.dtype))


def dtype_or_error(make):
    """Return the type of `make`'s result, or the class of its error."""
    failure = catch_error(make)
    return failure.error if failure.says else dtype(make())


EXPERIMENTS = {
    "promotion": promotion,
    "literals": literals,
    "prefer_float32": literals,
    "broadcasting": broadcasting,
    "indexing": indexing,
    "assignment": assignment,
    "interoperation": interoperation,
    "devices": devices,
}

if __name__ == "__main__":
    main(scenario)

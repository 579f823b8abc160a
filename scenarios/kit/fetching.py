"""Waits for the results of work that continues after the call that requested it."""

from .placement import device_of, leaves

# Extracting one element costs 0.1 ms, most of it Python; meanwhile a GPU copies about this many elements.
SMALL = 65536


def fetch(value):
    """Wait until every tensor in `value` is on the host, whole."""
    if isinstance(value, (list, tuple)):
        for item in value:
            fetch(item)
    elif isinstance(value, dict):
        for item in value.values():
            fetch(item)
    elif hasattr(value, "numpy"):
        value.numpy()
    elif hasattr(getattr(value, "data", None), "numpy"):  # 2.4's arrays of the NumPy API are no tensors: they hold one
        value.data.numpy()


def fetch_one(value):
    """Wait until one element of every tensor in `value` is on the host; for small tensors, all elements.

    A GPU works through its queue in order, so the element, which takes one more kernel, comes after all earlier work.
    Copying whole matrices would take milliseconds and be part of the measurement.
    """
    for leaf in leaves(value):
        tensor = leaf if hasattr(leaf, "numpy") else getattr(leaf, "data", None)
        if hasattr(tensor, "numpy"):
            element(tensor).numpy()


def element(tensor):
    """The first element of a large tensor or variable in a GPU's memory; of any other one all of it."""
    shape = getattr(tensor, "shape", None)
    if hasattr(shape, "num_elements") and (shape.num_elements() or 0) > SMALL and "GPU:" in device_of(tensor):
        return tensor[(0,) * shape.ndims]
    return tensor

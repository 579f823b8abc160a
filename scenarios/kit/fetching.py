"""Waiting for the results of work that goes on when the call that asked for it has returned."""

from .placement import device_of, leaves

# To take one element out costs 0.1 ms, most of it Python; a GPU has copied about so many elements by then.
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
    """Wait until one element of every tensor in `value` is on the host; of small tensors all of them.

    A GPU works its queue off in order, so the element, which one more kernel takes, comes after all that was asked for
    before; whole matrices would take milliseconds, and be measured with the work.
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

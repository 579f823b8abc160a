"""Waits for the results of work that continues after the call that requested it."""

from .placement import device_of, leaves

# Extracting one element takes 0.1 ms, mostly in Python. In that time, a GPU copies about this many elements.
SMALL = 65536


def fetch(value):
    """Wait until all elements of every tensor in `value` are on the host."""
    if isinstance(value, (list, tuple)):
        for item in value:
            fetch(item)
    elif isinstance(value, dict):
        for item in value.values():
            fetch(item)
    elif hasattr(value, "block_until_ready"):  # an array of JAX
        value.block_until_ready()
    elif hasattr(value, "detach"):  # a tensor of PyTorch, whose work on a CPU ends with the call
        pass
    elif hasattr(value, "numpy"):
        value.numpy()
    elif hasattr(getattr(value, "data", None), "numpy"):  # in 2.4, an array of the NumPy API contains a tensor
        value.data.numpy()


def fetch_one(value):
    """Wait until one element of every tensor in `value` is on the host; for small tensors, all elements.

    Extracting the element takes one more kernel. A GPU works through its queue in order, so the element arrives after
    all earlier work. Copying whole matrices would take milliseconds, which would be part of the measured time.
    """
    for leaf in leaves(value):
        tensor = leaf if hasattr(leaf, "numpy") else getattr(leaf, "data", None)
        if hasattr(tensor, "numpy"):
            element(tensor).numpy()


def element(tensor):
    """Return the first element of a large tensor or variable in a GPU's memory, and any other value unchanged."""
    shape = getattr(tensor, "shape", None)
    if hasattr(shape, "num_elements") and (shape.num_elements() or 0) > SMALL and "GPU:" in device_of(tensor):
        return tensor[(0,) * shape.ndims]
    return tensor

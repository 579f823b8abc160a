"""The scenario of a first start: the GPU's driver compiles the code of an image, before any scenario runs there."""

import tensorflow  # noqa: F401, its device is initialized below


def scenario(bench):
    """Initialize the device. The driver compiles in the phase "first fill"."""
    bench.device()
    bench.observe("first start", "finished")

"""The step of scenarios/keras_step.py as an asv benchmark: the scenario makes the step, and asv times it."""

import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scenarios"))

import keras_step
from kit import device
from kit.settings import keep_freed_memory


class Ready(Exception):  # noqa: N818, no error: it ends the scenario where its step would be measured
    """Raised when the scenario has built its step and made its first call, with the step to measure."""

    def __init__(self, step):
        super().__init__()
        self.step = step


class Handover:
    """Replaces the kit's `bench` for the scenario, and does the same until the measurement."""

    device_name = "cpu"
    document = False

    def phase(self, name):
        """Run a part of the launch without timing it."""
        return nullcontext()

    def device(self):
        """Initialize TensorFlow's device like the kit."""
        device.initialize()

    def measure(self, step, **_):
        """End the scenario by raising Ready."""
        raise Ready(step)


class KerasStep:
    """The scenario's defaults: small model, small data, float32 NumPy arrays, tf.keras."""

    step = None

    def setup(self):
        """Make the step once per process. asv calls this before every sample, and making a model takes a second."""
        if self.step is not None:
            return
        keep_freed_memory()  # as in the suite `quick` of harness
        import tensorflow as tf  # noqa: PLC0415, asv imports this file to look for benchmarks as well

        try:
            # each release in its default mode
            keras_step.scenario(Handover(), mode="eager" if tf.executing_eagerly() else "graph")
        except Ready as ready:
            self.step = ready.step

    def time_train_on_batch(self):
        """Call `train_on_batch` once."""
        self.step()

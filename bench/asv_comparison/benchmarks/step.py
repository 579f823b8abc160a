"""The step of scenarios/keras_step.py as an asv benchmark: made by the scenario itself, timed by asv."""

import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scenarios"))

import keras_step
from kit import device
from kit.settings import keep_freed_memory


class Ready(Exception):  # noqa: N818, no error: it ends the scenario where its step would be measured
    """The scenario has built its step, made its first call, and hands the step over to be measured."""

    def __init__(self, step):
        super().__init__()
        self.step = step


class Handover:
    """What the scenario is given as its `bench`: it does all that the kit's does up to the measurement."""

    device_name = "cpu"
    document = False

    def phase(self, name):
        """A part of the launch, which nobody times here."""
        return nullcontext()

    def device(self):
        """Initialise TensorFlow's device, as the kit does."""
        device.initialise()

    def measure(self, step, **_):
        """End the scenario; raises Ready."""
        raise Ready(step)


class KerasStep:
    """Small model, small data, float32 NumPy arrays, tf.keras: what the scenario's own defaults are."""

    step = None

    def setup(self):
        """Make the step, once a process: asv calls this again before every sample, and a model takes a second."""
        if self.step is not None:
            return
        keep_freed_memory()  # as the harness's suite `quick` has it
        import tensorflow as tf  # noqa: PLC0415, asv imports this file to look for benchmarks as well

        try:
            # each release in its default mode
            keras_step.scenario(Handover(), mode="eager" if tf.executing_eagerly() else "graph")
        except Ready as ready:
            self.step = ready.step

    def time_train_on_batch(self):
        """One call of `train_on_batch`."""
        self.step()

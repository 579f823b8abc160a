"""The kit runs a scenario inside an environment, and has all of the timing code.

It runs on every Python from 3.6 on, with the standard library only. Only the parts that scenarios share (constant
inputs, and the models of the source documents) need NumPy and TensorFlow. `python -m kit JOB.json`, started in the
folder that contains `kit/`, is the worker (see `worker.py`). `main(scenario)` at the end of a scenario's file runs the
scenario without harness.
"""

from .byhand import main
from .fixed import digits, fixed_batch, fixed_outputs, fixed_weights
from .loops import training_loops
from .numpy_model import NumpyModel
from .outcome import NotAvailable
from .power import fixed_matrix, power_of
from .raised import catch_error
from .releases import eager_switch, eager_tensorflow, numpy_tensorflow, version
from .traced import traced_calls

__all__ = [
    "NotAvailable",
    "NumpyModel",
    "catch_error",
    "digits",
    "eager_switch",
    "eager_tensorflow",
    "fixed_batch",
    "fixed_matrix",
    "fixed_outputs",
    "fixed_weights",
    "main",
    "numpy_tensorflow",
    "power_of",
    "traced_calls",
    "training_loops",
    "version",
]

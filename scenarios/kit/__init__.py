"""The kit: what runs a scenario inside an environment, and the only place that holds timing code.

It runs on every Python from 3.6 on and needs nothing but the standard library, and NumPy where a scenario asks for
`fixed_outputs`. `python -m kit JOB.json`, started in the folder that holds `kit/`, is the worker (see `worker.py`);
`main(scenario)` at the end of a scenario's file is the way to run it by hand.
"""

from .byhand import main
from .fixed import fixed_outputs
from .outcome import NotAvailable

__all__ = ["NotAvailable", "fixed_outputs", "main"]

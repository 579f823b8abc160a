"""A substitute for the kit, which is one folder up, if a scenario of `scenarios/upstream/` is run without harness.

Python searches for modules in the folder of the file that it runs. In a launch, this folder contains the kit itself.
"""

import os
import sys

_UPSTREAM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(_UPSTREAM))
# an import returns the entry that its module leaves in sys.modules
del sys.modules[__name__]
__import__(__name__)

"""A substitute for the kit, which is one folder up, if a scenario of `scenarios/upstream/` is run without harness.

Python looks beside the file that it runs. In a launch the kit itself lies there.
"""

import os
import sys

_UPSTREAM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(_UPSTREAM))
# an import gives what its module leaves in sys.modules
del sys.modules[__name__]
__import__(__name__)

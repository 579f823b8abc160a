"""The folder that contains the data files of harness: docker-bake.hcl, images/, scenarios/ and templates/."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"

#: Whether harness was installed from a wheel. A wheel contains the files as package data (hatch_build.py), and a
#: checkout has them in its top folder.
IS_INSTALLED = _DATA.is_dir()

FOLDER = _DATA if IS_INSTALLED else _PACKAGE.parent


def load_kit_module(name: str) -> ModuleType:
    """Load a module of the kit that doesn't measure: `marks`, `names` or `own_code`, which only import each other.

    It is harness's own kit, because the kit of another project is somebody's code.
    """
    package = ModuleType("harness_kit")
    package.__path__ = [str(FOLDER / "scenarios" / "kit")]
    sys.modules.setdefault(package.__name__, package)  # without running the kit's own __init__.py
    return importlib.import_module(f"{package.__name__}.{name}")

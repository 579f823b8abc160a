"""The folder that contains the data files of harness: docker-bake.hcl, images/, scenarios/ and templates/."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"

#: Whether harness was installed from a wheel. A wheel contains the files as package data (hatch_build.py), and a
#: checkout has them in its top folder.
IS_INSTALLED = _DATA.is_dir()

FOLDER = _DATA if IS_INSTALLED else _PACKAGE.parent


@cache
def load_kit_module(name: str) -> ModuleType:
    """Load a module of the kit that imports nothing else of the kit: `marks`, `names` or `own_code`.

    It is harness's own kit, because the kit of another project is somebody's code.
    """
    path = FOLDER / "scenarios" / "kit" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"harness_kit_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

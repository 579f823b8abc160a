"""`harness scenarios new`: the file that a new scenario begins as."""

import json
import keyword
import sys
from pathlib import Path

from harness.model.errors import CannotRunHereError, UsageError

#: Names whose file would hide a module that scenarios import.
_TAKEN = {"kit", "numpy", "tensorflow", "keras", "tf_keras", *sys.stdlib_module_names}


def write(name: str, title: str, folder: Path, *, make: bool = False) -> Path:
    """Write the skeleton of the scenario `name` and return its path; `make` the folder where there is none.

    Raises UsageError for a name that cannot be one, or where the file is there already, and CannotRunHereError where it
    cannot be written.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise UsageError(f"{name!r} is no name for a scenario.", "It is one for a Python module, such as keras_step.")
    if name in _TAKEN:
        raise UsageError(f"A scenario {name!r} would hide the module of that name.", "Give it another name.")
    path = folder / f"{name}.py"
    text = _skeleton(name, title or name.replace("_", " ").capitalize())
    try:
        if make and not folder.exists():
            folder.mkdir()
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already.", "Give the scenario another name, or edit that file.") from None
    except OSError as error:
        raise CannotRunHereError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _skeleton(name: str, title: str) -> str:
    from harness.report.templates import environment

    # a text of JSON is one of TOML
    template = environment(str).get_template("scenario.py.j2")
    return template.render(name=name, title=json.dumps(title, ensure_ascii=False))

"""Reads the programs in scripts, notebooks, and texts such as saved issues."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import UsageError
from harness.scenarios import notebooks
from harness.scenarios.links import suggest_download
from harness.scenarios.pasted import find_programs
from harness.scenarios.script_files import TAKEN
from harness.toml import read_file

#: The names of Python files end like this. A file with another name can be a text with code.
_PYTHON_FILES = {".py", ".pyw"}


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """The contents of a script's file.

    - `name`: its name as a Python file; `programs`: the texts of its programs by their first lines, at least one
    - `sentences`: what is omitted; `compares`: whether the text around two programs compares them
    - `is_command`: the text is a shell command that runs the program
    """

    name: str
    programs: Mapping[int, str]
    sentences: Sequence[str]
    compares: bool = False
    is_command: bool = False


def read(path: Path) -> ScriptSource:
    """Return the programs in a script, a notebook, or a text such as a saved issue. Raises UsageError and FileError."""
    text = read_file(path).removeprefix("\ufeff")
    stem = re.sub(r"[^\w.-]", "_", path.stem, flags=re.ASCII)
    # in a launch, a file with the name of a module would hide the module
    name = f"script_{stem}.py" if stem in TAKEN | sys.stdlib_module_names else f"{stem}.py"
    if notebooks.is_notebook(path):
        program, sentences = notebooks.convert_notebook(text, path)
        return ScriptSource(name, {1: program}, sentences)
    if all(line.lstrip().startswith("#") or not line.strip() for line in text.split("\n")):
        raise UsageError(f"{path} has no code to measure.", "Save the file, or pass another one.")
    pasted = find_programs(text, is_python=path.suffix.lower() in _PYTHON_FILES)
    if not pasted.programs:
        raise UsageError(f"{path} contains no Python code.", suggest_download(text))
    programs, sentences = dict[int, str](), list(pasted.sentences)
    for block in pasted.programs:
        programs[block.first], omitted = notebooks.convert_program(block.format(text.count("\n") + 1), text, path)
        sentences += omitted
    return ScriptSource(name, programs, sentences, pasted.compares, pasted.programs[0].is_command)

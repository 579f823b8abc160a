"""Reads the programs in scripts, notebooks, and texts such as saved issues."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import UsageError
from harness.model.texts import joined
from harness.package_data import load_kit_module
from harness.scenarios import notebooks
from harness.scenarios.links import suggest_download
from harness.scenarios.pasted import find_error, find_programs, mask
from harness.scenarios.script_files import TAKEN
from harness.toml import read_file

#: The names of Python files end like this. A file with another name can be a text with code.
_PYTHON_FILES = {".py", ".pyw"}

#: The statement `print` of Python 2.
_PRINT = re.compile(r"(?P<indent>\s*)print (?P<values>.*?)(?P<comment>\s+#.*)?")

#: A call that places operations on a GPU. TensorFlow 1 then fails without a GPU.
_DEVICE = re.compile(r"(?i)(\bdevice\(\s*['\"])/(?:device:)?gpu:\d+")


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """The contents of a script's file.

    - `name`: its name as a Python file; `programs`: the texts of its programs by their first lines, at least one
    - `sentences`: what is omitted; `compares`: whether the text around two programs compares them
    - `is_command`: the text is a shell command that runs the program, or only imports modules
    """

    name: str
    programs: Mapping[int, str]
    sentences: Sequence[str]
    compares: bool = False
    is_command: bool = False


def read(path: Path, *, on_gpu: bool = False) -> ScriptSource:
    """Return the programs in a script, a notebook, or a text such as a saved issue. Raises UsageError and FileError.

    In a text, a program that must run on a GPU is changed if it isn't measured on one (not `on_gpu`).
    """
    text = read_file(path).removeprefix("\ufeff")
    stem = re.sub(r"[^\w.-]", "_", path.stem, flags=re.ASCII)
    # in a launch, a file with the name of a module would hide the module
    name = f"script_{stem}.py" if stem in TAKEN | sys.stdlib_module_names else f"{stem}.py"
    if notebooks.is_notebook(path):
        program, sentences = notebooks.convert_notebook(text, path)
        return ScriptSource(name, {1: program}, sentences)
    if all(line.lstrip().startswith("#") or not line.strip() for line in text.split("\n")):
        raise UsageError(f"{path} has no code to measure.", "Save the file, or pass another one.")
    is_python = path.suffix.lower() in _PYTHON_FILES
    pasted = find_programs(text, is_python=is_python)
    if not pasted.programs:
        raise UsageError(f"{path} contains no Python code.", suggest_download(text))
    programs, sentences = dict[int, str](), list(pasted.sentences)
    for block in pasted.programs:
        program = block.format(text.count("\n") + 1)
        program, changes = (program, list[str]()) if is_python else _complete(program, block.first, on_gpu=on_gpu)
        programs[block.first], omitted = notebooks.convert_program(program, text, path)
        sentences += [*changes, *omitted]
    own_code = load_kit_module("own_code")
    is_import = not is_python and all(own_code.kind(program) == own_code.IMPORTS for program in programs.values())
    return ScriptSource(name, programs, sentences, pasted.compares, is_import or pasted.programs[0].is_command)


def _complete(program: str, first: int, *, on_gpu: bool) -> tuple[str, list[str]]:
    """Return a pasted program for Python 3 and this device, with its usual imports, and sentences about the changes.

    The imports are above the first line of code, so that each line of code keeps its number.
    """
    lines = [_convert_print(line) for line in program.split("\n")]
    printed = [str(number) for number, line in enumerate(program.split("\n"), 1) if line != lines[number - 1]]
    sentence = (
        "Python 2's print runs as print(...) in {} {}. Other differences aren't converted, such as integer division."
    )
    sentences = [sentence.format("lines" if len(printed) > 1 else "line", joined(printed))] if printed else []
    definitions = load_kit_module("names").complete("\n".join(mask(lines)[0]))
    if definitions and first > 1 and not re.search(r"(?m)^\s*from __future__ ", program):
        lines[first - 2] = "; ".join(definitions)
        sentences.append(f"Added above line {first}, because the text doesn't have it: {lines[first - 2]}")
    masked, error = mask(lines)
    if guard := load_kit_module("own_code").wrong_guard("\n".join(masked)) if error is None else None:
        number, name = guard
        lines[number - 1] = lines[number - 1].replace(name, "__main__")
        sentences.append(f"Line {number} has {name!r}, but a program is named '__main__', so this line is corrected.")
    numbers = [number for number, line in enumerate(lines, 1) if not on_gpu and _DEVICE.search(line)]
    for number in numbers:
        lines[number - 1] = _DEVICE.sub(r"\1/cpu:0", lines[number - 1])
    if numbers:
        places = f"{'lines' if len(numbers) > 1 else 'line'} {joined(list(map(str, numbers)))}"
        sentences.append(f"Without --gpu, '/cpu:0' replaces the GPU in {places}. So the numbers aren't about a GPU.")
    return "\n".join(lines), sentences


def _convert_print(line: str) -> str:
    """Return a line with `print(...)` instead of Python 2's statement, if the result is valid."""
    match = _PRINT.fullmatch(line)
    fixed = f"{match['indent']}print({match['values']}){match['comment'] or ''}" if match else line
    return fixed if find_error([line.strip()]) is not None and find_error([fixed.strip()]) is None else line

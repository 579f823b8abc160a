"""Checks that need only a script's text: names, modules, files, and TensorFlow 1. They find errors before a launch."""

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from harness.model.errors import FileError, Problem
from harness.model.texts import joined
from harness.package_data import load_kit_module
from harness.scenarios.notebooks import is_notebook

#: Modules that every environment has. Newer versions of Python than an environment's removed some of them.
_PRESENT = {"tensorflow", "tensorflow_core", "kit", "imp", "distutils", "asyncore", "cgi", "pipes", "pkg_resources"}

#: The advice for a script that needs TensorFlow 1, if there is another way.
V1_ADVICE = "To run the script through tensorflow.compat.v1, pass --compat-v1"

#: The need of a cell: the requirements, the reason and the advice, as in [[tool.harness.needs]].
ScriptNeed = tuple[Sequence[str], str, str]


def make_problem(path: Path, text: str, line: int, sentence: str, fix: str = "") -> Problem:
    """Return a problem in a line of a script's text. In a notebook, the line is counted in its cell."""
    lines = text.split("\n")[:line] if is_notebook(path) else []
    for index, comment in reversed([*enumerate(lines)]):
        if re.fullmatch(r"# cell \d+", comment):
            return Problem(path, 0, f"{comment[2:]}, line {line - index - 1}: {sentence}", fix)
    return Problem(path, line, sentence, fix)


def check_names(path: Path, text: str, files: Collection[str]) -> list[str]:
    """Raise FileError for names and files that a script uses although they don't exist.

    `files` are the names of the files that launches get. A problem in a function, or under a condition, may never
    occur: these problems are returned as sentences.
    """
    kit = load_kit_module("names")
    names = kit.read(text)
    problems = {name: _describe_name(name, path, text, line) for name, line in names.undefined.items()}
    for module, line in names.modules.items():
        if module in kit.MOVED:
            fix = f"Write {kit.MOVED[module]}."
            problems[module] = make_problem(path, text, line, f"Only Python 2 has the module {module}.", fix)
    folder = path.absolute().parent
    for name, line in names.files.items():
        # a file that the text names twice can be written before it is read
        is_written = text.count(Path(name).name) > 1
        if not is_written and Path(name).name not in files and (name.startswith("/") or not (folder / name).exists()):
            fix = f"Launches can't read other files of this machine. Copy the file next to {path.name}, and read it as "
            fix += f"{Path(name).name!r}." if name.startswith("/") else f"{name!r}, or pass it: --with PATH/{name}"
            problems[name] = make_problem(path, text, line, f"The file {name!r} is missing.", fix)
    certain = [problem for name, problem in problems.items() if name in names.certain]
    if certain:
        raise FileError(certain)
    return list(map(str, problems.values()))


def _describe_name(name: str, path: Path, text: str, line: int) -> Problem:
    kit = load_kit_module("names")
    if name in kit.RENAMED:
        return make_problem(path, text, line, f"Only Python 2 has `{name}`.", f"Write {kit.RENAMED[name]}.")
    is_module = name in kit.PACKAGES or name in sys.stdlib_module_names
    code = kit.ALIASES.get(name) or (f"import {name}" if is_module else "")
    fix = f"Add this line to its start: {code}" if code else "Add its definition."
    return make_problem(path, text, line, f"`{name}` is defined nowhere in the script.", fix)


def list_needs(text: str, present: Collection[str], *, strict: bool, compat_v1: bool) -> Iterator[ScriptNeed]:
    """Yield what an environment must have for a script: TensorFlow 1, and the packages of imported modules.

    `present` are the modules beside the script. If an environment isn't in the catalog, its packages can contain
    modules with other names. So only modules of well-known packages are needed, unless `strict`. With `compat_v1`, only
    names that `tensorflow.compat.v1` doesn't have need TensorFlow 1.
    """
    kit = load_kit_module("names")
    names = kit.read(text)
    missing = [name for name in names.v1 if ".contrib" in name or ".examples" in name]
    if missing or (names.v1 and not compat_v1):
        shown = joined([f"`{name}` (line {line})" for name, line in [*names.v1.items()][:3]])
        advice = (
            f"tensorflow.compat.v1 doesn't have {missing[0]} either. Use TensorFlow 1: -e tf1.15"
            if missing
            else V1_ADVICE
        )
        yield ["tensorflow<2"], f"TensorFlow 2 doesn't have {shown}", advice
    present = _PRESENT | sys.stdlib_module_names | {*present}
    for module, line in names.modules.items():
        package = kit.PACKAGES.get(module, "")
        if module not in names.certain or module in present or not (package or (strict and module.isascii())):
            continue
        reason = f"line {line} imports {module}, which the environment doesn't have"
        own = f"If {module} is your own file or folder, pass it: --with {module}.py. If it is a package, pass -e "
        yield [package or module.strip("_")], reason, "" if package else f"{own}NAME+{module}"


def convert_to_compat(text: str) -> str:
    """Return a script for TensorFlow 1 that runs through `tensorflow.compat.v1`, with the behavior of version 2 off.

    Only imports of `tensorflow` itself change. Lines keep their numbers.
    """
    turn_off = '__import__("tensorflow.compat.v1").compat.v1.disable_v2_behavior(); '
    text = re.sub(r"(?m)^(\s*)from tensorflow import\b", rf"\1{turn_off}from tensorflow.compat.v1 import", text)
    return re.sub(
        r"(?m)^(\s*)(import (?:[\w. ]+, *)*)tensorflow(?: as (\w+))?(?![\w.])",
        lambda match: f"{match[1]}{turn_off}{match[2]}tensorflow.compat.v1 as {match[3] or 'tensorflow'}",
        text,
    )

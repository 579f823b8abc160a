"""Converts Jupyter notebooks to plain scripts: the code cells in order, with a comment `# cell N` before each."""

import ast
import re
from pathlib import Path
from typing import Any

from harness.files import parse_json
from harness.model.errors import FileError, Problem
from harness.package_data import load_kit_module
from harness.scenarios.pasted import NOTEBOOK_LINE, find_error

#: Line magics that only affect the notebook's page. Later lines don't need them.
_OMITTED = {
    "matplotlib",
    "config",
    "load_ext",
    "reload_ext",
    "autoreload",
    "tensorboard",
    "tensorflow_version",
    "pylab",
}

#: Line and cell magics that time code. In a script, the kit's module `magics` does their work.
_TIMING_MAGICS = {"time", "timeit"}
_MAGICS = '__import__("kit.magics").magics'

#: Cell magics that are removed, so that the code of the cell runs without them.
_REMOVED_MAGICS = {"capture"}

#: A line that installs packages; the group contains them.
_PIP = re.compile(r"(?m)^[\w\t =]*(?:!!?|%)[ \t]*(?:python3? -m )?pip3? install[ \t]+(.*)")
_TENSORFLOW = re.compile(r"(?:tensorflow|tf-nightly)\b")

#: Shell commands that usually download files.
_DOWNLOADERS = {"wget", "curl", "git", "gdown"}

_TIMEIT = re.compile(r"\s*(?P<options>(?:-(?:[nr]\s*\d+|[qotc])\s+)*)(?P<statement>.*)", re.DOTALL)

#: Modules that work only in a notebook.
_PAGE_MODULES = ("ipywidgets.", "IPython.", "google.colab.")


def is_notebook(path: Path) -> bool:
    """Return whether a file has the name of a notebook."""
    return path.suffix.lower() == ".ipynb"


def convert_notebook(text: str, path: Path) -> tuple[str, list[str]]:
    """Return a notebook's code cells as a script, and a sentence about each line that is omitted.

    Cell numbers start at 1 and include text cells, as in the notebook. Raises FileError with every line that can't run
    outside a notebook, and with advice for each line.
    """
    cells = _read_cells(text, path)
    install_advice = _suggest_environment("\n".join(source or "" for source in cells))
    parts, sentences, problems = [], [], []
    for number, source in enumerate(cells, 1):
        if source is None:
            continue
        cell = f"cell {number}"
        lines, omitted, faults = _convert_cell(source, cell, install_advice)
        parts.append(f"# {cell}\n" + "\n".join(lines).rstrip() + "\n")
        sentences += [f"{cell}: {sentence}" for sentence in omitted]
        faults += [(0, message, advice) for message, advice in _find_page_problems(lines)]
        problems += [Problem(path, 0, f"{cell}: {message}", advice) for _, message, advice in faults]
    if problems:
        raise FileError([*problems, *(Problem(path, 0, sentence) for sentence in sentences)])
    return "".join(parts), sentences


def _suggest_environment(text: str) -> str:
    """Return the advice to pass all packages that the lines of a notebook install with pip as one environment."""
    words = [word.strip("'\"") for installed in _PIP.findall(text) for word in installed.split()]
    packages = [word for word in dict.fromkeys(words) if not word.startswith("-")]
    packages.sort(key=lambda name: not _TENSORFLOW.match(name))
    if not packages or not _TENSORFLOW.match(packages[0]):
        packages.insert(0, "tensorflow==2.15.0")
    return f"Remove this line, and pass the packages as an environment: -e '{','.join(packages)}'"


def convert_program(program: str, text: str, path: Path) -> tuple[str, list[str]]:
    """Return a program in a pasted text as plain Python, and a sentence about each line that is omitted.

    The magics of IPython and pasted output are converted as in a notebook. Raises FileError with every line that only a
    notebook can run.
    """
    lines, omitted, faults = _convert_cell(program, "", _suggest_environment(text))
    if faults:
        raise FileError([Problem(path, *fault) for fault in faults])
    return "\n".join(lines), omitted


def make_time_patterns(text: str) -> list[str]:
    """Return the regular expressions for the times that the timing magics of a converted script print."""
    quoted = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    labels = re.findall(rf"{re.escape(_MAGICS)}\.(?:timeit|Timed)\({quoted}", text)
    return [rf"^{re.escape(ast.literal_eval(label))}: (\S+)" for label in dict.fromkeys(labels)]


def _read_cells(text: str, path: Path) -> list[str | None]:
    """Return the text of each code cell, and None for other cells. Raises FileError for an invalid notebook."""
    try:
        document: Any = parse_json(text)
        # a source is a text, or a list of its lines
        return ["".join(cell["source"]) if cell["cell_type"] == "code" else None for cell in document["cells"]]
    except (ValueError, TypeError, KeyError, IndexError):
        raise FileError(
            [Problem(path, 0, "This is not a Jupyter notebook.", "Pass a notebook or a Python file.")]
        ) from None


def _convert_cell(
    source: str, cell: str, install_advice: str
) -> tuple[list[str], list[str], list[tuple[int, str, str]]]:
    """Return a cell's lines as Python, sentences about omitted lines, and problems: line number, message and advice.

    Only a line with a syntax error is treated as a magic. So a string that looks like a magic is never replaced.
    """
    lines, omitted, problems = source.split("\n"), list[str](), list[tuple[int, str, str]]()
    magic = re.match(r"%%(\w+)", source)
    magic_line = lines[0]
    if magic:
        if magic[1] not in _TIMING_MAGICS | _REMOVED_MAGICS:
            return [], [], [(1, f"`{magic_line}` is not Python.", "Remove the cell, or write it in Python.")]
        lines[0] = ""
        if magic[1] in _REMOVED_MAGICS:
            omitted.append(_describe_omitted(magic_line))
    for _ in range(len(lines)):
        index = find_error(lines)
        if index is None:
            break
        line, match = lines[index], NOTEBOOK_LINE.fullmatch(lines[index])
        if match is None:
            break  # an error of the script itself, which appears when it runs
        prefix, name, argument = match["prefix"], match["name"], (match["argument"] or "").strip()
        lines[index] = f"{match['indent']}pass"
        if match["output"]:
            omitted.append(f"`{line.strip()}` is omitted: it is pasted output, and not code.")
        elif match["help"] or (prefix == "%" and name in _OMITTED):
            omitted.append(_describe_omitted(line.strip()))
        elif prefix == "%" and name in _TIMING_MAGICS and argument:
            label = f"{cell or f'line {index + 1}'}: %{name}"
            lines[index] = match["indent"] + _convert_line_magic(name, argument, label, match["target"] or "")
        else:
            advice = install_advice if _PIP.match(line) else _suggest_replacement(name)
            problems.append((index + 1, f"`{line.strip()}` works only in a notebook.", advice))
    if magic and magic[1] in _TIMING_MAGICS:
        lines = _convert_cell_magic(magic[1], magic_line, lines[1:], cell)
    return lines, omitted, problems


def _describe_omitted(line: str) -> str:
    return f"`{line}` is omitted, because it only affects the notebook's page."


def _convert_line_magic(name: str, argument: str, label: str, target: str) -> str:
    """Return a line of Python that does the work of a line magic: it times a statement. `target` is such as `x = `."""
    if name == "time":
        return f"with {_MAGICS}.Timed({_make_label(label, argument)!r}): {target}{argument.strip()}"
    options, statement = _parse_options(argument)
    return f"{target}{_MAGICS}.timeit({_make_label(label, statement)!r}, {statement!r}, globals(){options})"


def _convert_cell_magic(name: str, magic_line: str, body: list[str], cell: str) -> list[str]:
    """Return the lines of a cell that is timed as a whole. Lines of code keep their numbers."""
    label = f"{cell}: %%{name}" if cell else f"%%{name}"
    full_label = _make_label(label, next((line for line in body if line.strip()), ""))
    if name == "time":
        timer = "__harness_time__"
        return [f"{timer} = {_MAGICS}.Timed({full_label!r}); {timer}.__enter__()", *body, f"{timer}.__exit__()"]
    options, setup = _parse_options(magic_line.removeprefix("%%timeit"))
    statement, setup_argument = "\n".join(body).strip("\n"), f", setup={setup!r}" if setup else ""
    return [f"{_MAGICS}.timeit({full_label!r}, {statement!r}, globals(){options}{setup_argument})", *[""] * len(body)]


def _parse_options(text: str) -> tuple[str, str]:
    """Return the options of %timeit as keyword arguments, and the statement after them."""
    match = _TIMEIT.fullmatch(text)
    assert match is not None, "every text matches"
    numbers = dict(re.findall(r"-([nr])\s*(\d+)", match["options"]))
    keywords = {"n": "number", "r": "repeat"}
    statement = match["statement"].strip()
    if find_error(statement.split("\n")) is not None:  # people write results behind `//`
        statement = re.split(r"\s//\s", statement)[0].strip()
    return "".join(f", {keywords[flag]}={int(number)}" for flag, number in numbers.items()), statement


def _make_label(label: str, statement: str) -> str:
    """Return the name of a timed statement: `cell 2: %timeit layer(x)`."""
    words = " ".join(statement.split())
    return f"{label} {words[:60]}{'...' if len(words) > 60 else ''}".rstrip()


def _suggest_replacement(command: str) -> str:
    if command in _DOWNLOADERS:
        return "Remove this line: a launch has no network. Download the file first, and pass it with --with FILE."
    return "Remove this line, or write it in Python."


def _find_page_problems(lines: list[str]) -> list[tuple[str, str]]:
    """Return the problems of a cell that uses widgets or functions of IPython, each with advice."""
    tree = load_kit_module("names").parse("\n".join(lines))
    nodes = list(ast.walk(tree)) if tree else []
    imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    page_modules = [name for name in imported if f"{name}.".startswith(_PAGE_MODULES)]
    if page_modules:
        return [(f"`{name}` works only in a notebook.", "Remove the code that uses it.") for name in page_modules]
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return [
        (f"`{name}()` works only in a notebook.", "Remove this call, or print its result.")
        for name in sorted(called & {"display", "get_ipython"})
    ]

"""Jupyter notebooks as plain scripts: their code cells, one after the other, with a comment `# cell N` before each."""

import ast
import re
import warnings
from pathlib import Path
from typing import Any

from harness.files import parse_json
from harness.model.errors import FileError, Problem

#: Line magics that show or change something in the notebook only. Later lines don't need them.
_SHOWN = {"matplotlib", "config", "load_ext", "reload_ext", "autoreload", "tensorboard", "tensorflow_version", "pylab"}

#: Line and cell magics that time the code after them. The code is run without them.
_TIMED, _PLAIN_CELLS = {"time"}, {"time", "capture"}

#: Modules that work in a notebook only.
_PAGE = {"ipywidgets", "IPython", "google.colab"}

_SHELL = re.compile(r"(?P<indent>\s*)(?:[\w, ]+=\s*)?(?P<what>!!?|%)\s*(?P<rest>.*)")
_HELP = re.compile(r"\s*(\?{1,2}\s*[\w.]+|[\w.]+\s*\?{1,2})\s*(#.*)?")
_PIP = re.compile(r"(?:python3? -m )?pip3? install\s+(?P<what>.*)")


def is_notebook(path: Path) -> bool:
    """Return whether a file has the name of a notebook."""
    return path.suffix.lower() == ".ipynb"


def script(text: str, path: Path) -> tuple[str, list[str]]:
    """Return a notebook's code cells as a script, and a sentence about each line that is left out.

    Cell numbers start at 1 and include text cells, as in the notebook. Raises FileError with every line that can't run
    outside of a notebook, and the replacement.
    """
    cells = _cells(text, path)
    parts, sentences, problems = [], [], []
    for number, source in enumerate(cells, 1):
        if source is None:
            continue
        lines, left, wrong = _plain(source)
        parts.append(f"# cell {number}\n" + "\n".join(lines).rstrip() + "\n")
        sentences += [
            f"cell {number}: `{line}` is omitted, because it only affects the notebook's page." for line in left
        ]
        problems += [Problem(path, 0, f"cell {number}: {what}", fix) for what, fix in [*wrong, *_of_page(lines)]]
    if problems:
        raise FileError(problems)
    return "".join(parts), sentences


def _cells(text: str, path: Path) -> list[str | None]:
    """Return the text of each code cell, and None for other cells. Raises FileError for an invalid notebook."""
    try:
        document: Any = parse_json(text)
        # format 3 had sheets of cells, with their text in `input`
        listed = document["cells"] if "cells" in document else document["worksheets"][0]["cells"]
        return [_source(cell) if cell["cell_type"] == "code" else None for cell in listed]
    except (ValueError, TypeError, KeyError, IndexError):
        raise FileError(
            [Problem(path, 0, "This is not a Jupyter notebook.", "Pass a notebook or a Python file.")]
        ) from None


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", cell.get("input", ""))
    return "".join(source) if isinstance(source, list) else str(source)


def _plain(source: str) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Return a cell's lines as Python, the lines that are left out, and the problems of others with a fix.

    Only a line with a syntax error can be a magic. So a text that looks like a magic is never replaced.
    """
    lines, left, wrong = source.split("\n"), [], []
    magic = re.match(r"%%(\w+)", source)
    if magic:
        if magic[1] not in _PLAIN_CELLS:
            return [], [], [(f"`{lines[0]}` is not Python.", "Remove the cell, or write it in Python.")]
        left.append(lines[0])
        lines[0] = ""
    for _ in range(len(lines)):
        at = _stops_at(lines)
        if at is None:
            break
        line, shell = lines[at], _SHELL.fullmatch(lines[at])
        if shell is None and not _HELP.fullmatch(line):
            break  # an error of the script itself, which appears when it runs
        name, _, rest = (shell["rest"] if shell else "").partition(" ")
        indent = shell["indent"] if shell else ""
        if shell and shell["what"] == "%" and name in _TIMED and rest:
            lines[at] = indent + rest
            continue
        lines[at] = f"{indent}pass"
        if shell is None or (shell["what"] == "%" and name in _SHOWN):
            left.append(line.strip())
        else:
            wrong.append((f"`{line.strip()}` works only in a notebook.", _instead(shell["what"], shell["rest"])))
    return lines, left, wrong


def _stops_at(lines: list[str]) -> int | None:
    """Return the 0-based line of the first syntax error, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except SyntaxError as error:
        return min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    except ValueError:  # a null byte
        return None
    return None


def _instead(what: str, rest: str) -> str:
    pip = _PIP.match(rest)
    if pip:
        packages = [word for word in pip["what"].split() if not word.startswith("-")]
        listed = ",".join(word.strip("'\"") for word in packages)
        first = re.match(r"(tensorflow|tf-nightly)\b", listed)
        typed = f"-e '{listed}'" if first else f"-e 'tensorflow==2.15.0,{listed}'" if listed else "-e tf2.15"
        return f"Remove this line, and pass the packages as an environment: {typed}"
    if what == "%" and rest.startswith("timeit"):
        return "Remove this line, write `# harness: step` above the statement, and repeat the statement in a loop."
    if rest.startswith(("wget ", "curl ", "git ", "gdown ")):
        return "Remove this line: a launch has no network. Download the file first, and pass it with --with FILE."
    return "Remove this line, or write it in Python."


def _of_page(lines: list[str]) -> list[tuple[str, str]]:
    """Return the problems of a cell that uses widgets or functions of IPython, with fixes."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return []
    imported = [
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    page = [name for name in imported if any(f"{name}.".startswith(f"{prefix}.") for prefix in _PAGE)]
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return [
        *((f"`{name}` works in a notebook only.", "Remove the code that uses it.") for name in page),
        *(
            (f"`{name}()` works in a notebook only.", "Remove this call, or print its result.")
            for name in sorted(called & {"display", "get_ipython"})
            if not page
        ),
    ]

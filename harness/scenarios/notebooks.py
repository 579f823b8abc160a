"""Converts Jupyter notebooks to plain scripts: the code cells in order, with a comment `# cell N` before each."""

import ast
import re
import warnings
from pathlib import Path
from typing import Any

from harness.files import parse_json
from harness.model.errors import FileError, Problem

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

#: A line that is valid in a notebook or was printed there, but isn't Python: output, a magic or shell command, or help.
_NOTEBOOK_LINE = re.compile(
    r"(?P<indent>\s*)(?:"
    r"(?P<output>>>(?!>)|Out\s?\[\d+\]:|(?:CPU times|Wall time|Requirement already satisfied):|"
    r"[\d.]+ (?:s|ms|us|[\u00b5\u03bc]s|ns) (?:\u00b1|\+-) |\d+ loops, best of \d+:|The slowest run took ).*|"
    r"(?P<target>[\w, ]+=\s*)?(?P<prefix>!!?|%)\s*(?P<name>\S*)(?P<argument>.*)|"
    r"(?P<help>\?{1,2}\s*[\w.]+|[\w.]+\s*\?{1,2})\s*(?:#.*)?)"
)

#: A line that installs packages; the group contains them.
_PIP = re.compile(r"(?m)^[\w\t =]*(?:!!?|%)[ \t]*(?:python3? -m )?pip3? install[ \t]+(.*)")
_TENSORFLOW = re.compile(r"(?:tensorflow|tf-nightly)\b")

#: Shell commands that usually download files.
_DOWNLOADERS = {"wget", "curl", "git", "gdown"}

#: The names of Python files end like this. A file with another name can be Markdown.
_PYTHON_FILES = {".py", ".pyw"}

_FENCE = re.compile(r"\s*(?:```|~~~)\s*([\w+-]*)")

#: The languages of a Markdown code block that can be Python.
_CODE_BLOCKS = {"", "python", "python3", "py", "ipython", "pycon"}

#: A prompt of Python or IPython, with `more` for a line that continues a statement.
_PROMPT = re.compile(r"\s*(?:>>>|In ?\[\d+\]:|(?P<more>\.{3,}:?))(?: |$)")

#: The invisible characters in code from web pages.
_SPACES = {0xA0: " ", 0x2007: " ", 0x202F: " ", 0x3000: " ", 0x200B: "", 0x200C: "", 0x200D: "", 0x2060: "", 0xFEFF: ""}

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


def convert_pasted_script(text: str, path: Path) -> tuple[str, list[str]]:
    """Return a pasted script as plain Python, and a sentence about each line that is omitted.

    Valid Python isn't changed. Otherwise, these parts are converted: code blocks of Markdown, an interactive session,
    the magics of IPython, pasted output, and the spaces of web pages. Lines keep their numbers. Raises FileError with
    every line that only a notebook can run.
    """
    sentences = list[str]()
    if path.suffix.lower() not in _PYTHON_FILES or _FENCE.match(text.lstrip()):
        text, sentence = _keep_code_blocks(text)
        sentences += [sentence] if sentence else []
    for convert in (_remove_prompts, _replace_spaces):
        text, sentence = convert(text)
        sentences += [sentence] if sentence else []
    lines, omitted, faults = _convert_cell(text, "", _suggest_environment(text))
    if faults:
        raise FileError([Problem(path, *fault) for fault in faults])
    return "\n".join(lines), sentences + omitted


def _keep_code_blocks(text: str) -> tuple[str, str]:
    """Return the Python code blocks of a Markdown text, such as an issue."""
    lines, language = list[str](), None
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence:
            language = None if language is not None else fence[1].lower()
        lines.append("" if fence or language not in _CODE_BLOCKS else line)
    if not any(lines):
        return text, ""
    return "\n".join(lines), "Only the blocks of Python code, between lines with ```, are run."


def _remove_prompts(text: str) -> tuple[str, str]:
    """Return the code of an interactive session, without the prompts of Python or IPython and without printed lines.

    If the first syntax error is after the first `>>>`, this is another text with `>>>`, such as a documentation string.
    """
    lines, code, is_open = text.split("\n"), list[str](), False
    first_prompt = next(
        (index for index, line in enumerate(lines) if (prompt := _PROMPT.match(line)) and not prompt["more"]), None
    )
    error = _find_syntax_error(lines)
    if first_prompt is None or error is None:
        return text, ""
    if error > first_prompt and lines[first_prompt].lstrip().startswith(">>>"):
        return text, ""
    for line in lines:
        prompt = _PROMPT.match(line)
        is_open = prompt is not None and (not prompt["more"] or is_open)
        code.append(line[prompt.end() :] if prompt and is_open else "")
    if error >= first_prompt:  # the code before the session is Python
        code[:first_prompt] = lines[:first_prompt]
    return "\n".join(code), "The text is an interactive session: its prompts and printed lines are omitted."


def _replace_spaces(text: str) -> tuple[str, str]:
    """Return the text with plain spaces instead of the invisible characters of web pages, unless it is valid Python."""
    converted = text.translate(_SPACES)
    if converted == text or _find_syntax_error(text.split("\n")) is None:
        return text, ""
    return converted, "Special spaces, such as U+00A0, count as plain spaces."


def make_time_patterns(text: str) -> list[str]:
    """Return the regular expressions for the times that the timing magics of a converted script print."""
    quoted = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    labels = re.findall(rf"{re.escape(_MAGICS)}\.(?:timeit|Timed)\({quoted}", text)
    return [rf"^{re.escape(ast.literal_eval(label))}: (\S+)" for label in dict.fromkeys(labels)]


def _read_cells(text: str, path: Path) -> list[str | None]:
    """Return the text of each code cell, and None for other cells. Raises FileError for an invalid notebook."""
    try:
        document: Any = parse_json(text)
        return [_get_source(cell) if cell["cell_type"] == "code" else None for cell in document["cells"]]
    except (ValueError, TypeError, KeyError, IndexError):
        raise FileError(
            [Problem(path, 0, "This is not a Jupyter notebook.", "Pass a notebook or a Python file.")]
        ) from None


def _get_source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)


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
        index = _find_syntax_error(lines)
        if index is None:
            break
        line, match = lines[index], _NOTEBOOK_LINE.fullmatch(lines[index])
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
    return "".join(f", {keywords[flag]}={int(number)}" for flag, number in numbers.items()), match["statement"].strip()


def _make_label(label: str, statement: str) -> str:
    """Return the name of a timed statement: `cell 2: %timeit layer(x)`."""
    words = " ".join(statement.split())
    return f"{label} {words[:60]}{'...' if len(words) > 60 else ''}".rstrip()


def _find_syntax_error(lines: list[str]) -> int | None:
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


def _suggest_replacement(command: str) -> str:
    if command in _DOWNLOADERS:
        return "Remove this line: a launch has no network. Download the file first, and pass it with --with FILE."
    return "Remove this line, or write it in Python."


def _find_page_problems(lines: list[str]) -> list[tuple[str, str]]:
    """Return the problems of a cell that uses widgets or functions of IPython, each with advice."""
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except (SyntaxError, ValueError):
        return []
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

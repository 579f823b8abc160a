"""Finds the Python programs in a saved text: an issue, a mail, a web page, a session or a listing.

Each form is a rule that removes something around code: quotation marks of mails, fences, HTML, prompts, line numbers,
indentation, special spaces, and shell commands. The valid Python that remains is code. Lines keep
their numbers, so a line of a program is the line of the file.
"""

import ast
import html
import re
import shlex
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.model.texts import joined
from harness.package_data import load_kit_module

#: A line that is valid in a notebook or was printed there, but isn't Python: output, a magic or shell command, or help.
NOTEBOOK_LINE = re.compile(
    r"(?P<indent>\s*)(?:"
    r"(?P<output>>>(?!>)|Out\s?\[\d+\]:|(?:CPU times|Wall time|Requirement already satisfied):|"
    r"[\d.]+ (?:s|ms|us|[\u00b5\u03bc]s|ns) (?:\u00b1|\+-) |\d+ loops, best of \d+:|The slowest run took ).*|"
    r"(?P<target>[\w, ]+=\s*)?(?P<prefix>!!?|%)\s*(?P<name>\S*)(?P<argument>.*)|"
    r"(?P<help>\?{1,2}\s*[\w.]+|[\w.]+\s*\?{1,2})\s*(?:#.*)?)"
)

#: A statement of Python 2, in a text where other lines are prose.
_PYTHON_2 = re.compile(
    r"\s*(?:(?:print|exec)(?: [\"'`]| [\w.]+ *(?:[,%(\[#].*)?$|\s*>>)|raise \w+\s*,|except [\w.]+\s*,\s*\w+\s*:)"
)

_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})\s*\{?\.?(?P<language>[\w+-]*)")
_PYTHON_LANGUAGES = {"python", "python3", "py", "ipython", "ipython3", "pycon"}

#: A prompt of Python or IPython, with `more` for a line that continues a statement.
_PROMPT = re.compile(r"\s*(?:>>>|In ?\[\d*\]:|(?P<more>\.{3,}:?))(?: |$)")
_CELL = re.compile(r"\s*In ?\[\d*\]:\s*")

#: The quotation mark of a mail, which isn't a prompt.
_QUOTE = re.compile(r"(?m)^ {0,3}(?:>(?!>>) ?)+")

#: The number of a line in a listing.
_NUMBER = re.compile(r"\s*(\d{1,5})(?:[.:|)\]]+(?=\s|$)|(?=\s|$))[ \t]?")

#: A shell command that passes a program to Python. Its quotation mark follows.
_COMMAND = re.compile(
    r"\s*(?:[\w@:~/.() -]*[$#%>] )?(?:\w+=\S+ )*(?:time )?(?:\S*/)?python[\d.]* (?:-[a-zA-Z]+ )*?-c\s*(?=['\"])"
)

#: The start of a line that is code, and not prose. An expression in prose can be valid Python too.
_CODE_LINE = re.compile(
    r"(?:import \w|from [\w.]+ import |(?:async )?def \w|class \w+\s*[(:]|@\w|(?:with|for|while|if|elif) .*:|"
    r"(?:try|else|finally):|[\w.]+(?:\[.*\])?(?:, *\w+)* *(?:[-+*/@]|//|\*\*)?=(?!=)|[\w.]+\(|%%?time)"
)

#: The invisible characters in code from web pages.
_SPACES = {0xA0: " ", 0x2007: " ", 0x202F: " ", 0x3000: " ", 0x200B: "", 0x200C: "", 0x200D: "", 0x2060: "", 0xFEFF: ""}

#: Words of a text that compares two programs.
_COMPARING = re.compile(
    r"(?i)\b(?:vs|versus|compar\w+|slower|faster|instead|whereas|equivalent|times (?:as|more)|on the other hand)\b"
)

_TENSORFLOW = {"tensorflow", "keras", "tf_keras"}

#: The largest distance between lines of code that count as one range.
_GAP = 4


@dataclass(frozen=True, slots=True)
class PastedBlock:
    """Lines of code by their 0-based numbers.

    `is_command`: the code is the argument of a shell command, so its user timed the whole process.
    """

    lines: dict[int, str]
    is_command: bool = False

    @property
    def names(self) -> Any:
        """The contents of the code (kit/names.py)."""
        return load_kit_module("names").read("\n".join(mask(self.format().split("\n"))[0]))

    @property
    def first(self) -> int:
        """The number of the first line of code, which starts at 1."""
        return min(index for index, line in self.lines.items() if line.strip()) + 1

    def format(self, count: int = 0) -> str:
        """Return the code as a text of at least `count` lines, in which each line has its own number."""
        return "\n".join(self.lines.get(index, "") for index in range(max(count, max(self.lines) + 1)))


@dataclass(frozen=True, slots=True)
class Pasted:
    """The programs in a text, sentences about what is left out, and whether the text compares its two programs."""

    programs: list[PastedBlock]
    sentences: list[str]
    compares: bool = False


def find_programs(text: str, *, is_python: bool) -> Pasted:
    """Return the programs in a text, possibly none. `is_python`: the file has the name of a Python file.

    A Python file without a known form is returned as it is, so that its error is reported.
    """
    lines = text.split("\n")
    whole = PastedBlock(dict(enumerate(lines)))
    if _is_python(lines) and (is_python or _has_substance(whole)):
        return Pasted([whole], [])
    if is_python and not _FENCE.match(text.lstrip()):
        cleaned = _clean(lines)
        if not (cleaned.format().strip() and _is_python(cleaned.format().split("\n"))):
            return Pasted([whole], [])
        return Pasted([cleaned], [f"The code is in {_name_lines([cleaned])}, without prompts, numbers and output."])
    if re.match(r"\s*<(?:!doctype|html)\b", text, re.IGNORECASE):
        areas = _find_html(text)
    else:
        lines = _QUOTE.sub("", text).split("\n")
        areas = _split_fences(lines)
    blocks = [
        block
        for area, language in areas
        if any(map(str.strip, area.values()))
        for block in (_find_runs(area) if language is None else _read_fence(area, language))
    ]
    programs, sentences = _group(blocks)
    rest = {index: line for index, line in enumerate(lines) if not any(index in block.lines for block in blocks)}
    if programs and any(line.strip() for line in rest.values()):
        sentences.insert(0, f"The code is in {_name_lines(programs)}. The other text is left out.")
    return Pasted(programs, sentences, len(programs) == 2 and bool(_COMPARING.search("\n".join(rest.values()))))


def _name_lines(blocks: Sequence[PastedBlock]) -> str:
    """Return the ranges of the lines of blocks, such as `lines 3 to 9 and 14 to 20`."""
    numbers = sorted(index + 1 for block in blocks for index, line in block.lines.items() if line.strip())
    gaps = [(one, other) for one, other in pairwise(numbers) if other - one > _GAP]
    ends = [numbers[0], *(number for gap in gaps for number in gap), numbers[-1]]
    ranges = [
        f"{one} to {other}" if one != other else str(one) for one, other in zip(ends[::2], ends[1::2], strict=True)
    ]
    return f"{'line' if len(numbers) == 1 else 'lines'} {joined(ranges)}"


def mask(lines: Sequence[str]) -> tuple[list[str], int | None]:
    """Drop lines of notebooks and Python 2. Return the other lines, and the 0-based line of the first other error."""
    masked = list(lines)
    for _ in lines:
        index = find_error(masked)
        if index is None:
            return masked, None
        line = masked[index]
        if not (line.strip() and (NOTEBOOK_LINE.fullmatch(line) or _PYTHON_2.match(line))):
            return masked, index
        masked[index] = f"{line[: len(line) - len(line.lstrip())]}pass"
    return masked, find_error(masked)


def find_error(lines: Sequence[str]) -> int | None:
    """Return the 0-based line of the first syntax error, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except SyntaxError as error:
        return min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    except (ValueError, RecursionError, MemoryError):  # a null byte, or too deep
        return None
    return None


def _is_python(lines: Sequence[str]) -> bool:
    return mask(lines)[1] is None


def _has_substance(block: PastedBlock) -> bool:
    """Return whether code does something. A word or a number of a text is valid Python too."""
    tree = load_kit_module("names").parse("\n".join(mask(block.format().split("\n"))[0]))
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.Assign, ast.AugAssign, ast.FunctionDef, ast.ClassDef)
    return tree is not None and any(isinstance(node, kinds) for node in ast.walk(tree))


def _clean(lines: Sequence[str], first: int = 0) -> PastedBlock:
    """Return lines without what is around their code. `first` is the number of the first line."""
    cleaned, is_command = list(lines), False
    for form in (_replace_spaces, _strip_backticks, _remove_numbers, _remove_prompts, _dedent, _read_commands):
        if _is_python(cleaned):
            break
        changed = form(cleaned)
        cleaned, is_command = changed, form is _read_commands and changed != cleaned
    return PastedBlock(dict(enumerate(cleaned, first)), is_command)


def _replace_spaces(lines: list[str]) -> list[str]:
    return [line.translate(_SPACES) for line in lines]


def _strip_backticks(lines: list[str]) -> list[str]:
    return [re.sub(r"^(\s*)`(?!`)|(?<!`)`(\s*)$", r"\1\2", line) for line in lines]


def _dedent(lines: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).split("\n")


def _remove_numbers(lines: list[str]) -> list[str]:
    """Return the code of listings, in which each line has its number, and other lines as they are."""
    result, start = list(lines), 0
    matches = [_NUMBER.match(line) for line in lines]
    for end in range(1, len(lines) + 1):
        match, previous = matches[end] if end < len(lines) else None, matches[end - 1]
        if match and previous and int(match[1]) == int(previous[1]) + 1:
            continue
        code = [line[match.end() :] for line, match in zip(lines[start:end], matches[start:end], strict=True) if match]
        if len(code) > 2 and _is_python(_dedent(code)):
            result[start:end] = _dedent(code)
        start = end
    return result


def _remove_prompts(lines: list[str]) -> list[str]:
    """Return the code of an interactive session, without prompts and printed lines.

    If the first syntax error is after the first `>>>`, this is another text with `>>>`, such as a documentation string.
    """
    prompts = [_PROMPT.match(line) for line in lines]
    first = next((index for index, prompt in enumerate(prompts) if prompt and not prompt["more"]), None)
    error = find_error(lines)
    if first is None or error is None or (error > first and lines[first].lstrip().startswith(">>>")):
        return lines
    code, is_open, is_cell = list[str](), False, False
    for line, prompt in zip(lines, prompts, strict=True):
        is_open = prompt is not None and (not prompt["more"] or is_open)
        # the code of a notebook's cell can start on the line below its prompt
        is_cell = bool(_CELL.fullmatch(line)) or (is_cell and not prompt and not line.startswith("Out"))
        code.append(line[prompt.end() :] if prompt and is_open else line if is_cell and not prompt else "")
    if error >= first:  # the code before the session is Python
        code[:first] = lines[:first]
    return code


def _read_commands(lines: list[str]) -> list[str]:
    """Return the programs that shell commands pass to Python, on the lines of their commands."""
    code, index = [""] * len(lines), 0
    while index < len(lines):
        command = _COMMAND.match(lines[index])
        end = index + 1
        while command and end <= len(lines):
            with suppress(ValueError, IndexError):  # as long as the quotation mark isn't closed
                program, *rest = shlex.split("\n".join(lines[index:end])[command.end() :])
                is_output = re.match(r"[\d.]+s user", " ".join(rest))  # the shell repeats a timed command
                program_lines = [] if is_output else program.split("\n")
                code[index:end] = [*program_lines, *[""] * (end - index - len(program_lines))]
                break
            end += 1
        index = end
    return code if any(code) else lines


def _split_fences(lines: Sequence[str]) -> Iterator[tuple[dict[int, str], str | None]]:
    """Yield the lines in each fence with its language, and the lines between fences with None."""
    area, mark, language = dict[int, str](), "", None
    for index, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and (not mark or (fence["mark"].startswith(mark) and not fence["language"])):
            yield area, language
            area, language = {}, None if mark else fence["language"].lower()
            mark = "" if mark else fence["mark"]
        else:
            area[index] = line
    yield area, language


def _find_html(text: str) -> Iterator[tuple[dict[int, str], str | None]]:
    """Yield the lines of each `<pre>` in a web page, as of a fence without a language."""
    for match in re.finditer(r"<pre\b[^>]*>(.*?)</pre>", text, re.DOTALL | re.IGNORECASE):
        lines = html.unescape(re.sub(r"<[^>]*>", "", match[1])).split("\n")
        yield dict(enumerate(lines, text.count("\n", 0, match.start(1)))), ""


def _read_fence(area: dict[int, str], language: str) -> list[PastedBlock]:
    """Return the code in a fence. If its error is in a line of code, the error must be reported, so all is code."""
    block = _clean(list(area.values()), min(area))
    masked, error = mask(list(block.lines.values()))
    if error is None:
        return [block] if _has_substance(block) else []
    runs = _find_runs(block.lines)
    is_code = language in _PYTHON_LANGUAGES and not runs
    return [block] if is_code or (runs and _CODE_LINE.match(masked[error].strip())) else runs


def _find_runs(area: dict[int, str]) -> list[PastedBlock]:
    """Return the code in a text: the longest ranges of lines that are valid Python and start like code."""
    first, lines = min(area), list(area.values())
    cleaned = _clean(lines, first)
    lines, blocks, index = list(cleaned.lines.values()), [], 0
    while index < len(lines):
        indent = len(lines[index]) - len(lines[index].lstrip())
        end = index
        if _CODE_LINE.match(lines[index].strip()):
            end = next(
                (end for end in range(index, len(lines)) if lines[end].strip() and lines[end][:indent].strip()),
                len(lines),
            )
            chunk = _dedent(lines[index:end])
            end = index + _find_valid_length(chunk)
            block = PastedBlock(dict(enumerate(chunk[: end - index], first + index)), cleaned.is_command)
            if end > index and (indent or "import" in block.format() or end - index > 1) and _has_substance(block):
                blocks.append(block)
        index = max(end, index + 1)
    return blocks


def _find_valid_length(lines: Sequence[str]) -> int:
    """Return the number of lines that are valid Python, without words of a text after the code."""
    end = len(lines)
    while end:
        masked, error = mask(lines[:end])
        if error is None:
            tree = load_kit_module("names").parse("\n".join(masked))
            code = [node for node in (tree.body if tree else ()) if not _is_word(node)]
            return (code[-1].end_lineno or 0) if code else 0
        end = min(error, end - 1)
    return 0


def _is_word(node: ast.stmt) -> bool:
    """Return whether a statement is rather a word of a text, such as `Thanks` or `loss: 3`."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name | ast.Constant | ast.Tuple | ast.Attribute)


def _group(blocks: Sequence[PastedBlock]) -> tuple[list[PastedBlock], list[str]]:
    """Return the programs that blocks of code form, and sentences about blocks that are left out.

    A block that uses names of an earlier one continues its program. A block with imports starts a program.
    """
    programs, fragments = list[PastedBlock](), list[PastedBlock]()
    for block in blocks:
        names = block.names
        earlier = next((one for one in programs[::-1] if one.names.bound & names.undefined.keys()), None)
        texts = [_normalize(one) for one in programs]
        if _normalize(block) in texts:
            continue
        if earlier:
            programs[programs.index(earlier)] = PastedBlock(earlier.lines | block.lines)
        elif names.modules or block.is_command:
            programs.append(block)
        else:
            fragments.append(block)
    if not programs and blocks:  # one program without its imports
        others = [block for block in blocks if "torch" in block.names.undefined]
        blocks = [block for block in blocks if block not in others] or blocks
        programs = [PastedBlock({k: v for block in blocks for k, v in block.lines.items()})]
        fragments = [block for block in others if block not in blocks]
    for is_better in (
        lambda program: not program.is_command,
        lambda program: program.names.modules.keys() & _TENSORFLOW,
        lambda program: not program.names.undefined,
    ):
        better = [program for program in programs if is_better(program)]
        fragments += [program for program in programs if better and program not in better]
        programs = better or programs
    fragments.sort(key=lambda block: block.first)
    return programs, [f"Left out: the code in {_name_lines([block])}." for block in fragments]


def _normalize(block: PastedBlock) -> str:
    return "\n".join(line.strip() for line in block.lines.values() if line.strip())

"""Finds a script's PEP 723 block and reads its TOML."""

import re
from pathlib import Path

from harness.catalog import document
from harness.catalog.document import Document
from harness.model.problem import FileError, Problem

# the expression of PEP 723 itself
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_BEGIN, _END = "# /// script", "# ///"


def read(text: str, path: Path) -> Document:
    """The header in the text of the file `path`. Raises FileError where there is none, several, or one not TOML."""
    blocks = [match for match in _BLOCK.finditer(text) if match["type"] == "script"]
    if not blocks:
        raise FileError([_absent(text, path)])
    if len(blocks) > 1:
        line = _line(text, blocks[1].start())
        raise FileError([Problem(path, line, f"This is a second `{_BEGIN}` header.", "A file has one (PEP 723).")])
    lines = blocks[0]["content"].rstrip("\n").split("\n")
    toml = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines)
    return document.read(toml, path, _line(text, blocks[0].start("content")))


def _absent(text: str, path: Path) -> Problem:
    """Why there is no block: none was begun, a line in it is no comment, or it never ends."""
    lines = text.split("\n")
    if _BEGIN not in lines:
        fix = f"Begin the file with `{_BEGIN}`, the TOML in comments, and `{_END}`: `harness scenarios new` writes one."
        return Problem(path, 1, f"There is no `{_BEGIN}` header (PEP 723).", fix)
    begin = lines.index(_BEGIN)
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if line == _END:
            break
        if line != "#" and not line.startswith("# "):
            fix = f"Begin each of its lines with `# `, and end it with the line `{_END}`."
            return Problem(path, number, f"The header that begins in line {begin + 1} is broken off here.", fix)
    fix = f"End it with the line `{_END}`, after at least one line of TOML in comments."
    return Problem(path, begin + 1, "The header has no end, or nothing in it.", fix)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1

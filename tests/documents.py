"""Commands and code in the pages of the documentation."""

import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence

import pytest
from typer.testing import CliRunner

from harness.cli import advice, app


def find_blocks(text: str, language: str) -> list[str]:
    """Return the contents of a page's code blocks of a language, also of those in lists."""
    blocks = re.findall(r"^ *```(\S*)[^\n]*\n(.*?)^ *```$", text, flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for marked, block in blocks if marked == language]


def find_commands(text: str) -> list[str]:
    """Return the lines of a page's code that call harness, without usage lines and lines that omit words."""
    fences = r"^ *```\S*[^\n]*\n.*?^ *```$"
    text = text.replace("\\\n", "")
    code = [*re.findall(fences, text, re.DOTALL | re.MULTILINE)]
    code += re.findall(r"^    .*$", re.sub(fences, "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    code += re.findall(r"^\|.*\| `(.*)` \|$", text, re.MULTILINE)
    lines = (
        re.sub(r"^\s*(?:- )?(?:run: )?(?:\$ )?(?:[A-Z]+=\S+ )?", "", line)
        for block in code
        for line in block.splitlines()
    )
    return [line for line in lines if re.match(r"harness [a-z]", line) and not re.search(r"…|\[OPTIONS\]|\[--", line)]


def split_command(line: str) -> list[str]:
    """Return the arguments of a `harness` command, without the shell's part of the line."""
    line = re.sub(r"^source <\((.*)\)$", r"\1", line.removeprefix("$ "))
    program, *words = shlex.split(re.sub(r" +(>>?|#|\||&&) .*", "", line))
    assert program == "harness", line
    return words


def check_accepted(commands: Iterable[Sequence[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the command line accepts the arguments of each command. Nothing is done."""
    accepted: list[str] = []
    monkeypatch.setattr(advice.Command, "invoke", lambda _, context: accepted.append(context.command_path))
    for words in commands:
        accepted.clear()
        output = CliRunner().invoke(app, words, prog_name="harness", catch_exceptions=False).output
        assert accepted, f"{words}: {output}"

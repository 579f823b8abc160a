"""What help shows: headings, values, whole sentences in 80 columns, and examples that work."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from harness.cli import advice, app
from harness.cli.examples import EXAMPLES
from harness.model.errors import Exit
from harness.session.request import OptionPanel

ROOT = Path(__file__).parents[2]


def tree(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, command
    if isinstance(command, TyperGroup):
        context = typer.Context(command)
        for below in command.list_commands(context):
            yield from tree(command.get_command(context, below), f"{name} {below}".strip())


COMMANDS = dict(tree(typer.main.get_command(app)))
LINES = [line for text in EXAMPLES.values() for line in text.strip().splitlines()]


def shown(name: str) -> str:
    return CliRunner().invoke(app, [*name.split(), "--help"], prog_name="harness", env={"COLUMNS": "80"}).output


def typed(line: str) -> list[str]:
    """The words after `harness`, without what is the shell's."""
    command = re.sub(r" (>|#) .*", "", line.removeprefix("source <(").removesuffix(")"))
    harness, *words = shlex.split(command)
    assert harness == "harness"
    return words


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples_of_the_command(name: str) -> None:
    lines = EXAMPLES[name].strip().splitlines()
    assert len(lines) in (2, 3)
    ended = shown(name).rstrip().splitlines()[-len(lines) - 1 :]
    assert [line.strip() for line in ended] == ["Examples:", *lines]
    assert all(words[: len(name.split())] == name.split() for words in map(typed, lines))


def test_there_are_examples_of_no_other_commands() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("line", LINES)
def test_examples_can_be_typed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = []
    monkeypatch.setattr(advice.Command, "invoke", lambda _, context: reached.append(context.command_path))
    CliRunner().invoke(app, typed(line), prog_name="harness", catch_exceptions=False)
    assert reached, f"{line} is not read"


@pytest.mark.parametrize(
    "line",
    [line for line in LINES if typed(line)[0] in {"matrix", "run", "repro", "profile"} and "list" not in typed(line)],
)
def test_examples_that_measure_have_a_plan(line: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def train_step():\n    pass\n")
    words = [word for word in typed(line) if word != "--dry-run"]
    done = subprocess.run(
        [sys.executable, "-m", "harness", words[0], "--dry-run", *words[1:]],
        cwd=tmp_path,
        env={**os.environ, "HARNESS_PROJECT": str(ROOT), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # whether this machine can run it is another question
    assert done.returncode in (Exit.OK, Exit.CANNOT_RUN_HERE), done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_cut_and_values_are_no_types(name: str) -> None:
    text = shown(name)
    listed = text.partition("\nCommands:\n")[2]
    assert "..." not in listed
    assert not re.search(r"<(str|int|float|path|file|list)\b", text)
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("name", ["matrix", "run", "repro", "profile"])
def test_many_options_are_under_headings(name: str) -> None:
    headings = re.findall(r"^(\S.*):$", shown(name), re.MULTILINE)
    panels = [heading for heading in headings if heading in list(OptionPanel)]
    assert panels == [panel for panel in OptionPanel if panel in panels]
    assert len(panels) > 3
    assert shown(name).partition("\nOptions:\n")[2].splitlines()[:2] == [
        "  -h, --help  Show this message and exit.",
        "",
    ]


def test_few_options_are_one_list() -> None:
    few = [name for name, each in COMMANDS.items() if not isinstance(each, TyperGroup) and len(each.params) < 5]
    assert few
    assert not any(f"\n{panel}:\n" in shown(name) for name in few for panel in OptionPanel)

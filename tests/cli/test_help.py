"""What help shows: whole lines in 80 columns, values instead of types, headings, and examples that work."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from harness.cli import COMMANDS as GROUPS
from harness.cli import app
from harness.cli.advice import load_examples
from harness.model.errors import Exit
from harness.session.options import OptionPanel
from tests.conftest import ROOT
from tests.documents import check_accepted, split_command


def walk(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, command
    if isinstance(command, TyperGroup):
        context = typer.Context(command)
        for child in command.list_commands(context):
            yield from walk(command.get_command(context, child), f"{name} {child}".strip())


COMMANDS = dict(walk(typer.main.get_command(app)))
EXAMPLE_LINES = [line for lines in load_examples().values() for line in lines]


def read_help(*words: str) -> str:
    result = CliRunner().invoke(app, words, prog_name="harness", env={"COLUMNS": "80"})
    assert result.exit_code == 0
    return result.output


def test_help_of_each_command_has_whole_lines_no_types_headings_and_examples():
    for name, command in COMMANDS.items():
        text = read_help(*name.split(), "--help")
        assert max(map(len, text.splitlines())) <= 80, name
        assert not isinstance(command, TyperGroup) or "..." not in text.partition(":\n")[2], name
        assert not re.search(r"<(str|int|float|path|file|list)\b", text), name
        examples = text.partition("\nExamples:\n")[2].strip().splitlines()
        assert len(examples) in ((0,) if name and isinstance(command, TyperGroup) else (2, 3)), name
        assert {tuple(split_command(line.strip())[: len(name.split())]) for line in examples} <= {tuple(name.split())}
        headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
        panels = [heading for heading in headings if heading in list(OptionPanel)]
        assert panels == [panel for panel in OptionPanel if panel in panels], name
        if name in ("matrix", "run", "repro", "profile"):
            assert len(panels) > 3
        if not isinstance(command, TyperGroup) and len(command.params) < 5:
            assert panels == [], name


def test_help_of_all_commands_has_them_under_headings():
    lines = read_help("--help").splitlines()
    assert [heading for heading in GROUPS if f"{heading}:" not in lines] == []
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in COMMANDS]
    assert [*dict.fromkeys(listed)] == [name for names in GROUPS.values() for name in names]
    assert read_help("-h") == read_help("--help")


def test_brief_help_has_the_eight_options_of_most_use():
    for name in ("matrix", "run", "repro", "bisect", "profile"):
        text = read_help(name, "-h")
        options = re.findall(r"^  (?:-\w, )?--", text, re.MULTILINE)
        assert (len(options), f"All options: harness {name} --help" in text) == (8, True), name
        assert "-e, " in text
        assert len(text.splitlines()) < 45, name
    assert read_help("report", "-h") == read_help("report", "--help")


#: Commands that a noun describes although they have no option with its name.
SUBJECTS = {"suite": ("scenarios list", "scenarios check"), "claim": ("repro", "bisect", "ask")}


def test_help_names_only_options_and_nouns_of_its_own_command():
    for name, command in COMMANDS.items():
        flags = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
        texts = [
            command.help or "",
            *(getattr(param, "help", None) or "" for param in command.params if not param.hidden),
        ]
        # without other commands, and the example of an option of a script
        text = re.sub(r"`?harness [a-z][^`.]*|adds `--epochs 1`", "", " ".join(texts))
        assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)} <= flags, name
        for noun, names in SUBJECTS.items():
            assert not re.search(rf"\b{noun}s?\b", text) or f"--{noun}" in flags or name in names, (name, noun)


def test_examples_can_be_typed(monkeypatch):
    check_accepted(map(split_command, EXAMPLE_LINES), monkeypatch)


@pytest.mark.slow
def test_examples_that_measure_have_a_plan(harness, tmp_path):
    (tmp_path / "train.py").write_text("def train_step():\n    pass\n")
    harness.root = tmp_path
    harness.environ["HARNESS_PROJECT"] = str(ROOT)
    plans = 0
    for line in EXAMPLE_LINES:
        command, *words = (word for word in split_command(line) if word != "--dry-run")
        if command in ("matrix", "run", "repro", "profile") and "list" not in words:
            plans += 1
            process = harness.call(command, "--dry-run", *words)
            # whether this machine can run it is another question
            assert process.returncode in (Exit.OK, Exit.CANNOT_RUN_HERE), (line, process.stderr)
    assert plans > 9

"""Answers a shell that completes. Imported for that alone, as what it takes from typer is no part of typer's interface.

The last word of a command line is completed as a whole, for every shell alike: a line a word, with a tab and its help.
"""

from typing import Any

import typer
from typer._click.core import ParameterSource
from typer._click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from harness.model.errors import HarnessError


def answer(app: typer.Typer, line: str) -> str:
    """What the last word of a command line can become, a line each. What cannot be read completes to nothing."""
    try:
        return _Line(app, line).complete()
    except HarnessError:
        return ""


def read_as_typed(command: Any, context: Any, words: list[str]) -> list[str]:
    """As a command's `parse_args`, but values stay texts: typer imports pydantic to look at them, which takes long."""
    parser = command.make_parser(context)
    context.params, context.args, _ = parser.parse_args(words)
    context._opt_prefixes.update(parser._opt_prefixes)
    for name, value in context.params.items():
        if value is not None:
            context.set_parameter_source(name, ParameterSource.COMMANDLINE)
    return list(context.args)


class _Line(ShellComplete):
    """A command line up to the cursor."""

    def __init__(self, app: typer.Typer, line: str) -> None:
        super().__init__(typer.main.get_command(app), {}, "harness", "")
        self._line = line

    def source_vars(self) -> dict[str, str]:
        """Nothing: the shells' scripts are in `completion`."""
        return {}

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words after the command, and the one that was begun; empty where that is a new one."""
        words = split_arg_string(self._line)[1:]
        return (words, "") if not words or self._line[-1:].isspace() else (words[:-1], words[-1])

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What the word can become, also the one of `--option=value`."""
        option, equals, _ = incomplete.partition("=")
        before = option + equals if option.startswith("-") and equals else ""
        found = super().get_completions(args, incomplete)
        return [CompletionItem(before + each.value, help=each.help) for each in found]

    def format_completion(self, item: CompletionItem) -> str:
        """A line of the answer."""
        return f"{item.value}\t{item.help or ''}".rstrip("\t")

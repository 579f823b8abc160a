"""Returns completions to a shell. Each press of TAB runs this module, so it must be fast.

The output is the same for every shell: one line per completion of the last word, with a tab and a help text.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from harness.model.errors import HarnessError


def complete_line(app: typer.Typer, line: str) -> str:
    """Return the completions of the last word of a command line, one per line; empty if it can't be parsed."""
    words = _split_words(line)[1:]
    partial_word = words.pop() if words and not line[-1:].isspace() else ""
    try:
        completions = _iterate_completions(app, words, partial_word)
        return "\n".join(f"{value}\t{help_text}".rstrip("\t") for value, help_text in completions)
    except HarnessError:
        return ""


def _split_words(line: str) -> list[str]:
    """Split a command line into words. An open quote or backslash at its end is accepted."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def _iterate_completions(app: typer.Typer, words: Sequence[str], partial_word: str) -> Iterator[tuple[str, str]]:
    """Yield the completions of a partial word with their help. Raises HarnessError for an unknown command."""
    command: Any = typer.main.get_command(app)
    context, remaining = command.make_context("harness", [], resilient_parsing=True), list(words)
    while remaining and isinstance(command, TyperGroup):
        name, command, remaining = command.resolve_command(context, remaining)
        # for a group, the next iteration parses the remaining words
        own_words = [] if isinstance(command, TyperGroup) else [*remaining]
        context = command.make_context(name, own_words, parent=context, resilient_parsing=True)
    option, separator, value = partial_word.partition("=")
    if option.startswith("-") and separator:  # --option=value
        prefix, partial_word, remaining = option + separator, value, [*remaining, option]
    else:
        prefix = ""
    for item in _find_completer(command, context, remaining, partial_word).shell_complete(context, partial_word):
        yield prefix + item.value, item.help or ""


def _find_completer(command: Any, context: Any, words: Sequence[str], partial_word: str) -> Any:
    """Return the object that completes a partial word: the option before it, an argument, or the command itself."""
    if partial_word.startswith("-") and "--" not in words:
        return command
    for param in command.params:
        if param.param_type_name == "option" and not param.is_flag and words and words[-1] in param.opts:
            return param
    for param in command.params:
        if param.param_type_name == "argument" and (param.nargs == -1 or not context.params.get(param.name)):
            return param
    return command

"""What a shell completes: the names of the catalogue, axes and their values, and the folders of runs.

A shell asks anew at every TAB, so nothing here may be slow: headers are read only for axes, and the catalogue of
environments comes from its cache. What cannot be read completes to nothing.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.model.errors import HarnessError

if TYPE_CHECKING:
    from typer._click import Command
    from typer.core import TyperArgument, TyperOption

#: Set by a shell that asks, to the command line up to the cursor.
VARIABLE = "_HARNESS_COMPLETE"

# bash splits words at `=` and `:` too, and replaces what follows the last of these
_BASH = f"""\
_harness_completion() {{
    local IFS=$'\\n' line=${{COMP_LINE:0:COMP_POINT}} current=${{COMP_WORDS[COMP_CWORD]}}
    local word=${{line##*[[:space:]]}}
    [[ $current == [=:] ]] && current=
    local kept=${{word%"$current"}}
    COMPREPLY=( $({VARIABLE}="$line" "$1" 2>/dev/null | cut -f 1) )
    COMPREPLY=( "${{COMPREPLY[@]#"$kept"}}" )
    [[ ${{#COMPREPLY[@]}} == 1 && $COMPREPLY == *[=/] ]] && compopt -o nospace
}}
complete -o default -F _harness_completion harness"""

_ZSH = f"""\
#compdef harness
_harness_completion() {{
    local found value
    for found in "${{(@f)$({VARIABLE}="${{words[1,CURRENT]}}" $words[1] 2>/dev/null)}}"; do
        value=${{found%%$'\\t'*}}
        [[ -n $value ]] && compadd -Q -S "${{${{value[-1]:#[=/]}}:+ }}" -- "$value"
    done
    (( compstate[nmatches] )) || _files
}}
compdef _harness_completion harness"""

_FISH = f"complete --command harness --no-files --arguments '(env {VARIABLE}=(commandline -cp) harness)'"


class Shell(StrEnum):
    """The shells that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a shell's completion script, for commands, names, axes and runs: source <(harness completion bash)."""
    typer.echo(_SCRIPTS[shell])


def answer(app: typer.Typer, line: str) -> list[str]:
    """What the last word of a command line can become, a line each: the word, and a tab and its help where it has one.

    The line is read here, not by typer: that checks every value by pydantic, whose import takes longer than all else.
    """
    from typer.core import TyperGroup

    *words, begun = _split(line)
    read = _Read(typer.main.get_command(app))
    for word in words:
        read.add(word)
    option, before = read.waiting, ""
    if option is None and begun.startswith("-"):
        name, equals, value = begun.partition("=")
        if not equals or name not in read.options:
            return _lines([(name, each.help) for name, each in read.options.items()], begun)
        option, before, begun = read.options[name], f"{name}=", value
    if option is None and isinstance(read.command, TyperGroup):
        if read.positions:  # no command has that name
            return []
        return _lines([(name, each.get_short_help_str(80)) for name, each in read.command.commands.items()], begun)
    context = typer.Context(read.command)
    context.params = read.typed
    asked = option or read.argument
    found = asked.shell_complete(context, begun) if asked else []
    return _lines([(before + item.value, item.help) for item in found], before + begun)


class _Read:
    """What the words of a line have said so far."""

    def __init__(self, command: "Command") -> None:
        self.command = command
        #: Values by the name that the command's function has for them.
        self.typed: dict[str, Any] = {}
        #: The option whose value comes next.
        self.waiting: TyperOption | None = None
        #: How many words were no option's.
        self.positions = 0

    @property
    def options(self) -> dict[str, "TyperOption"]:
        """The command's options by what is typed for them."""
        from typer.core import TyperOption

        return {name: each for each in self.command.params if isinstance(each, TyperOption) for name in each.opts}

    @property
    def argument(self) -> "TyperArgument | None":
        """The argument that comes next; the last one may take several words."""
        from typer.core import TyperArgument

        arguments = [each for each in self.command.params if isinstance(each, TyperArgument)]
        left = arguments[self.positions :] or [each for each in arguments[-1:] if each.nargs != 1]
        return left[0] if left else None

    def add(self, word: str) -> None:
        """Read the next word."""
        from typer.core import TyperGroup

        name, equals, value = word.partition("=")
        option = self.options.get(name)
        if self.waiting:
            self._put(self.waiting, word)
            self.waiting = None
        elif option is not None and equals:
            self._put(option, value)
        elif option is not None:
            self.waiting = None if option.is_flag else option
        elif isinstance(self.command, TyperGroup) and word in self.command.commands:
            self.command, self.typed = self.command.commands[word], {}
        elif not word.startswith("-"):
            self.positions += 1

    def _put(self, option: "TyperOption", value: str) -> None:
        if option.name is not None:
            self.typed[option.name] = [*self.typed.get(option.name, ()), value] if option.multiple else value


def _lines(found: Iterable[tuple[str, str | None]], begun: str) -> list[str]:
    return [f"{value}\t{about or ''}".rstrip("\t") for value, about in found if value.startswith(begun)]


def _split(line: str) -> list[str]:
    """The words of a line after the command; the last one is empty where a new one is to begin."""
    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)[1:]
        except ValueError:  # a quote that is not closed yet
            continue
        return [*words, ""] if not words or line[-1:].isspace() else words
    return [""]


def environments() -> list[tuple[str, str]]:
    """The names of the catalogue's environments."""
    from harness.catalog.environments import load_environments
    from harness.catalog.project import Project

    try:
        return [(name, each.title) for name, each in load_environments(Project.find()).items()]
    except HarnessError:
        return []


def scenarios(incomplete: str) -> list[str]:
    """The names of the scenarios; Python files where a path was begun."""
    from harness.catalog.project import Project
    from harness.catalog.scenarios import scenario_files

    if "/" in incomplete:
        return [path for path in _below(incomplete) if path.endswith(("/", ".py"))]
    try:
        return [path.stem for path in scenario_files(Project.find())]
    except HarnessError:
        return []


def suites() -> list[tuple[str, str]]:
    """The names of the suites."""
    from harness.catalog.project import Project
    from harness.catalog.scenarios import load_suites

    try:
        return [(suite.name, suite.title) for suite in load_suites(Project.find()).values()]
    except HarnessError:
        return []


def axes(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """`AXIS=` of the scenarios that were typed, or of all; after it the axis's values, one after another."""
    typed = context.params.get("scenarios") or _of_suite(context.params.get("suite", ""))
    values: dict[str, dict[str, None]] = {}
    for found in _chosen(typed):
        for axis in found:
            values.setdefault(axis, {}).update(dict.fromkeys(found[axis]))
    axis, equals, begun = incomplete.partition("=")
    if not equals:
        return [(f"{each}=", ", ".join(values[each])) for each in values]
    before = begun[: begun.rfind(",") + 1]
    return [(f"{axis}={before}{value}", "") for value in values.get(axis, ())]


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """The folders of runs, the newest first, of those in `--results`; below another path where that was begun."""
    below = _below(incomplete if "/" in incomplete else f"{context.params.get('results') or 'results'}/")
    found = [path.rstrip("/") for path in below if Path(path, "run.json").is_file()]
    return [*sorted(found, reverse=True), *(path for path in below if path.endswith("/") and path[:-1] not in found)]


def _below(begun: str) -> list[str]:
    """What lies in the folder of a path that was begun, as it was typed; folders end with a slash."""
    folder, _, name = begun.rpartition("/")
    try:
        entries = [entry for entry in Path(folder or "/").iterdir() if name or not entry.name.startswith(".")]
    except OSError:
        return []
    return sorted(f"{folder}/{entry.name}{'/' if entry.is_dir() else ''}" for entry in entries)


def _of_suite(name: str) -> Sequence[str]:
    """The scenarios that a suite names; nothing where there is none of that name."""
    from harness.catalog.project import Project
    from harness.catalog.scenarios import load_suites

    try:
        suite = load_suites(Project.find()).get(name)
    except HarnessError:
        return ()
    return [part.scenario for part in suite.parts] if suite else ()


def _chosen(typed: Sequence[str]) -> Iterator[Mapping[str, Sequence[str]]]:
    """The axes of each scenario that matches what was typed, of all where that is nothing."""
    from fnmatch import fnmatchcase

    from harness.catalog import header, toml
    from harness.catalog.project import Project
    from harness.catalog.scenarios import scenario_files

    files = [Path(text) for text in typed if text.endswith(".py")]
    try:
        known = scenario_files(Project.find())
    except HarnessError:
        known = []
    files += [path for path in known if not typed or any(fnmatchcase(path.stem, each) for each in typed)]
    for path in files:
        try:
            yield header.axes(toml.read_file(path), path)
        except HarnessError:
            continue

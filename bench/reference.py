"""`make reference`: writes the commands in cli.md, the names in python-api.md and the rules of security.md."""

import inspect
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
from pydantic import BeforeValidator
from typer.core import TyperGroup

from harness import session
from harness.analysis.results import Results
from harness.analysis.runs import Pair
from harness.cli import app
from harness.cli.advice import load_examples
from harness.session.request import LaunchRequest, Request, options
from harness.session.settings import ProjectSettings, get_variable
from harness.session.trust import Kind, Owner

DOCS = Path(__file__).parents[1] / "docs"
CLI_PAGE, API_PAGE = DOCS / "reference" / "cli.md", DOCS / "reference" / "python-api.md"
SECURITY_PAGE = DOCS / "explanation" / "security.md"
_BEGIN, _END = "<!-- the names: make reference -->", "<!-- the end of the names -->"
_COMMANDS_BEGIN, _COMMANDS_END = "<!-- the commands: make reference -->", "<!-- the end of the commands -->"
_RULES_BEGIN, _RULES_END = "<!-- the rules: make reference -->", "<!-- the end of the rules -->"
_SETTINGS_BEGIN, _SETTINGS_END = "<!-- the settings: make reference -->", "<!-- the end of the settings -->"
#: The rights of the code of each owner without a container.
_RIGHTS = {
    Owner.PROJECT: "runs with your rights",
    Owner.USER: "runs with your rights",
    Owner.OTHERS: "**refused** without `--trust`",
}

#: The page of each command that has one.
GUIDES = {
    "matrix": "[Compare releases](../how-to/compare-releases.md), [environments](environments.md), "
    "[read a report](report.md)",
    "run": "[Run a script or notebook](../how-to/run-a-script.md)",
    "repro": "[Reproduce an upstream issue](../how-to/reproduce-an-issue.md)",
    "bisect": "[Bisect a regression](../how-to/bisect-a-regression.md)",
    "profile": "[Profile](../how-to/profile.md)",
    "ask": "[Reproduce an upstream issue](../how-to/reproduce-an-issue.md)",
    "report": "[Read a report](report.md), [export formats](run-files.md#export-formats)",
    "compare": "[Compare two runs](../how-to/compare-releases.md#compare-two-runs)",
    "merge": "[Use several machines](../how-to/use-several-machines.md)",
    "bundle": "[What to paste upstream](report.md#what-to-paste-upstream)",
    "doctor": "[Reduce noise](../how-to/reduce-noise.md), [use GPUs](../how-to/use-gpus.md)",
    "history": "[Track history](../how-to/track-history.md), [nightly runs](../how-to/run-nightly-in-ci.md)",
    "images": "[Environments and images](environments.md#images), [work offline](environments.md#work-offline)",
    "scenarios": "[Write a scenario](../how-to/write-a-scenario.md)",
    "fleet": "[Use several machines](../how-to/use-several-machines.md#slots-of-one-machine)",
}
#: Names, and members of classes, that only the command line and the reports use. python-api.md omits them.
INTERNAL = {"Earlier", "find_raised_errors", "has_numbers", "is_torn", "load_earlier", "read_in_place"}
INTERNAL_MEMBERS = {
    "Planned": {
        *("moved", "line_sentences", "gpu_lines", "first_starts", "refuse_nothing"),
        *("aspects", "only", "with_one_control", "group_of", "untrusted", "describe_rights"),
    },
    "Results": {
        *("each_machine", "found", "found_of", "measured", "timeline", "compares", "has_several_scenarios"),
        *("untold_on_device", "ended", "samplings", "causes"),
    },
}
#: An option in a help text, outside code.
_FLAG = re.compile(r"(?<![\w`-])--?[a-z][a-z-]*")


def commands(group: Any = None, context: typer.Context | None = None) -> Iterator[tuple[Any, typer.Context]]:
    """Yield every command of a group, and the commands below it, in the order of the help."""
    group = group or typer.main.get_command(app)
    context = context or typer.Context(group, info_name="harness", **group.context_settings)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        below = typer.Context(command, parent=context, info_name=name)
        yield command, below
        if isinstance(command, TyperGroup):
            yield from commands(command, below)


def cli() -> str:
    """Return the part of cli.md that describes the commands."""
    lines = ["| command | description |", "| --- | --- |"]
    listed = list(commands())
    for command, context in listed:
        path = context.command_path
        lines.append(f"| [`{path}`](#{path.replace(' ', '-')}) | {_prose(_paragraphs(command.help)[0])} |")
    explained: dict[tuple[str, str], str] = {}
    for command, context in listed:
        lines += _section(command, context, explained)
    return "\n".join(lines)


def with_commands(page: str) -> str:
    """Return cli.md with the description of all commands."""
    text = "\n\n".join([_COMMANDS_BEGIN, cli(), _COMMANDS_END])
    return re.sub(f"{_COMMANDS_BEGIN}.*{_COMMANDS_END}", lambda _: text, page, flags=re.DOTALL)


def _section(command: Any, context: typer.Context, explained: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield the section of a command.

    An option that another command has too, with the same text, is explained once: `explained` has the first command
    of each name and text.
    """
    path = context.command_path
    yield f"\n{'#' * (1 + path.count(' '))} {path}\n"
    yield "\n\n".join(map(_prose, _paragraphs(command.help)))
    if guide := GUIDES.get(path.removeprefix("harness ")):
        yield f"\nMore about it: {guide}."
    yield f"\n```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```"
    if isinstance(command, TyperGroup):
        return
    for heading, records in command.list_options(context).items():
        rows: list[str] = []
        shared: dict[str, list[str]] = {}
        for name, text in records:
            first = explained.setdefault((name, text), path)
            if name.endswith("--help"):
                continue
            if first == path:
                rows.append(f"| `{_escape_bars(name)}` | {_prose(text)} |")
            else:
                short = name if name.startswith("[") else name.split()[0].rstrip(",")
                shared.setdefault(first, []).append(f"`{short}`")
        rows += (
            f"| {', '.join(names)} | see [{other}](#{other.replace(' ', '-')}) |" for other, names in shared.items()
        )
        if rows:
            yield "\n".join([f"\n| {heading} | |", "| --- | --- |", *rows])
    if lines := load_examples().get(path.removeprefix("harness ")):
        yield "\n".join(["\n```console", *(f"$ {line}" for line in lines), "```"])


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a docstring, each in one line."""
    return [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]


def _escape_bars(text: str) -> str:
    return text.replace("|", r"\|")


def _prose(text: str) -> str:
    """Return a help text as Markdown for a cell of a table."""
    text = re.sub(r"\s+\[default: (.*)\]$", r" Default: \1.", " ".join(text.split()))
    text = re.sub(r"\s+\[required\]$", " Required.", text)
    text = re.sub(r"\bx>=(\d+)", r"at least \1", text)
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = (_FLAG.sub(r"`\g<0>`", re.sub(r"[*_<>\[\]]", r"\\\g<0>", part)) for part in parts[::2])
    return _escape_bars("".join(parts))


def with_names(page: str) -> str:
    """Return python-api.md with the signatures and docstrings of all public names except INTERNAL."""
    public = [*(getattr(session, name) for name in session.__all__ if name not in INTERNAL), Results, Pair]
    public.sort(key=lambda member: member.__name__)
    functions = [_function(member) for member in public if inspect.isfunction(member)]
    documented = [member for member in public if inspect.isclass(member)]
    classes = [_class(member, documented) for member in documented]
    text = "\n\n".join([_BEGIN, "## Functions", *functions, "## Classes", *classes, _END])
    return re.sub(f"{_BEGIN}.*{_END}", lambda _: text, page, flags=re.DOTALL)


def with_settings(page: str) -> str:
    """Return cli.md with the table of the settings."""
    rows = [_SETTINGS_BEGIN, "", "| key in the file | environment variable | setting |", "| --- | --- | --- |"]
    for name, field in ProjectSettings.model_fields.items():
        key = "" if any(isinstance(check, BeforeValidator) for check in field.metadata) else f"`{name}`"
        rows.append(f"| {key} | `{get_variable(name)}` | {field.description} |")
    text = "\n".join([*rows, "", _SETTINGS_END])
    return re.sub(f"{_SETTINGS_BEGIN}.*{_SETTINGS_END}", lambda _: text, page, flags=re.DOTALL)


def with_rules(page: str) -> str:
    """Return security.md with the table of the kinds of code."""
    rows = [f"| {kind.description} | {kind.owner} | runs | {_RIGHTS[kind.owner]} |" for kind in Kind]
    text = "\n".join([_RULES_BEGIN, "", "| code | whose | in a container | without one |", "| --- | --- | --- | --- |"])
    return re.sub(f"{_RULES_BEGIN}.*{_RULES_END}", lambda _: "\n".join([text, *rows, "", _RULES_END]), page, flags=re.S)


def _function(function: Any) -> str:
    signature = _signature(function)
    if len(signature) > 96:  # one parameter in each line
        start, inner, end = re.fullmatch(r"(\w+\()(.*)(\) -> .*)", signature).groups()  # type: ignore[union-attr]
        signature = "\n".join([start, *(f"    {part}," for part in re.split(r", (?=\w+: |\*)", inner)), end])
    return f"### {function.__name__}\n\n```python\n{signature}\n```\n\n{inspect.getdoc(function)}"


def _class(kind: type, documented: Sequence[type]) -> str:
    """Return the text of a class, with members that it inherits from a class of harness without a text."""
    parts = [f"### {kind.__name__}", inspect.getdoc(kind) or ""]
    if issubclass(kind, LaunchRequest):
        fields = _fields(kind)
        if kind is not Request:
            shared = {name: field for name, field in _fields(Request).items() if fields.get(name) == field}
            names = ", ".join(f"`{name}`" for name in shared)
            parts.append(f"It has these fields of [Request](#request): {names}. It also has:")
            fields = {name: field for name, field in fields.items() if name not in shared}
        parts.append("\n".join(_item(name, annotation, flag) for name, (annotation, flag) in fields.items()))
    parents = [
        parent for parent in kind.mro()[1:] if parent.__module__.startswith("harness.") and parent not in documented
    ]
    attributes = {name: member for parent in [*parents, kind] for name, member in vars(parent).items()}
    internal = INTERNAL_MEMBERS.get(kind.__name__, set())
    members = [_member(name, member) for name, member in attributes.items() if name not in internal and name[0] != "_"]
    items = "\n".join(member for member in members if member)
    if items and parts[-1].rpartition("\n\n")[2].startswith("- "):  # the list of fields continues
        parts[-1] += f"\n{items}"
    elif items:
        parts.append(items)
    return "\n\n".join(parts)


def _item(name: str, kind: str, flag: str) -> str:
    """Return the item of a field of a request, with its option if that has another name."""
    other = "" if flag == f"--{name.replace('_', '-')}" else f" (`{flag}`)"
    return f"- `{name}`: `{kind}`{other}"


def _fields(kind: type) -> dict[str, tuple[str, str]]:
    """Return the type and the option of each field of a request."""
    return {
        name: (_plain(inspect.formatannotation(field.type)), field.flags[-1]) for name, field in options(kind).items()
    }


def _member(name: str, member: Any) -> str:
    """Return the item of a property or a method; an empty text for other attributes."""
    if isinstance(member, property | cached_property):
        text = re.sub(r"^Return (.)", lambda match: match[1].upper(), _paragraphs(member.__doc__ or "")[0])
        return f"- `{name}`: {text}"
    if inspect.isfunction(member):
        parameters = [parameter for parameter in inspect.signature(member).parameters if parameter != "self"]
        return f"- `{name}({', '.join(parameters)})`: {_paragraphs(member.__doc__ or '')[0]}"
    return ""


def _signature(function: Any) -> str:
    return _plain(f"{function.__name__}{inspect.signature(function)}")


def _plain(text: str) -> str:
    """Return a signature or an annotation without the names of modules and without quotes around types."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", text)


def write() -> None:
    """Write the pages."""
    API_PAGE.write_text(with_names(API_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    CLI_PAGE.write_text(with_settings(with_commands(CLI_PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
    SECURITY_PAGE.write_text(with_rules(SECURITY_PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()

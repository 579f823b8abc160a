"""Help with headings and examples, and errors that suggest the right command or option."""

import re
import shlex
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from harness import package_data
from harness.cli.messages import say
from harness.model.errors import UsageError
from harness.model.texts import find_nearest

#: The advice for an argument of a command that selects cells by options.
_OPTIONS_ADVICE = (
    "Use -s for scenarios, -e for environments, -a AXIS=VALUE for axis values, and --suite for a suite. To measure a "
    "plain script: harness run FILE -e ENVIRONMENT"
)

#: The options that most people use, the most used first. `-h` shows the first _BRIEF_COUNT of a command.
_USUAL = (
    *("-s", "--suite", "--good", "--bad", "--find-fix", "-e", "--dry-run", "--budget", "--rounds", "--family", "--all"),
    *("--grep", "--function", "--with", "--scan", "-a", "--gpu", "--backend", "--trust"),
)
_BRIEF_COUNT = 8
#: The key of a context for whether help is brief.
_BRIEF = "harness.brief"

#: The class of the errors that typer raises for a command line.
_ClickError: Any = typer.BadParameter.__mro__[1]

#: If a command has more options than this, help lists them under headings.
_MANY = 10

#: The type that typer shows for an option without a metavar.
_TYPE = re.compile(r" <(?:str|int|path|file|directory|list\[\w+\])>$")


class _Conversion:
    """Converts values as typer does. But texts, switches and missing values don't import pydantic, which is slow."""

    @staticmethod
    def coerce(value: Any, *, param: Any, ctx: Any) -> Any:
        """Return the converted value of a parameter."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if param.type_descriptor.annotation in (str, bool, list[str]):
            return list(value) if isinstance(value, tuple) else value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def load_examples() -> dict[str, list[str]]:
    """Return the lines of the examples in templates/examples.txt, by the name of the command below `harness`."""
    text = (package_data.FOLDER / "templates" / "examples.txt").read_text(encoding="utf-8")
    _, *parts = re.split(r"(?m)^== ?(.*)\n", text)
    return {name: lines.strip().splitlines() for name, lines in zip(parts[::2], parts[1::2], strict=True)}


class _WithExamples:
    """A command or group whose help ends with examples. For shell completion, it doesn't convert values."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        if lines := load_examples().get(" ".join(ctx.command_path.split()[1:])):
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments. Raises UsageError. For shell completion, don't convert the values."""
        if ctx.resilient_parsing:  # to convert values, typer imports pydantic, which is slow
            ctx.params, ctx.args, _ = self.make_parser(ctx).parse_args(args)  # type: ignore[attr-defined]
            return list(ctx.args)
        ctx.meta[_BRIEF] = "-h" in args
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            param._runtime_param = _Conversion
        try:
            return super().parse_args(ctx, [*args])  # type: ignore[misc]
        except _ClickError as error:
            if not args and isinstance(self, TyperGroup):  # a group without a command shows its help
                raise
            advice = f"To show the options: {ctx.command_path} -h"
            if getattr(error, "possibilities", None) is not None:
                raise _make_option_error(self, ctx.command_path, args, error.option_name) from None
            error.message = error.message.removeprefix("Value error, ")  # of pydantic
            raise UsageError(f"{error.format_message().rstrip('.')}.", advice) from None


def _make_option_error(command: Any, path: str, args: list[str], name: str) -> UsageError:
    """Return the error for an option that a command doesn't have."""
    import difflib

    flags = [flag for param in command.params for flag in param.opts if flag.startswith("--")]
    similar = [flag for flag in flags if flag.startswith(name)] or difflib.get_close_matches(name, flags, 1, 0.75)
    advice = f"To show the options: {path} -h"
    if similar:
        advice = f"Did you mean {similar[0]}? {advice}"
    elif any(word.endswith((".py", ".ipynb", ".md")) for word in args) and _has_script_arguments(command):
        start = next((at for at, word in enumerate(args) if word.partition("=")[0] == name), len(args))
        words = shlex.join([*args[:start], "--", *args[start:]])
        advice = f"Write options of the script after `--`: {path} {words}"
    return UsageError(f"`{path}` has no option {name}.", advice)


def _has_script_arguments(command: Any) -> bool:
    return any(param.name == "arguments" for param in command.params)


class CommandGroup(_WithExamples, TyperGroup):
    """A group of commands whose error for an unknown command suggests the right command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names. Raises UsageError for an unknown command."""
        name = args[0]
        if self.get_command(ctx, name) is not None or name.startswith("-"):
            return super().resolve_command(ctx, args)
        if name == "help":
            raise UsageError("Unknown command: 'help'.", f"Use: {' '.join([ctx.command_path, *args[1:], '--help'])}")
        commands = {child: self.get_command(ctx, child) for child in self.list_commands(ctx)}
        groups = [child for child, group in commands.items() if name in getattr(group, "commands", ())]
        if groups:
            uses = " or ".join(f"{ctx.command_path} {group} {name}" for group in groups)
            raise UsageError(f"Unknown command: {name!r}.", f"Use: {uses}")
        nearest_name = find_nearest(name, commands)
        suggestion = f" Did you mean {nearest_name}?" if nearest_name else ""
        raise UsageError(f"Unknown command: {name!r}.{suggestion}", f"To list all commands: {ctx.command_path} --help")


class Command(_WithExamples, TyperCommand):
    """A command whose error for an unexpected argument suggests the right option."""

    allow_extra_args = True

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options. If there are many, write them under the headings of their panels."""
        for heading, rows in self.list_options(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)
        if self._is_brief(ctx):
            formatter.write(f"\nAll options: {ctx.command_path} --help\n")

    def _is_brief(self, ctx: Any) -> bool:
        return bool(ctx.meta.get(_BRIEF)) and len(self.params) > _MANY

    def list_options(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the names and help texts of arguments and options, by heading. Brief help has only the usual options.

        If an option has the same flag as an option of a request, it also has that option's metavar and panel, unless
        the command sets them.
        """
        from harness.session.options import OptionPanel  # noqa: PLC0415 - only help needs it
        from harness.session.request import Request, options  # noqa: PLC0415 - only help needs it

        params: list[Any] = self.get_params(ctx)
        records = [(param, record) for param in params if (record := param.get_help_record(ctx))]
        is_brief = self._is_brief(ctx)
        if is_brief:
            usual = [param for flag in _USUAL for param, _ in records if flag in param.opts][:_BRIEF_COUNT]
            records = [
                (param, (name, re.split(r"(?<=[.:]) (?=[A-Z])", text)[0]))
                for param, (name, text) in records
                if param in usual or param.param_type_name == "argument"
            ]
        by_flag = {flag: field.option for field in options(Request).values() for flag in field.flags}
        entries: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *OptionPanel, "Options")}
        for param, (full_name, text) in records:
            name = full_name.replace(" --env,", "")  # an alias
            if param.param_type_name == "argument":
                entries["Arguments"].append((_TYPE.sub("", name), text))
                continue
            option = by_flag.get(param.opts[-1])
            panel = param.rich_help_panel or (option.panel if option else "")
            value = (option.metavar if option else "") or param.name.upper()
            entries[panel if panel and len(records) > _MANY and not is_brief else "Options"].append(
                (_TYPE.sub(f" {value}", name), text)
            )
        return {heading: rows for heading, rows in entries.items() if rows}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. For an unexpected argument, raises UsageError with the right option."""
        remaining: list[str] = super().parse_args(ctx, args)
        self._say_script_options(args)
        if ctx.args and not ctx.resilient_parsing:
            flags = {flag for param in self.params for flag in param.opts}
            raise UsageError(
                f"Unexpected argument: {ctx.args[0]!r}.",
                _OPTIONS_ADVICE if {"-e", "-s"} <= flags else f"To list the options: {ctx.command_path} --help",
            )
        return remaining

    def _say_script_options(self, args: list[str]) -> None:
        """Print a note about options of harness that come after `--`, so that the script gets them."""
        if "--" not in args or not _has_script_arguments(self):
            return
        flags = {flag for param in self.params for flag in param.opts}
        for word in args[args.index("--") + 1 :]:
            if word.partition("=")[0] in flags:
                say(f"The script gets {word}, because it comes after `--`. For harness, write it before `--`.")

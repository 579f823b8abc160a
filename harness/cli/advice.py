"""Help with headings and examples, and errors that suggest the right command or option."""

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from harness.model.errors import UsageError
from harness.model.texts import find_nearest

#: The advice for an argument of a command that selects cells by options.
_OPTIONS_ADVICE = (
    "Use -s for scenarios, -e for environments, -a AXIS=VALUE for axis values, and --suite for a suite. To measure a "
    "plain script: harness run FILE -e ENVIRONMENT"
)

#: If a command has more options than this, help lists them under headings.
_MANY = 10

#: The type that typer shows for an option without a metavar.
_TYPE = re.compile(r" <(?:str|int|path|file|directory|list\[\w+\])>$")


class _WithExamples:
    """A command or group whose help ends with examples. For shell completion, it doesn't convert values."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        from harness.cli.examples import EXAMPLES  # noqa: PLC0415 - only help needs it

        lines = EXAMPLES.get(" ".join(ctx.command_path.split()[1:]), "").strip().splitlines()
        if lines:
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments. For shell completion, don't convert the values."""
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        from harness.cli.completion_server import read_as_typed  # noqa: PLC0415 - see there

        return read_as_typed(self, ctx, args)


class CommandGroup(_WithExamples, TyperGroup):
    """A group of commands whose error for an unknown command suggests the right command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names. Raises UsageError for an unknown command."""
        name = args[0]
        if self.get_command(ctx, name) is not None or name.startswith("-"):
            return super().resolve_command(ctx, args)
        nearest_name = find_nearest(name, self.list_commands(ctx))
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

    def list_options(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the names and help texts of arguments and options, by heading.

        If an option has the same flag as an option of a request, it also has that option's metavar and panel, unless
        the command sets them.
        """
        from harness.session.options import OptionPanel  # noqa: PLC0415 - only help needs it
        from harness.session.request import Request, options  # noqa: PLC0415 - only help needs it

        params: list[Any] = self.get_params(ctx)
        records = [(param, record) for param in params if (record := param.get_help_record(ctx))]
        by_flag = {flag: field.option for field in options(Request).values() for flag in field.flags}
        entries: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *OptionPanel, "Options")}
        for param, (name, text) in records:
            if param.param_type_name == "argument":
                entries["Arguments"].append((_TYPE.sub("", name), text))
                continue
            option = by_flag.get(param.opts[-1])
            panel = param.rich_help_panel or (option.panel if option else "")
            value = (option.metavar if option else "") or param.name.upper()
            entries[panel if panel and len(records) > _MANY else "Options"].append((_TYPE.sub(f" {value}", name), text))
        return {heading: rows for heading, rows in entries.items() if rows}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. For an unexpected argument, raises UsageError with the right option."""
        try:
            remaining: list[str] = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # of pydantic
            raise
        if ctx.args and not ctx.resilient_parsing:
            flags = {flag for param in self.params for flag in param.opts}
            raise UsageError(
                f"Unexpected argument: {ctx.args[0]!r}.",
                _OPTIONS_ADVICE if {"-e", "-s"} <= flags else f"To list the options: {ctx.command_path} --help",
            )
        return remaining

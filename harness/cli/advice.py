"""What to type in place of a command or a name that is none: errors with advice, where typer has none."""

from contextlib import suppress
from typing import Any

from typer.core import TyperCommand, TyperGroup

from harness.model.errors import HarnessError, UsageError

#: Words that other tools have for what a command here does.
_WORDS = {
    "run": "matrix",
    "measure": "matrix",
    "bench": "matrix",
    "benchmark": "matrix",
    "time": "matrix",
    "resume": "matrix --resume RUN",
    "suites": "scenarios list",
    "list": "scenarios list",
    "new": "scenarios new",
    "check": "scenarios check",
    "environments": "images list",
    "envs": "images list",
    "build": "images build",
    "pull": "images build",
    "lock": "images lock",
    "show": "report RUN",
    "diff": "compare RUN RUN",
    "version": "--version",
}


class CommandGroup(TyperGroup):
    """Commands; for one that is not there, the one that is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first argument. Raises UsageError."""
        typed = args[0]
        if self.get_command(ctx, typed) is None and not typed.startswith("-") and not ctx.resilient_parsing:
            raise UsageError(
                f"There is no command {typed!r}.{self._meant(ctx, typed)}", f"All: {ctx.command_path} --help"
            )
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: Any, typed: str) -> str:
        if ctx.parent is None and typed in _WORDS:
            return f" Use: harness {_WORDS[typed]}"
        from difflib import get_close_matches

        near = get_close_matches(typed, self.list_commands(ctx), 1)
        return f" Did you mean {near[0]}?" if near else ""


class Command(TyperCommand):
    """A command; for a name that it does not take by itself, the option that does."""

    allow_extra_args = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What was typed, by the options' names. Raises UsageError for what belongs to none."""
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            flags = {flag for each in self.params for flag in each.opts}
            raise UsageError(
                f"{ctx.command_path} takes no {ctx.args[0]!r} without an option.",
                _option(ctx.args[0]) if {"-e", "-s"} <= flags else f"Its options: {ctx.command_path} --help",
            )
        return rest


def _option(name: str) -> str:
    """Which option takes this name."""
    from harness.catalog.environments import load_environments
    from harness.catalog.project import Project
    from harness.catalog.scenarios import load_suites, scenario_files

    with suppress(HarnessError):
        project = Project.find()
        if name in load_environments(project):
            return f"{name} is an environment: type -e {name}, or several as -e ONE,OTHER."
        if name.endswith(".py") or name in {path.stem for path in scenario_files(project)}:
            return f"{name} is a scenario: type -s {name}, or several as -s ONE,OTHER."
        if name in load_suites(project):
            return f"{name} is a suite: type --suite {name}."
    return "Scenarios are named with -s, environments with -e, values with -a AXIS=VALUE, a suite with --suite."

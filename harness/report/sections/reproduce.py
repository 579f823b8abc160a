"""How to reproduce a run, with harness or without it."""

import shlex
from collections.abc import Iterator

from harness.analysis.results import Results
from harness.model.run import Run
from harness.model.texts import joined
from harness.report.blocks import FILES, Block, Code, Section, Text


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the last section of a report."""
    yield Section("Reproduce", "reproduce", list(_list_blocks(results)))


def _list_blocks(results: Results) -> Iterator[Block]:
    run = results.run
    script_names = [scenario.path.name for scenario in run.scenarios if scenario.name in run.scripts]
    if script_names:
        verb, pronoun = ("isn't", "it") if len(script_names) == 1 else ("aren't", "them")
        yield Text(
            f"{joined(script_names)} {verb} part of the project. First, save {pronoun} from “How it was measured” to "
            "the path in the command.",
            where=FILES,
        )
    commands = [
        make_command(run),
        "# the same report again, from the stored launches",
        shlex.join(["harness", "report", run.shown_folder]),
    ]
    if results.found.series:
        commands += [
            "# a script that makes the main comparison without harness; for others, add -s, -e or -a",
            shlex.join(["harness", "bundle", run.shown_folder]),
        ]
    yield Code("\n".join(commands), where=FILES)


def make_command(run: Run) -> str:
    """Return the command of the run, with its seed."""
    has_seed = any(word == "--seed" or word.startswith("--seed=") for word in run.command)
    return shlex.join([*run.command, *([] if has_seed else ["--seed", str(run.plan.seed)])])

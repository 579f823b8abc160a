"""How to run it again, with the harness and without it."""

import shlex
from collections.abc import Iterator

from harness.analysis.results import Results
from harness.model.texts import joined
from harness.report.again import Again, again
from harness.report.blocks import FILES, Block, Code, Folded, Section, Text

#: More lines than these are folded.
LINES = 4


def sections(results: Results) -> Iterator[Section]:
    """How to run it again. Nothing stands after it."""
    yield Section("Again", "again", list(_blocks(results)))


def _blocks(results: Results) -> Iterator[Block]:
    run = results.run
    # by hand all environments run the same scenario, that of the first answer
    answered = sorted(results.answers, key=lambda each: each.table is not results.answers[0].table)
    made = again(run, results.found, answered, results.by_hand)
    own = [scenario.path.name for scenario in run.scenarios if scenario.name in run.scripts]
    if own:
        files = joined(own)
        yield Text(
            f"{files} {'is' if len(own) == 1 else 'are'} not the project's: save {'it' if len(own) == 1 else 'them'} "
            "from “What was measured” first, where the command names it.",
            where=FILES,
        )
    yield Code(made.command, where=FILES)
    yield Text("This report from the stored launches:", where=FILES)
    yield Code(shlex.join(["harness", "report", run.shown_folder]), where=FILES)
    if made.by_hand:
        yield Text(by_hand(made), where=FILES)
        yield from (Code(line, where=FILES) for line in [*made.others, *filter(None, [made.bake])])
        lines = Code("\n".join(made.by_hand), where=FILES)
        many = len(made.by_hand) > LINES
        yield Folded("One cell of each environment by hand", [lines], where=FILES) if many else lines


def by_hand(made: Again) -> str:
    """What the lines are that need no harness."""
    count = len(made.others)
    first = "first is" if count == 1 else f"first {count} are"
    others = f" (the {first} not in docker-bake.hcl, so the harness builds it)" if count else ""
    return (
        f"Without the harness, in the project's folder: build the images, then run one cell in each{others}. Each runs "
        "for two seconds and prints the time per step. A quick check, not a measurement."
    )

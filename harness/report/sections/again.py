"""How to run it again: the harness's command, and without it what the backend says can be typed by hand."""

import shlex
from collections.abc import Iterator, Sequence

from harness.analysis.results import Results
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.model.texts import joined
from harness.report.blocks import FILES, Block, Code, Folded, Section, Text

#: More lines than these are folded.
LINES = 4


def sections(results: Results) -> Iterator[Section]:
    """How to run it again. Nothing stands after it."""
    yield Section("Reproduce", "reproduce", list(_blocks(results)))


def _blocks(results: Results) -> Iterator[Block]:
    run = results.run
    own = [scenario.path.name for scenario in run.scenarios if scenario.name in run.scripts]
    if own:
        yield Text(
            f"{joined(own)} {'is' if len(own) == 1 else 'are'} not the project's: save "
            f"{'it' if len(own) == 1 else 'them'} from “Run details” first, where the command names it.",
            where=FILES,
        )
    yield Code(command(run), where=FILES)
    yield Text("This report from the stored launches:", where=FILES)
    yield Code(shlex.join(["harness", "report", run.shown_folder]), where=FILES)
    by_hand = results.by_hand(run, {name: cell.anywhere for name, cell in chosen(results).items()})
    if by_hand.cells:
        yield Text(_without_the_harness(by_hand.others, _prints(results)), where=FILES)
        yield from (Code(line, where=FILES) for line in [*by_hand.others, by_hand.bake] if line)
        lines = Code("\n".join(by_hand.cells), where=FILES)
        many = len(by_hand.cells) > LINES
        yield Folded("One cell of each environment by hand", [lines], where=FILES) if many else lines


def command(run: Run) -> str:
    """The command that was typed, with the seed that it got."""
    seeded = any(word == "--seed" or word.startswith("--seed=") for word in run.command)
    return shlex.join([*run.command, *([] if seeded else ["--seed", str(run.plan.seed)])])


def chosen(results: Results) -> dict[str, Cell]:
    """One cell of each environment that anything was launched in: of an answer's row that is farthest from equal."""
    # all environments run the same scenario, that of the first answer
    answers = sorted(results.answers, key=lambda each: each.table is not results.answers[0].table)
    farthest = [max(answer.findings, key=lambda each: each.distance).compared for answer in answers]
    told = [cell for compared in farthest for cell in (compared.other, compared.cell)]
    first: dict[str, Cell] = {}
    for cell in [*told, *results.found.series, *results.run.plan.cells]:
        first.setdefault(cell.environment, cell)
    return first


def _prints(results: Results) -> str:
    """What one cell by hand does."""
    made = [launch for cell in chosen(results).values() for launch in results.found.numbers.get(cell, ())]
    if made and all(launch.fixes_calls for launch in made):
        return "makes the scenario's calls and prints what it measured"
    return "runs for two seconds and prints the time per step"


def _without_the_harness(others: Sequence[str], does: str) -> str:
    first = "first is" if len(others) == 1 else f"first {len(others)} are"
    built = f" (the {first} not in docker-bake.hcl, so the harness builds it)" if others else ""
    return (
        f"Without the harness, in the project's folder: build the images, then run one cell in each{built}. Each "
        f"{does}. A quick check, not a measurement."
    )

"""How to run it again: the harness's command, and without it what the backend says can be typed by hand."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.analysis.answers import Answer
from harness.analysis.lookup import Lookup
from harness.model.run import AskByHand, Run
from harness.model.scenario import Cell


@dataclass(frozen=True, slots=True)
class Again:
    """Lines to type in the project's folder.

    `command` is the harness's. `bake` builds the images of the catalogue's environments, and `others` each of those
    that are not in it, by the harness. `by_hand` runs one cell of each environment, without the harness. All but the
    first are empty where the backend knows no such lines.
    """

    command: str
    bake: str
    others: Sequence[str]
    by_hand: Sequence[str]


def again(run: Run, found: Lookup, answered: Sequence[Answer], ask: AskByHand) -> Again:
    """How to run it again. By hand that is, where there is one, the row of an answer that is farthest from equal."""
    told = ask(run, _chosen(run, found, answered))
    return Again(_typed(run), told.bake, told.others, told.cells)


def _typed(run: Run) -> str:
    """The command that was typed, with the seed that it got."""
    typed = list(run.command)
    seeded = any(word == "--seed" or word.startswith("--seed=") for word in typed)
    return shlex.join(typed if seeded else [*typed, "--seed", str(run.plan.seed)])


def _chosen(run: Run, found: Lookup, answered: Sequence[Answer]) -> dict[str, Cell]:
    """One cell of each environment that anything was launched in."""
    told = [each for answer in answered for each in _farthest(answer)]
    chosen: dict[str, Cell] = {}
    for cell in [*told, *found.series, *run.plan.cells]:
        chosen.setdefault(cell.environment, cell)
    return chosen


def _farthest(answer: Answer) -> Iterator[Cell]:
    """Both cells of the row whose times lie farthest apart, the base first."""
    ends = (answer.findings[0], answer.findings[-1])
    finding = max(ends, key=lambda each: max(each.ratio.value, 1.0 / each.ratio.value))
    yield from (finding.compared.other, finding.compared.cell)

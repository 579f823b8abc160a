"""A short summary in Markdown, for the page of a CI job: `>> "$GITHUB_STEP_SUMMARY"`."""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.verdicts import Verdict
from harness.model.launch import Launch
from harness.model.run import Run
from harness.report import escape
from harness.report.comparisons import Line, Tally, tally, too_few_rounds
from harness.report.document import Document, build
from harness.report.markdown import table
from harness.report.templates import environment

#: How many comparisons, and how many reasons for no number, are shown at most.
COMPARISONS, ABSENCES = 20, 8

# what somebody has to look at, the most urgent first; the others are counted
_SHOWN = (Verdict.SLOWER, Verdict.DIFFERENT_WORK, Verdict.FASTER, Verdict.UNCLEAR)


@dataclass(frozen=True, slots=True)
class _Total:
    """All tables' comparisons, as far as the sentences of one table ask for them."""

    tally: Tally
    too_few_rounds: bool


def render(run: Run, launches: Sequence[Launch]) -> str:
    """Answers, the verdicts that matter, what gave no number, and where the report is: fewer than 60 lines."""
    from markupsafe import Markup

    document = build(run, launches)
    known = _lines(document)
    shown = sorted((each for each in known if each[1].compared.verdict in _SHOWN), key=_urgency)
    jinja = environment(escape.markdown)
    jinja.filters["fenced"] = lambda text, language: Markup(escape.fenced(text, language))
    jinja.globals["table"] = lambda lines: Markup(_table(lines))
    text = jinja.get_template("summary.md.j2").render(
        document=document,
        total=_Total(
            tally(line.compared.verdict for _, line in known), too_few_rounds(line.compared for _, line in known)
        ),
        lines=shown[:COMPARISONS],
        more=len(shown[COMPARISONS:]),
        absences=ABSENCES,
        command=shlex.join(["harness", "report", document.folder]),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _lines(document: Document) -> list[tuple[str, Line]]:
    """Every comparison after what tells its row apart, the scenario's name included where there are several."""
    several = len(document.tables) > 1
    return [
        (", ".join([*([view.scenario.name] if several else []), *line.labels]), line)
        for view in document.tables
        for line in (view.comparisons.lines if view.comparisons else ())
    ]


def _urgency(each: tuple[str, Line]) -> tuple[int, float]:
    compared: Any = each[1].compared
    return _SHOWN.index(compared.verdict), -abs(math.log(compared.estimate.value))


def _table(lines: Sequence[tuple[str, Line]]) -> str:
    headings = ["row", "comparison", "difference", "verdict"]
    rows = [
        [escape.markdown(text) for text in (where, line.what, line.gain, line.compared.verdict or "")]
        for where, line in lines
    ]
    if any(where for where, _ in lines):
        return table(headings, rows, right=[2])
    return table(headings[1:], [row[1:] for row in rows], right=[1])

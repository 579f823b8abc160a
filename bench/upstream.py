"""`python -m bench.upstream results/RUN...`: write the table of upstream issues from stored runs of `harness repro`.

What the runs told of each claim is kept in docs/upstream.json, a newer run's in place of an older one's, and the table
is made of that. Without a run it is only made again.
"""

import json
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import session
from harness.analysis.claims import ClaimResult, Outcome, Place
from harness.analysis.results import Results
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.report import escape, format
from harness.report.sections.claims import claimed

DOCS = Path(__file__).parent.parent / "docs"
PAGE, KEPT = DOCS / "how-to" / "reproduce-an-issue.md", DOCS / "upstream.json"
#: What the table stands between.
BEGIN, END = "<!-- the table: python -m bench.upstream -->", "<!-- the end of the table -->"

HEADS = ("issue", "claim", "claimed", "measured", "outcome", "in the newest", "fixed", "date", "machine")

Row = Mapping[str, Any]


def rows(results: Results) -> list[Row]:
    """What a run tells of each claim that it was asked for, as JSON values."""
    return [_row(results, each) for each in results.claims if each.claim.issue.short in results.run.plan.claims]


def merged(before: Iterable[Row], after: Iterable[Row]) -> list[Row]:
    """Both, `after` in place of what is of the same claim, unless that measured it and this did not; by issue."""
    known: dict[tuple[str, str, str], Row] = {}
    for row in [*before, *after]:
        key = row["issue"], row["scenario"], row["reported"]
        if key not in known or row["at"]["outcome"] != Outcome.NOT_MEASURED:
            known[key] = row
    return sorted(known.values(), key=lambda row: (row["issue"].partition("#")[0], _number(row), row["reported"]))


def table(kept: Sequence[Row]) -> str:
    """The table in Markdown, with how many claims came out how."""
    counts = {outcome: sum(row["at"]["outcome"] == outcome for row in kept) for outcome in Outcome}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    fixed = sum(bool(row["fixed"]) for row in kept)
    issues = len({row["issue"] for row in kept})
    count = (
        f"{counted(len(kept), 'claim')} of {counted(issues, 'issue')}: {told or 'none measured yet'}"
        f"{f'; {fixed} fixed since, measured' if fixed else ''}."
    )
    lines = [
        *textwrap.wrap(count, 100),
        "",
        f"| {' | '.join(HEADS)} |",
        f"| {' | '.join('---' for _ in HEADS)} |",
    ]
    return "\n".join([*lines, *map(_line, kept)])


def page(text: str, kept: Sequence[Row]) -> str:
    """The page's text with the table in it."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{table(kept)}\n\n{END}{after}"


def stored() -> list[Row]:
    """What is kept."""
    found: list[Row] = json.loads(KEPT.read_text()) if KEPT.exists() else []
    return found


def _row(results: Results, result: ClaimResult) -> Row:
    claim, run = result.claim, results.run
    return {
        "issue": claim.issue.short,
        "url": claim.issue.url,
        "scenario": result.scenario.name,
        "reported": claim.reported,
        "claimed": claimed(claim),
        "at": _place(result.at),
        "elsewhere": [_place(place) for place in result.elsewhere],
        "fixed": result.fixed.environment if result.fixed else "",
        "seconds": round(sum(launch.seconds for launch in results.launches if launch.cell in _cells(result))),
        "date": run.started[:10],
        "machine": str(run.host.get("cpu", "")),
    }


def _cells(result: ClaimResult) -> set[Cell]:
    return {cell for place in result.places for cell in (place.worse, place.better) if cell}


def _place(place: Place) -> Row:
    estimate, better = place.estimate, place.better
    interval = estimate.interval if estimate else None
    apart = better is not None and better.environment != place.environment
    return {
        "environment": f"{place.environment} vs {better.environment}" if better and apart else place.environment,
        "value": _digits(estimate.value) if estimate else None,
        "interval": [_digits(interval.low), _digits(interval.high)] if interval else None,
        "rounds": estimate.rounds if estimate else 0,
        "outcome": place.outcome.value,
        "why": place.why,
    }


def _line(row: Row) -> str:
    newest = row["elsewhere"][-1] if row["elsewhere"] else None
    entries = [
        f"[{row['issue']}]({row['url']})",
        row["reported"],
        row["claimed"],
        f"{row['at']['environment']}: {_measured(row['at'], row['claimed'])}",
        row["at"]["outcome"],
        f"{newest['environment']}: {newest['outcome']}, {_measured(newest, row['claimed'])}" if newest else "",
        row["fixed"],
        row["date"],
        row["machine"],
    ]
    return f"| {' | '.join(escape.markdown(each) if at else each for at, each in enumerate(entries))} |"


def _measured(place: Row, claimed: str) -> str:
    """`12.3× (11.9 to 12.8)`, or why there is nothing."""
    if place["value"] is None:
        return str(place["why"]) or "nothing"
    unit = "×" if claimed.endswith("×") else " s" if claimed.endswith(" s") else " B a call"
    ends = f" ({' to '.join(map(format.number, place['interval']))})" if place["interval"] else ""
    return f"{format.number(place['value'])}{unit}{ends}"


def _digits(value: float) -> float:
    """Four digits: more say nothing, and change with every run."""
    return float(f"{value:.4g}")


def _number(row: Row) -> int:
    return int(row["issue"].rpartition("#")[2])


def main(arguments: Sequence[str]) -> None:
    """Take in what the named runs tell, and write the table."""
    found = [row for run in arguments for row in rows(session.read(Path(run)))]
    kept = merged(stored(), found)
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(PAGE.read_text(), kept))
    print(f"{counted(len(found), 'claim')} taken in; {counted(len(kept), 'claim')} in {PAGE.relative_to(DOCS.parent)}.")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Write the table of docs/results/upstream-issues.md: `python -m bench.upstream results/RUN...`.

docs/upstream.json has the newest result of each claim. The runs of `harness repro` that you pass are added to that
file, and the table is generated from it. Without a run, the table is only regenerated.
"""

import json
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from harness import session
from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.claims import ClaimPlace, ClaimResult
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.report import escape, format
from harness.report.sections.claims import format_claimed
from harness.upstream.stored import PLACE

DOCS = Path(__file__).parent.parent / "docs"
PAGE, STORED = DOCS / "results" / "upstream-issues.md", DOCS / "upstream.json"
#: The lines before and after the table in the page.
BEGIN, END = "<!-- the table: python -m bench.upstream -->", "<!-- the end of the table -->"

HEADS = (
    "issue",
    "claim",
    "reported with",
    "program",
    "claimed",
    "measured",
    "outcome",
    "newest release",
    "fixed between",
    "date",
    "machine",
)

Row = Mapping[str, Any]


def rows(results: Results) -> list[Row]:
    """Return the result of each claim that a run measured, as JSON values."""
    return [
        _row(results, claim_result)
        for claim_result in results.claims
        if claim_result.claim.issue.short in results.run.plan.claims
    ]


def merge_rows(before: Iterable[Row], after: Iterable[Row]) -> list[Row]:
    """Merge rows by claim, sorted by issue.

    Rows of `after` win, but a row that wasn't measured never replaces another one.
    """
    by_claim: dict[tuple[str, str, str], Row] = {}
    for row in [*before, *after]:
        key = row["issue"], row["scenario"], row["reported"]
        if key not in by_claim or row["at"]["outcome"] != ClaimOutcome.NOT_MEASURED:
            by_claim[key] = row
    return sorted(by_claim.values(), key=lambda row: (row["issue"].partition("#")[0], _number(row), row["reported"]))


def table(kept: Sequence[Row]) -> str:
    """Return the table in Markdown, and before it a sentence with the number of claims per outcome."""
    counts = {outcome: sum(row["at"]["outcome"] == outcome for row in kept) for outcome in ClaimOutcome}
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    fixed = sum(bool(row["fixed"]) for row in kept)
    issues = len({row["issue"] for row in kept})
    count = (
        f"{counted(len(kept), 'claim')} of {counted(issues, 'issue')}: {outcomes or 'none measured yet'}"
        f"{f'. A later release fixed {fixed} of them' if fixed else ''}."
    )
    lines = [*textwrap.wrap(count, 100), "", f"| {' | '.join(HEADS)} |", f"| {' | '.join('---' for _ in HEADS)} |"]
    return "\n".join([*lines, *map(_line, kept)])


def page(text: str, kept: Sequence[Row]) -> str:
    """Return the text of the page with the table of these rows."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{table(kept)}\n\n{END}{after}"


def read_rows() -> list[Row]:
    """Return the rows of docs/upstream.json."""
    listed: list[Row] = json.loads(STORED.read_text()) if STORED.exists() else []
    return listed


def _row(results: Results, result: ClaimResult) -> Row:
    claim, run = result.claim, results.run
    versions = {environment.name: Version(environment.tensorflow) for environment in run.environments}
    releases = [place for place in result.elsewhere if not versions[place.environment].is_devrelease]
    return {
        "issue": claim.issue.short,
        "url": claim.issue.url,
        "scenario": result.scenario.name,
        "reported": claim.reported,
        "claimed": format_claimed(claim),
        "at": _place(result.at),
        "elsewhere": [_place(place) for place in sorted(releases, key=lambda place: versions[place.environment])],
        "fixed": result.fixed.environment if result.fixed else "",
        "last_seen": result.last_seen.environment if result.last_seen else "",
        "seconds": round(sum(launch.seconds for launch in results.launches if launch.cell in _cells(result))),
        "date": run.started[:10],
        "machine": str(run.host.get("cpu", "")),
    }


def _cells(result: ClaimResult) -> set[Cell]:
    return {cell for place in result.places for cell in (place.worse, place.better) if cell}


def _place(place: ClaimPlace) -> Row:
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
        *_read_origin(row),
        row["claimed"],
        f"{row['at']['environment']}: {measure(row['at'], row['claimed'])}",
        row["at"]["outcome"],
        f"{newest['environment']}: {newest['outcome']}, {measure(newest, row['claimed'])}" if newest else "",
        fixed_between(row),
        row["date"],
        row["machine"],
    ]
    return f"| {' | '.join(escape.markdown(entry) if at else entry for at, entry in enumerate(entries))} |"


def _read_origin(row: Row) -> tuple[str, str]:
    """Return the reporter's version and the measured program, from the index of all claims (`make reference`)."""
    scenario = _read_index().get(row["scenario"], {"claims": []})
    for claim in scenario["claims"]:
        if (claim["issue"], claim["reported"]) == (row["issue"], row["reported"]):
            return claim["version"], claim["program"]
    return "", ""


@cache
def _read_index() -> Mapping[str, Any]:
    scenarios: Mapping[str, Any] = json.loads(PLACE.read_text())["scenarios"]
    return scenarios


def fixed_between(row: Row) -> str:
    """Return the releases between which the problem was fixed, or an empty text. Older rows have only the second."""
    last = row.get("last_seen") or row["at"]["environment"].partition(" vs ")[0]
    return f"{last} and {row['fixed']}" if row["fixed"] else ""


def measure(place: Row, claimed: str) -> str:
    """Format a result, such as `12.3× (11.9 to 12.8)`, or return why there is none."""
    if place["value"] is None:
        return str(place["why"]) or "no result"
    if not place["interval"]:
        return format_value(place["value"], claimed)
    estimate = Estimate(place["value"], place["rounds"], Interval(*place["interval"]))
    return f"{format_value(place['value'], claimed)} ({format.bounds(estimate)})"


def format_value(value: float, claimed: str) -> str:
    """Format a value in the unit of the claim."""
    unit = "×" if claimed.endswith("×") else " s" if claimed.endswith(" s") else " B per call"
    return f"{format.number(value)}{unit}"


def _digits(value: float) -> float:
    """Round to four significant digits, because more of them change with every run."""
    return float(f"{value:.4g}")


def _number(row: Row) -> int:
    return int(row["issue"].rpartition("#")[2])


def main(arguments: Sequence[str]) -> None:
    """Add the results of runs to docs/upstream.json, and write the table."""
    added = [row for run in arguments for row in rows(session.read(Path(run)))]
    kept = merge_rows(read_rows(), added)
    STORED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(PAGE.read_text(), kept))
    print(f"{counted(len(added), 'claim')} added, {counted(len(kept), 'claim')} in {PAGE.relative_to(DOCS.parent)}.")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The data of the pages for programs: observatory.json, observatory.parquet, and the index of the search box."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.observatory.records import NightlyPoint

if TYPE_CHECKING:
    from bench.observatory.site import Observatory

#: The version of observatory.json and observatory.parquet. It changes if a name or its meaning does.
SCHEMA = 1

#: The columns of observatory.parquet, with their types.
COLUMNS = {
    "kind": "VARCHAR",
    "scenario": "VARCHAR",
    "cell": "VARCHAR",
    "environment": "VARCHAR",
    "baseline": "VARCHAR",
    "day": "DATE",
    "value": "DOUBLE",
    "low": "DOUBLE",
    "high": "DOUBLE",
    "unit": "VARCHAR",
    "outcome": "VARCHAR",
    "issue": "VARCHAR",
    "measured": "DATE",
    "machine": "VARCHAR",
    "run": "VARCHAR",
    "command": "VARCHAR",
}


def make_document(data: "Observatory") -> dict[str, Any]:
    """Return observatory.json."""
    return {
        "schema": SCHEMA,
        "releases": list(data.releases),
        "scenarios": {name: data.get_title(name) for name, _ in data.scenarios},
        "facts": [asdict(fact) for fact in data.facts],
        "point_columns": list(NightlyPoint.__dataclass_fields__),
        "series": [
            {**asdict(series), "points": [list(asdict(point).values()) for point in series.points]}
            for series in data.series
        ],
        "steps": [{**asdict(step), "anchor": step.anchor} for step in data.steps],
    }


def make_rows(data: "Observatory") -> Iterator[Mapping[str, Any]]:
    """Yield the rows of observatory.parquet: each result of a claim, a line, a nightly run or a step."""
    for fact in data.facts:
        for place in fact.places:
            environment, _, baseline = place.environment.partition(" vs ")
            yield {
                **{"kind": fact.kind, "scenario": fact.scenario, "cell": fact.title, "environment": environment},
                **{"baseline": baseline, "day": None, "value": place.value, "low": place.low, "high": place.high},
                **{"unit": fact.unit, "outcome": place.outcome, "issue": fact.issue, "measured": fact.date},
                **{"machine": fact.machine, "run": fact.source, "command": fact.command},
            }
    for series in data.series:
        cell = " ".join(f"{axis}={value}" for axis, value in series.axes.items())
        for point in series.points:
            yield {
                **{"kind": "nightly", "scenario": series.scenario, "cell": cell},
                **{"environment": f"{series.line}=={point.wheel}", "baseline": series.baseline, "day": point.day},
                **{"value": point.ratio, "low": point.low, "high": point.high, "unit": "×", "outcome": "", "issue": ""},
                **{"measured": point.run[:10], "machine": series.machine, "run": point.run, "command": ""},
            }
    for step in data.steps:
        yield {
            **{"kind": "step", "scenario": step.scenario, "day": step.day, "value": step.ratio, "low": step.low},
            "cell": " ".join(f"{axis}={value}" for axis, value in step.axes.items()),
            **{"environment": f"{step.line}=={step.after}", "baseline": f"{step.line}=={step.before}"},
            **{"high": step.high, "unit": "×", "outcome": step.state, "issue": step.issue, "measured": step.measured},
            **{"machine": step.machine, "run": "", "command": step.command},
        }


def write_parquet(rows: Iterator[Mapping[str, Any]], path: Path) -> None:
    """Write the rows as a Parquet file."""
    import duckdb  # noqa: PLC0415 - takes a moment, and only this file needs it

    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE observatory ({columns})")
        marks = ", ".join("?" for _ in COLUMNS)
        values = [[row[name] for name in COLUMNS] for row in rows]
        connection.executemany(f"INSERT INTO observatory VALUES ({marks})", values)
        connection.execute("COPY observatory TO ? (FORMAT parquet, COMPRESSION zstd)", [str(path)])


def make_search_index(data: "Observatory") -> list[Sequence[str]]:
    """Return the entries of the search box: kind, title, address, and other words that are searched."""
    entries: list[Sequence[str]] = []
    for name, facts in data.scenarios:
        environments = {place.environment for fact in facts for place in fact.places}
        entries.append(
            ("scenario", data.get_title(name), f"results.html#s-{name}", f"{name} {' '.join(sorted(environments))}")
        )
    for fact in data.facts:
        if fact.kind == "claim":
            words = f"{fact.scenario} {data.get_title(fact.scenario)} {fact.issue}"
            entries.append(("claim", f"{fact.issue}: {fact.title}", f"results.html#{fact.anchor}", words))
    for step in data.steps:
        words = " ".join([step.cause, step.issue, step.before, *step.files, *(each.name for each in step.functions)])
        entries.append(
            ("step", step.title, f"alive.html#{step.anchor}" if step.is_slow else f"fixed.html#{step.anchor}", words)
        )
    return entries

"""The pages of the observatory, and the files beside them."""

import json
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.observatory import drawing, tables
from bench.observatory.facts import Fact, MeasuredPlace, get_release, read_facts, read_releases, read_titles
from bench.observatory.records import (
    FOLDER,
    LAUNCHES,
    SERIES,
    STEPS,
    ConfirmedStep,
    NightlySeries,
    read_counts,
    read_series,
    read_steps,
)
from harness.analysis.claim_rules import ClaimOutcome
from harness.report import escape, format
from harness.report.html import assets
from harness.report.templates import make_environment

TEMPLATES = FOLDER / "templates"

#: The pages, with their titles in the navigation.
PAGES = {
    "index": "Map",
    "alive": "Slow today",
    "fixed": "Fixed",
    "series": "Nightly series",
    "nights": "Nightly runs",
    "results": "All results",
}

#: The classes of ratios on the map: the upper bound of each, its style, and its meaning in the legend.
SCALE = (
    (0.67, "f2", "below 0.67×"),
    (0.95, "f1", "0.67 to 0.95×"),
    (1.05, "s0", "0.95 to 1.05×"),
    (1.25, "s1", "1.05 to 1.25×"),
    (2.0, "s2", "1.25 to 2×"),
    (10.0, "s3", "2 to 10×"),
    (float("inf"), "s4", "more than 10×"),
)


@dataclass(frozen=True, slots=True)
class MapCell:
    """A cell of the map: its text, its style, a sentence about it, and the address that a click opens."""

    text: str
    style: str
    words: str
    address: str


@dataclass(frozen=True, slots=True)
class MapRow:
    """A row of the map: its title, its address, a note below the title, and its cells by column."""

    title: str
    address: str
    note: str
    cells: Mapping[str, MapCell]
    rank: float


@dataclass(frozen=True)
class Observatory:
    """Everything that the pages show."""

    facts: Sequence[Fact]
    series: Sequence[NightlySeries]
    steps: Sequence[ConfirmedStep]
    titles: Mapping[str, str]
    releases: Sequence[str]
    counts: Sequence[NightlySeries] = ()

    @cached_property
    def newest(self) -> str:
        """The newest release with measured claims."""
        measured = {place.release for fact in self.facts for place in fact.places}
        return next(release for release in reversed(self.releases) if release in measured)

    @cached_property
    def checked(self) -> list[Fact]:
        """The claims with a result in the newest release."""
        claims = [fact for fact in self.facts if fact.kind == "claim" and self.newest in fact.by_release]
        return [fact for fact in claims if fact.by_release[self.newest].value is not None]

    @cached_property
    def alive(self) -> list[Fact]:
        """The claims that still hold in the newest release: ratios, the largest first, then bytes."""
        held = [fact for fact in self.checked if fact.by_release[self.newest].holds]
        return sorted(held, key=lambda fact: (fact.unit != "×", -(fact.by_release[self.newest].value or 0.0)))

    @cached_property
    def fixed(self) -> list[tuple[str, list[Fact]]]:
        """The claims that a later release fixed, by release, the newest first."""
        fixed = [fact for fact in self.facts if get_release(fact.fixed_in)]
        fixed.sort(key=lambda fact: (fact.unit != "×", -(fact.places[0].value or 0.0)))
        by_release = {
            release: [fact for fact in fixed if get_release(fact.fixed_in) == release] for release in self.releases
        }
        return [(release, by_release[release]) for release in reversed(self.releases) if by_release[release]]

    @cached_property
    def scenarios(self) -> list[tuple[str, list[Fact]]]:
        """The facts by scenario, in the order of the scenarios' titles."""
        names = sorted({fact.scenario for fact in self.facts}, key=lambda name: self.get_title(name).lower())
        return [(name, [fact for fact in self.facts if fact.scenario == name]) for name in names]

    @cached_property
    def machines(self) -> list[str]:
        """The machines that measured, the one with most results first."""
        names = [fact.machine for fact in self.facts]
        return sorted(set(names), key=lambda name: (-names.count(name), name))

    def get_title(self, scenario: str) -> str:
        """Return the title of a scenario, or its name."""
        return self.titles.get(scenario, scenario)

    def find_steps(self, series: NightlySeries) -> list[ConfirmedStep]:
        """Return the steps of a series."""
        return [step for step in self.steps if _get_place(step) == _get_place(series)]


def _get_place(record: NightlySeries | ConfirmedStep) -> tuple[str, dict[str, str], str]:
    return record.scenario, record.axes, record.line


def read(series: Path = SERIES, steps: Path = STEPS) -> Observatory:
    """Read all data. Raises DamagedError for an invalid file."""
    return Observatory(
        read_facts(), read_series(series), read_steps(steps), read_titles(), read_releases(), read_counts()
    )


def build(folder: Path, data: Observatory | None = None, launches: Path = LAUNCHES) -> str:
    """Write the pages to a folder, and return a sentence with their number, size and duration."""
    started = time.monotonic()
    data = data or read()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    address = os.environ.get("HARNESS_REPOSITORY", "").rstrip("/")
    if launches.exists() and not address:
        shutil.copy(launches, folder / LAUNCHES.name)
    render = _make_renderer(data, address, launches.exists())
    for page, title in PAGES.items():
        if page != "index":
            (folder / f"{page}.html").write_text(render(f"{page}.html.j2", page=page, title=title))
    for place, machine in enumerate(["", *data.machines]):
        text = render("index.html.j2", page="index", title=PAGES["index"], machine=machine, **_make_maps(data, machine))
        (folder / _name_map(place)).write_text(text)
    (folder / "feed.xml").write_text(render("feed.xml.j2"))
    style = assets.read_files(("page.css",)) + (TEMPLATES / "observatory.css").read_text()
    (folder / "observatory.css").write_text(re.sub(r"\n+\s*", "\n", re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)))
    shutil.copy(TEMPLATES / "search.js", folder)
    _write_json(folder / "search.json", tables.make_search_index(data))
    _write_json(folder / "observatory.json", tables.make_document(data))
    tables.write_parquet(tables.make_rows(data), folder / "observatory.parquet")
    sizes = [path.stat().st_size for path in folder.iterdir()]
    return f"{len(sizes)} files, {sum(sizes):,} bytes, in {time.monotonic() - started:.1f} s: {folder}/index.html"


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


def _make_renderer(data: Observatory, address: str, has_launches: bool) -> Any:
    from markupsafe import Markup  # noqa: PLC0415 - slow to load

    def draw(series: NightlySeries) -> Markup:
        levels = drawing.find_levels(series, data.find_steps(series))
        words = f"{series.name}: {len(series.points)} nightly runs, {series.points[0].day} to {series.points[-1].day}, "
        words += "levels " + ", ".join(f"{level.ratio:.3g}×" for level in levels)
        return Markup(drawing.draw(series, data.find_steps(series), escape.html(words)))

    def draw_counts(series: NightlySeries) -> Markup:
        words = (
            f"{series.name}: calls per step in {len(series.points)} wheels, from {series.points[0].seconds:,.0f} to "
        )
        words += f"{series.points[-1].seconds:,.0f}"
        return Markup(drawing.draw(series, data.find_steps(series), escape.html(words), exact=True))

    def link_source(fact: Fact) -> str:
        if "/" in fact.source:
            return f"{address}/blob/HEAD/bench/observatory/machines/{fact.source}" if address else ""
        return f"../docs/examples/{fact.source}/report.html" if fact.source else "../docs/results/upstream-issues.html"

    launches_link = ""
    if has_launches:
        launches_link = f"{address}/blob/HEAD/bench/observatory/{LAUNCHES.name}" if address else LAUNCHES.name
    jinja = make_environment(lambda text: escape.html(text, escape.PARAGRAPH_CHARACTERS), TEMPLATES)
    jinja.filters["number"] = format.number
    jinja.filters["style"] = choose_style
    jinja.filters["anchor"] = make_anchor
    jinja.filters["day"] = lambda run: run[:10]
    jinja.filters["lines"] = lambda text: Markup(escape.escape_entities(text))
    jinja.filters["short_link"] = lambda link: re.sub(r".*github\.com/[^/]+/([^/]+)/\w+/(\d+)$", r"\1#\2", link)
    jinja.filters["report_link"] = lambda path: f"../{path.removesuffix('.md')}.html"
    common = {
        "data": data,
        "pages": PAGES,
        "draw": draw,
        "draw_counts": draw_counts,
        "levels": lambda series: drawing.find_levels(series, data.find_steps(series)),
        "nights": _list_nights(data),
        "link_source": link_source,
        "launches": launches_link,
        "updated": _find_update(data),
    }
    return lambda name, **values: jinja.get_template(name).render(**common, **values)


def _find_update(data: Observatory) -> str:
    """Return the newest date of a measurement, so that the same data make the same pages."""
    dates = [fact.date for fact in data.facts] + [step.measured for step in data.steps]
    return max(dates + [point.run[:10] for series in data.series for point in series.points])


def _list_nights(data: Observatory) -> list[tuple[str, str, str, dict[str, float]]]:
    """Return the nightly runs: line, day, wheel, run, and the ratio of each cell."""
    nights: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for series in data.series:
        for point in series.points:
            row = nights.setdefault((series.line, point.day, point.wheel, point.run), {})
            row[series.name.rpartition(",")[0]] = point.ratio
    return [(*key, nights[key]) for key in sorted(nights, reverse=True)]  # type: ignore[misc]


def choose_style(ratio: float) -> str:
    """Return the style of a ratio on the map."""
    return next(style for bound, style, _ in SCALE if ratio < bound or bound == float("inf"))


def _name_map(place: int) -> str:
    return f"map-{place}.html" if place else "index.html"


def _make_maps(data: Observatory, machine: str) -> dict[str, Any]:
    """Return the values of a page with a map: of one machine, or of all if its name is empty."""
    facts = [fact for fact in data.facts if machine in ("", fact.machine)]
    claims = [fact for fact in facts if fact.kind == "claim"]
    names = dict.fromkeys(fact.scenario for fact in claims)
    by_scenario = [_make_claim_row(data, name, [fact for fact in claims if fact.scenario == name]) for name in names]
    lines = [_make_line_row(data, fact) for fact in facts if fact.kind == "line"]
    nightly = [
        _make_nightly_row(data, series) for series in data.series if series.points and machine in ("", series.machine)
    ]
    parts = (
        ("Reported slowdowns: the slow way ÷ the fast way", by_scenario),
        ("Releases: time ÷ time in an older release", lines),
        ("Nightly wheels: time ÷ time in the newest release", nightly),
    )
    return {
        "parts": [(title, sorted(rows, key=lambda row: -row.rank)) for title, rows in parts if rows],
        "columns": ["nightly", *reversed(data.releases)],  # the newest is seen first
        "scale": SCALE,
        "maps": [(_name_map(at), name) for at, name in enumerate(["", *data.machines])],
    }


def _make_claim_row(data: Observatory, scenario: str, facts: Sequence[Fact]) -> MapRow:
    """Return the row of a scenario. In each release, it has the claim with the largest ratio."""
    cells, values = {}, {}
    for release in data.releases:
        results = [(fact, fact.by_release[release]) for fact in facts if release in fact.by_release]
        measured = [(fact, place) for fact, place in results if place.value is not None]
        if chosen := measured or results:
            fact, place = max(chosen, key=lambda pair: (pair[0].unit == "×", pair[1].value or 0.0))
            values[release] = place.value or 0.0 if fact.unit == "×" else 1.001 if place.holds else 0.0
            cells[release] = _make_cell(fact, place)
    issues = ", ".join(dict.fromkeys(fact.issue for fact in facts))
    rank = values.get(data.newest, -1.0)
    return MapRow(data.get_title(scenario), f"results.html#s-{scenario}", issues, cells, rank)


def _make_line_row(data: Observatory, fact: Fact) -> MapRow:
    cells = {release: _make_cell(fact, place) for release, place in fact.by_release.items()}
    newest = next(fact.by_release[release] for release in reversed(data.releases) if release in fact.by_release)
    title = data.get_title(fact.scenario)
    return MapRow(title, f"results.html#{fact.anchor}", fact.title, cells, newest.value or 0.0)


def _make_nightly_row(data: Observatory, series: NightlySeries) -> MapRow:
    level = drawing.find_levels(series, data.find_steps(series))[-1]
    words = f"{series.line}, {level.first} to {level.last}: {level.ratio:.3g}× as long as {series.baseline}"
    cell = MapCell(_shorten(level.ratio), choose_style(level.ratio), words, f"series.html#{make_anchor(series)}")
    release = get_release(series.baseline)
    base = MapCell("1", "s0", f"{series.baseline}, the baseline", cell.address)
    return MapRow(
        data.get_title(series.scenario), cell.address, series.name, {release: base, "nightly": cell}, level.ratio
    )


def make_anchor(series: NightlySeries) -> str:
    """Return the anchor of a series."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{series.name} {series.machine}").strip("-")


def _make_cell(fact: Fact, place: MeasuredPlace) -> MapCell:
    words = f"{place.environment}, {fact.issue or fact.title}: {fact.show(place)}, {place.outcome}"
    address = f"results.html#{fact.anchor}"
    if place.value is None:
        return MapCell("–", "none", words, address)
    unclear = " unclear" if place.outcome == ClaimOutcome.UNCLEAR else ""
    if fact.unit == "×":
        return MapCell(_shorten(place.value), choose_style(place.value) + unclear, words, address)
    return MapCell("grows" if place.holds else "flat", ("m1" if place.holds else "s0") + unclear, words, address)


def _shorten(ratio: float) -> str:
    """Return a ratio that fits in a cell of the map."""
    if ratio >= 999.5:
        return f"{ratio / 1000:.{0 if ratio >= 9950 else 1}f}k"
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 1.995 else f"{ratio:.2f}"

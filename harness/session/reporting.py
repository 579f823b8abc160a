"""A run's reports, made from what its folder holds."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.results import Results
from harness.machine.directories import cache_dir
from harness.model.errors import UsageError
from harness.report import markdown, profile_pages
from harness.report.charts import svg
from harness.report.charts.pictures import pictures
from harness.report.document import Document, build
from harness.report.formats import Format, render
from harness.report.html import page
from harness.store.folder import RunFolder, uncollected
from harness.store.profiles import read_profiles


@dataclass(frozen=True, slots=True)
class Written:
    """The reports of a run: the files, and what a terminal shows of them, of a profile its table of shares."""

    files: Sequence[Path]
    shown: Document | str


def read(folder: Path) -> Results:
    """A run as its folder holds it, and what follows from it. Raises UsageError for none, or a damaged one."""
    stored = RunFolder.open(folder)
    with uncollected():
        return Results(stored.read_run(), stored.read_launches())


def report(folder: RunFolder | Path, results: Results | None = None) -> Written:
    """Write a run's reports: report.md with its pictures and report.html, of profiles profile.md and profile.html."""
    stored = folder if isinstance(folder, RunFolder) else RunFolder.open(folder)
    if stored.read_run().plan.profile_calls:
        return _profiles(stored, results or read(stored.path))
    # what draws is no Python: it starts and works beside it
    with ThreadPoolExecutor(max_workers=1) as beside:
        beside.submit(svg.start)
        results = results or read(stored.path)
        document = build(results.run, results.launches)
        drawn = pictures(document)
        drawing = {f"{picture.name}.svg": beside.submit(svg.draw, picture) for picture in drawn}
        files = [
            stored.write_report("report.md", markdown.lay_out(document, drawn)),
            stored.write_report("report.html", page.lay_out(document, drawn, results.launches, cache=cache_dir())),
        ]
        stored.write_charts({name: chart.result() for name, chart in drawing.items()})
    return Written(files, document)


def _profiles(folder: RunFolder, results: Results) -> Written:
    profiled = [(launch, read_profiles(folder.path, launch)) for launch in results.launches]
    made = profile_pages.render(results.run, profiled)
    return Written(
        [folder.write_report(f"profile.{ending}", text) for ending, text in made.files.items()], made.summary
    )


def export(folder: Path, format: Format) -> bytes:
    """A run's report in another tool's format. Raises UsageError for profiles, which have none."""
    results = read(folder)
    if results.run.plan.profile_calls:
        raise UsageError(
            f"{folder} holds profiles, whose report is profile.md and profile.html.", "Leave --format out."
        )
    with uncollected():
        text = render(format, results.run, results.launches, cache=cache_dir())
    # encoded here: CSV has line ends of its own, and a terminal's encoding is no concern of a file format
    return text.encode()

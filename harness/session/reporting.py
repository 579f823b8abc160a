"""A run's reports, made from what its folder holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from harness.analysis.results import Results
from harness.backends import registry
from harness.files import cache_dir
from harness.model.errors import UsageError
from harness.report import files, profiles, sections
from harness.report.blocks import Section
from harness.report.charts.picture import warm_up
from harness.report.formats import render
from harness.store.folder import RunFolder, uncollected


@dataclass(frozen=True, slots=True)
class Written:
    """The reports of a run: the files, and the sections that they have, for whoever shows them otherwise."""

    files: Sequence[Path]
    sections: Sequence[Section]


def read(folder: Path) -> Results:
    """A run as its folder holds it, and what follows from it. Raises UsageError for none, or a damaged one."""
    stored = RunFolder.open(folder)
    with uncollected():
        return Results(stored.read_run(), stored.read_launches(), registry.by_hand)


def report(folder: RunFolder | Path, results: Results | None = None, *, full: bool = False) -> Written:
    """Write a run's reports: report.md, details.md, report.html and charts/; of profiles profile.md and profile.html.

    `full`: report.md holds everything, however long.
    """
    stored = folder if isinstance(folder, RunFolder) else RunFolder.open(folder)
    # what draws takes as long to start as launches to read
    Thread(target=warm_up).start()
    results = results or read(stored.path)
    if results.run.plan.profile_calls:
        profiled = [(launch, stored.read_profiles(launch)) for launch in results.launches]
        made = profiles.ProfileReport(results.run, profiled)
        return Written(stored.write_reports(files.of_profiles(made)), made.sections())
    told = sections.build(results)
    return Written(stored.write_reports(files.made(results, told, full=full, cache=cache_dir())), told)


def export(folder: Path, format: str) -> bytes:
    """A run's report in another tool's format. Raises UsageError for profiles, which have none."""
    results = read(folder)
    if results.run.plan.profile_calls:
        raise UsageError(
            f"{folder} holds profiles, whose report is profile.md and profile.html.", "Leave --format out."
        )
    with uncollected():
        text = render(format, results)
    # encoded here: CSV has line ends of its own, and a terminal's encoding is no concern of a file format
    return text.encode()

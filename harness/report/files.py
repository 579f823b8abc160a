"""Rendering of all files of a report."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.results import Results
from harness.report import escape, markdown
from harness.report.blocks import Section, find_pictures, remove_pictures
from harness.report.charts.drawing import DrawingError
from harness.report.charts.layout import darken
from harness.report.html import page

if TYPE_CHECKING:
    from harness.report.profiles import ProfileReport

#: The last sentence of a report whose charts couldn't be drawn.
_NO_CHARTS = (
    "This report has no charts: the renderer couldn't reserve enough address space, although it uses only a part of "
    "this space. To add the charts, raise the limit (`ulimit -v unlimited`) and run `harness report`."
)


def render_files(
    results: Results, sections: Sequence[Section], *, full: bool = False, cache: Path | None = None
) -> dict[str, bytes]:
    """Return the files by name: report.md, details.md if there is more to show, report.html, and the charts.

    Each chart has two files, for light and for dark pages: charts/NAME.svg and charts/NAME-dark.svg.

    With `full`, report.md contains everything, however long it is. `cache` is a folder for files that can be
    regenerated.
    """
    # another process draws the charts in parallel
    with ThreadPoolExecutor(max_workers=1) as executor:
        charts = [(picture, executor.submit(picture.svg)) for picture in find_pictures(sections)]
        pages = _render_pages(results, sections, full, cache)
        try:
            for picture, chart in charts:
                pages |= {picture.file: chart.result().encode(), picture.dark_file: darken(chart.result()).encode()}
        except DrawingError:
            return _render_pages(results, remove_pictures(sections, _NO_CHARTS), full, cache)
    return pages


def _render_pages(results: Results, sections: Sequence[Section], full: bool, cache: Path | None) -> dict[str, bytes]:
    if full:
        texts = {"report.md": markdown.render_full(sections)}
    else:
        texts = markdown.split_report(sections, results.run.shown_folder)
    pages = {name: text.encode() for name, text in texts.items()}
    return {**pages, "report.html": page.render(results, sections, cache=cache)}


def list_profile_files(report: "ProfileReport") -> dict[str, str]:
    """Return the files of a profile report by name. One file contains the sampled stacks in speedscope's format."""
    sections = report.sections()
    return {
        "profile.md": markdown.render_full(sections),
        "profile.html": page.render_plain(report.run, sections),
        "profile.speedscope.json": make_speedscope(report),
    }


def make_speedscope(report: "ProfileReport") -> str:
    """Return the sampled stacks of all cells in speedscope's format. Weights are in seconds.

    Source: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources
    """
    from harness.analysis.profiles import name  # noqa: PLC0415 - only reports of profiles need it

    frames: dict[tuple[str, str, int], int] = {}
    profiles = []
    for cell in report.cells:
        for profile in report.found[cell].values():
            frame_numbers = [
                frames.setdefault((name(function), function.file, function.line), len(frames))
                for function in profile.functions
            ]
            weights = [seconds for seconds, _ in profile.stacks]
            if weights:
                profiles.append(
                    {
                        "type": "sampled",
                        "name": f"{report.name(cell)}, {profile.part.value}",
                        "unit": "seconds",
                        "startValue": 0,
                        "endValue": sum(weights),
                        "samples": [[frame_numbers[place] for place in stack] for _, stack in profile.stacks],
                        "weights": weights,
                    }
                )
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"harness {report.run.harness}",
        "name": report.title,
        "shared": {"frames": [{"name": label, "file": file, "line": line} for label, file, line in frames]},
        "profiles": profiles,
    }
    return escape.dump_json(document)

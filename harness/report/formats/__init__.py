"""A run in the formats of other tools: a module each, whose `render(run, launches)` returns the text."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

from harness.model.launch import Launch
from harness.model.run import Run


class Format(StrEnum):
    """What a report can be written as."""

    MD = "md"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    JUNIT = "junit"
    PYPERF = "pyperf"
    BENCHMARK_ACTION = "benchmark-action"
    SUMMARY = "summary"


def render(format: Format, run: Run, launches: Sequence[Launch], *, cache: Path | None = None) -> str:
    """The run in one format; `cache` is a folder for what can be made again.

    Raises NothingSelectedError where that format cannot say that no cell gave a number.
    """
    if format in {Format.MD, Format.HTML}:
        return _report(format, run, launches, cache)
    from harness.report.formats import benchmark_action, junit, launches_csv, pyperf_suite, report_json, summary

    renderers: dict[Format, Callable[[Run, Sequence[Launch]], str]] = {
        Format.JSON: report_json.render,
        Format.CSV: launches_csv.render,
        Format.JUNIT: junit.render,
        Format.PYPERF: pyperf_suite.render,
        Format.BENCHMARK_ACTION: benchmark_action.render,
        Format.SUMMARY: summary.render,
    }
    return renderers[format](run, launches)


def _report(format: Format, run: Run, launches: Sequence[Launch], cache: Path | None) -> str:
    from harness.analysis.results import Results
    from harness.report import markdown, sections
    from harness.report.html import page

    results = Results(run, launches)
    made = sections.build(results)
    if format is Format.HTML:
        return page.render(results, made, cache=cache)
    return markdown.files(made, results.folder).report

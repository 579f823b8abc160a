"""The format `customSmallerIsBetter` of github-action-benchmark: a list of {name, unit, value, range, extra}.

Source: https://github.com/benchmark-action/github-action-benchmark#examples, and BenchmarkResult in src/extract.ts
"""

from harness.analysis.cells import CellResult
from harness.analysis.results import Results
from harness.model.errors import NothingSelectedError
from harness.model.run import Run
from harness.report import format
from harness.report.escape import dump_json, escape_terminal
from harness.report.format import MILLISECONDS, of_clock
from harness.report.formats import name_cells

# the action writes names in backticks into a Markdown table, where `|` and backticks can't be escaped
_CODE_TABLE = str.maketrans({"|": "¦", "`": "'"})


def render(results: Results) -> str:
    """Return the cells with a result.

    Raises NothingSelectedError if there are none, because the action fails on an empty list.
    """
    entries = [_make_entry(results.run, result) for result in results.cells if result.estimate]
    if not entries:
        raise NothingSelectedError(
            "No cell has a result, and a file in the format benchmark-action contains only results.",
            "To see why, run: harness report RUN",
        )
    return dump_json(entries)


def _make_entry(run: Run, result: CellResult) -> dict[str, str | float]:
    assert result.estimate is not None, "a cell without a result can't be exported"
    interval_text = format.format_interval(result.estimate.interval, MILLISECONDS.factor)
    title = next(
        (environment.title for environment in run.environments if environment.name == result.cell.environment), ""
    )
    extra_lines = [
        title,
        f"rounds: {result.estimate.rounds}",
        f"run: {run.id}",
        f"commit: {run.commit}" if run.commit else "",
    ]
    return {
        "name": escape_terminal(name_cells(result.name, run)).translate(_CODE_TABLE),
        # use the same unit in every run with the same clock, because the action compares numbers of different commits
        "unit": f"{of_clock(MILLISECONDS, run.plan.clock).symbol}/step",
        "value": result.estimate.value * MILLISECONDS.factor,
        **({"range": interval_text} if interval_text else {}),
        "extra": "\n".join(escape_terminal(line) for line in extra_lines if line),
    }

"""The commands of `harness history` that evaluate all runs: `report` and `alarm`."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.messages import say, tell, tell_json
from harness.cli.report import save
from harness.files import get_cache_dir
from harness.history.request import SeriesRequest
from harness.model.defaults import MARGIN
from harness.model.errors import NothingSelectedError, UsageError

if TYPE_CHECKING:
    from harness.history.folder import History
    from harness.model.history import Series


@options.of(SeriesRequest)
def report(
    request: SeriesRequest,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The file to write. Default: stdout, and for a page history.html."
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="[html|md]",
            autocompletion=lambda: ["html", "md"],
            help="html: a page with all series. md: the changes. Default: md if --since is passed or FILE ends with "
            ".md, otherwise html.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|DATE",
            help="With md: show changes since this run or date. Default: since the second newest run.",
        ),
    ] = None,
) -> None:
    """Write history.html, or print the changes.

    With `--format md`, it prints the changes since an earlier run as Markdown.
    """
    from harness.store.folder import pause_garbage_collection  # noqa: PLC0415 - `harness --help` needs none of it

    kind = format or ("md" if since or (output and output.suffix == ".md") else "html")
    if kind not in ("html", "md"):
        raise UsageError(f"Unknown format: {kind!r}.", "Use html or md.")
    if since and kind == "html":
        raise UsageError("--since selects changes for Markdown only.", "Add --format md.")
    with pause_garbage_collection():  # a year has hundreds of thousands of points, and all stay in use
        history = open_history()
        text = _render_page(history, request) if kind == "html" else _render_changes(history, request, since or "")
    output = output or (Path("history.html") if kind == "html" else None)
    if output:
        save(output, text.encode())
        say(f"History: {output}")
    else:
        typer.echo(text, nl=False)


def _render_page(history: "History", request: SeriesRequest) -> str:
    from harness.history import page  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.states import judge_all  # noqa: PLC0415
    from harness.report.html import assets  # noqa: PLC0415

    with ThreadPoolExecutor(1) as pool:
        # another process bundles this script, which takes one or two seconds unless the script is cached
        pool.submit(assets.make_vega_script, get_cache_dir())
        runs = history.runs()
        # the site has a page before the first nightly run too
        is_empty = not runs and request == SeriesRequest()
        if is_empty:
            say(f"The history {history.path} is empty. To add the runs in results/: harness history add --all")
        judged = judge_all([] if is_empty else find_series(history, request), history.decisions())
    return page.render(judged, runs, history.notes(), MARGIN, cache=get_cache_dir())


def _render_changes(history: "History", request: SeriesRequest, since: str) -> str:
    from harness.history import changes  # noqa: PLC0415 - the page needs none of it
    from harness.history.states import judge_all  # noqa: PLC0415

    runs, decisions = history.runs(), history.decisions()
    series, last_run = find_series(history, request), changes.find_start(runs, since)
    before, after = changes.judge_before(series, decisions, last_run), judge_all(series, decisions)
    return changes.render(before, after, last_run, runs, history.notes())


def alarm(
    *,
    issues: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The existing issues, as gh issue list --json prints them.")
    ] = None,
    nightly: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file nightly.toml, with the machines and the rules for changes."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the necessary steps as JSON, for .github/nightly/issues.")
    ] = False,
) -> None:
    """Print a GitHub issue for each confirmed slowdown.

    It doesn't open issues. The nightly workflow opens them with gh.
    """
    from harness.history import issues as tracked  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.alerts import find_alerts  # noqa: PLC0415
    from harness.history.nightly_file import read_nightly_file  # noqa: PLC0415

    existing_issues = tracked.read_issues(issues) if issues else []
    file, history = read_nightly_file(nightly) if nightly else None, open_history()
    decisions = history.decisions()
    alerts = find_alerts(
        history.series(only={decision.key for decision in decisions if decision.confirmed}),
        decisions,
        history.summary,
        rules=file.rules if file else (),
        machines=file.machines if file else None,
        today=datetime.now(UTC).date(),
    )
    steps = tracked.plan_steps(alerts, existing_issues)
    if json:
        tell_json([step.document for step in steps])
        return
    if not steps:
        say("No slowdown is confirmed, so there is nothing to report.")
    for step in steps:
        tell(f"{step.what}\n\n{step.alert.title}\n\n{step.alert.text}\n")


def open_history() -> "History":
    """Open the history, which reports damaged files on stderr."""
    from harness.history.folder import History  # noqa: PLC0415 - `harness --help` needs none of it

    return History.open(say)


def find_series(history: "History", request: SeriesRequest) -> list["Series"]:
    """Return the selected series. Raises NothingSelectedError if there are none."""
    from harness.report.phrases import list_names  # noqa: PLC0415 - only an error needs it

    selection = history.series(request.scenarios, request.environments, request.axes)
    if selection:
        return selection
    keys = [series.key for series in history.series()]
    if not keys:
        raise NothingSelectedError(f"The history {history.path} is empty.", "Add runs with: harness history add --all")
    scenarios, environments = sorted({key.scenario for key in keys}), sorted({key.environment for key in keys})
    raise NothingSelectedError(
        f"No series in the history {history.path} matches the options.",
        f"Its scenarios: {list_names(scenarios)}. Its environments: {list_names(environments)}. To show all series: "
        "harness history show",
    )

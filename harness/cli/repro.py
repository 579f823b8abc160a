"""`harness repro`."""

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options
from harness.cli.dryrun import show_plan
from harness.cli.messages import format_columns, say
from harness.session.request import OptionPanel, Request

if TYPE_CHECKING:
    from harness.upstream.issue_index import KnownIssue, Library

#: The options of a request that claims set.
_SETTLED = (
    "suite",
    "scenarios",
    "axes",
    "claims",
    "reference",
    "sampling",
    "interleave",
    "shard",
    "balance",
    "spread",
    "on",
)


@options.of(Request, without=_SETTLED)
def repro(
    request: Request,
    *,
    issues: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ISSUE]...|list",
            help="Issues, such as T#40261, or their URLs. To list the known issues, pass `list`.",
            autocompletion=completion.complete_issues,
        ),
    ] = None,
    family: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Measure all issues of this family.",
            autocompletion=completion.complete_families,
            rich_help_panel=OptionPanel.WHAT,
        ),
    ] = "",
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Measure all issues, but not with the nightly wheel.", rich_help_panel=OptionPanel.WHAT
        ),
    ] = False,
    no_nightly: Annotated[
        bool,
        typer.Option("--no-nightly", help="Don't measure the newest nightly wheel.", rich_help_panel=OptionPanel.WHAT),
    ] = False,
    fail_on: Annotated[
        options.FailOnClaim | None,
        typer.Option(
            "--fail-on",
            help="Exit with 5 if a claim is confirmed in its environment, or was fixed later, and with 1 if a cell "
            "failed.",
            rich_help_panel=OptionPanel.OUTPUT,
        ),
    ] = None,
    wait: options.Wait = False,
    dry_run: options.DryRun = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the list, the plan or the launches as JSON.", rich_help_panel=OptionPanel.OUTPUT
        ),
    ] = False,
) -> None:
    """Measure the claims of upstream issues.

    It measures in the releases of the claim, in the newest release and in the newest nightly wheel.
    """
    from harness.upstream import issue_index  # noqa: PLC0415 - not needed for --help
    from harness.upstream import repro as upstream  # noqa: PLC0415

    library = issue_index.load_library()
    listed = issues == ["list"]
    selection = library.select([] if listed else issues or [], family, every=every or (listed and not family))
    if listed:
        _list(library, selection, json=json)
        return
    night = "" if every or no_nightly else upstream.find_nightly(request, say)
    repro_request = upstream.request(request, selection, night)
    if dry_run:
        raise typer.Exit(show_plan(repro_request, json=json))
    from harness.cli import running  # noqa: PLC0415 - as in `matrix`

    raise typer.Exit(running.repro(repro_request, wait=wait, json=json, fail_on=fail_on))


def _list(library: "Library", issues: "list[KnownIssue]", *, json: bool) -> None:
    if json:
        typer.echo(library.document(issues), nl=False)
        return
    rows = [("issue", "family", "takes", "environments", "claimed")]
    for entry in issues:
        about = f"{max(1, round(entry.seconds(library.newest) / 60.0))} min"
        claims = "; ".join(claim.reported for _, claim in entry.claims)
        rows.append((entry.issue.short, ", ".join(entry.families), about, ", ".join(entry.environments), claims))
    for line in format_columns(rows):
        typer.echo(line)

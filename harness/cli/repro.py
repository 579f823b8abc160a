"""`harness repro`."""

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.dryrun import show_plan
from harness.cli.messages import format_columns, say
from harness.session.options import OptionPanel
from harness.session.request import Request

if TYPE_CHECKING:
    from harness.upstream.issue_index import KnownIssue, Library

#: Fields of a request that `harness repro` sets, so they get no option.
_PRESET_FIELDS = (
    "suite",
    "scenarios",
    "axes",
    "claims",
    "reference",
    "sampling",
    "interleave",
    "shard",
    "balance",
    "on",
)


@options.of(Request, without=_PRESET_FIELDS)
def repro(
    request: Request,
    *,
    issues: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ISSUE]...|list",
            help="Names of issues, such as T#40261, or their URLs. To list the known issues, pass `list`.",
        ),
    ] = None,
    family: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Measure all issues of this family.",
            rich_help_panel=OptionPanel.WHAT,
        ),
    ] = "",
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Measure all issues, without the newest nightly wheel.", rich_help_panel=OptionPanel.WHAT
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
            help="confirmed: exit with 5 if a claim is confirmed in its own environment. fixed: exit with 5 if a later "
            "release fixed a claim. Both: exit with 1 if a cell failed.",
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

    It measures them in the releases of each claim, in the newest release and in the newest nightly wheel.
    """
    from harness.upstream import issue_index  # noqa: PLC0415 - not needed for --help
    from harness.upstream import repro as upstream  # noqa: PLC0415

    library = issue_index.load_library()
    is_list = issues == ["list"]
    selection = library.select([] if is_list else issues or [], family, every=every or (is_list and not family))
    if is_list:
        _print_issues(library, selection, json=json)
        return
    nightly_wheel = "" if every or no_nightly else upstream.find_nightly(request, say)
    repro_request = upstream.request(request, selection, nightly_wheel)
    if dry_run:
        raise typer.Exit(show_plan(repro_request, json=json))
    from harness.cli import running  # noqa: PLC0415 - as in `matrix`

    raise typer.Exit(running.repro(repro_request, wait=wait, json=json, fail_on=fail_on))


def _print_issues(library: "Library", issues: "list[KnownIssue]", *, json: bool) -> None:
    if json:
        typer.echo(library.document(issues), nl=False)
        return
    rows = [("issue", "family", "takes", "environments", "claimed")]
    for entry in issues:
        duration = f"{max(1, round(entry.seconds(library.newest) / 60.0))} min"
        claim_texts = "; ".join(claim.reported for _, claim in entry.claims)
        families, environments = ", ".join(entry.families), ", ".join(entry.environments)
        rows.append((entry.issue.short, families, duration, environments, claim_texts))
    for line in format_columns(rows):
        typer.echo(line)

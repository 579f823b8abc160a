"""`harness repro`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from harness.cli import options
from harness.cli.dryrun import show_plan
from harness.cli.messages import say, tell_json, tell_lines
from harness.model.defaults import ISSUE_BUDGET, MOST_CLAIM_ROUNDS, MOST_ISSUES_BUDGET
from harness.session.options import Option, OutputOption, format_length
from harness.session.request import SLOTS, Request

#: Help texts of options that mean something else than in `harness matrix`.
_TEXTS = {
    "environments": "Also measure in these environments or globs, such as tf1.14,tf2.*. To list them: "
    "`harness images list`.",
    "rounds": f"The number of launches of each cell. Default: as many as the claims need, at most {MOST_CLAIM_ROUNDS}.",
    "budget": "End after about this time, such as 10m, but measure at least one round. Default: "
    f"{format_length(ISSUE_BUDGET)} per issue, at most {format_length(MOST_ISSUES_BUDGET)}.",
    "slots": SLOTS,
}


Issues = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ISSUE]...|list [WORD]...",
        help="Names of issues, such as T#40261, or their URLs. `list` shows the known claims with their stored "
        "results, and `list WORD...` those that match these words best.",
    ),
]
Family = Annotated[str, Option("Measure all issues of this family.", metavar="NAME")]
Every = Annotated[bool, Option("Measure all issues, without the newest nightly wheel.", ("--all",))]
NoNightly = Annotated[bool, Option("Don't measure the newest nightly wheel.")]
FailOn = Annotated[
    options.FailOnClaim | None,
    OutputOption(
        "confirmed: exit with 5 if a claim is confirmed in its own environment. fixed: exit with 5 if a later release "
        "fixed a claim. Both: exit with 1 if a cell failed."
    ),
]
Json = Annotated[bool, OutputOption("Print the list, the plan or the launches as JSON.")]


@options.of(Request, without=(*options.PRESET_FIELDS, "axes", "reference"), texts=_TEXTS)
def repro(
    request: Request,
    *,
    issues: Issues = None,
    family: Family = "",
    every: Every = False,
    no_nightly: NoNightly = False,
    fail_on: FailOn = None,
    wait: options.Wait = False,
    dry_run: options.DryRun = False,
    json: Json = False,
) -> None:
    """Measure the claims of upstream issues.

    It measures them in the releases of each claim, in the newest release and in the newest nightly wheel.
    """
    from harness.upstream import stored  # noqa: PLC0415 - not needed for --help

    index = stored.load_index()
    if issues and issues[0] == "list":
        _print_claims(index.find_claims(" ".join(issues[1:]), family), json=json)
        return
    from harness.upstream import repro as upstream  # noqa: PLC0415 - not needed for lists

    selection = index.select_issues(issues or [], family, every=every)
    nightly_wheel = "" if every or no_nightly else upstream.find_nightly(request, say)
    repro_request = upstream.request(request, selection, nightly_wheel)
    if dry_run:
        raise typer.Exit(show_plan(repro_request, json=json))
    from harness.cli import running  # noqa: PLC0415 - as in `matrix`

    raise typer.Exit(running.repro(repro_request, wait=wait, json=json, fail_on=fail_on))


def _print_claims(claims: Sequence[Mapping[str, Any]], *, json: bool) -> None:
    if json:
        tell_json(claims)
        return
    rows = [("issue", "outcome", "measured", "claim")]
    for claim in claims:
        result = claim["result"]
        rows.append((claim["issue"], result.get("outcome", "-"), result.get("value", "-"), claim["title"]))
    # the few long names of issues don't make the column wider
    tell_lines(f"{issue:<9}  {outcome:<9}  {value:<9}  {text}" for issue, outcome, value, text in rows)

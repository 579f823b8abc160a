"""Runs that check upstream issues: the request for such a run, and its outcome."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.analysis.claims import ClaimResult
from harness.analysis.results import Results
from harness.environments.adhoc import add_requested
from harness.environments.catalog import load_environments
from harness.environments.requested import parse_requested
from harness.model.defaults import CLAIM_MEASURE, CLAIM_WARMUP, ISSUE_BUDGET, MOST_ISSUES_BUDGET
from harness.model.errors import CannotRunHereError, NothingSelectedError, UsageError
from harness.project import Project
from harness.session.reporting import Gate
from harness.session.request import Request
from harness.upstream import bundle


def request(options: Request, issues: Sequence[str], nightly: str) -> Request:
    """Return the request that measures the `issues` with these short names, with the other values from `options`.

    If `nightly` isn't empty, the issues are measured in this environment too.
    """
    return replace(
        options,
        claims=issues,
        environments=[*options.environments, *([nightly] if nightly else [])],
        budget=options.budget or min(ISSUE_BUDGET * len(issues), MOST_ISSUES_BUDGET),
        warmup=CLAIM_WARMUP if options.warmup is None else options.warmup,
        measure=CLAIM_MEASURE if options.measure is None else options.measure,
    )


def find_requested_claims(results: Results) -> list[ClaimResult]:
    """Return the results of the claims that the run was requested for."""
    return [claim_result for claim_result in results.claims if str(claim_result.claim.issue) in results.run.plan.claims]


def find_unfinished(results: Results) -> list[str]:
    """Return the issues of the run that have no clear outcome in the claimed environment."""
    settled_issues = {
        str(claim_result.claim.issue)
        for claim_result in find_requested_claims(results)
        if claim_result.at.outcome.holds or claim_result.at.outcome.is_gone
    }
    return [issue for issue in results.run.plan.claims if issue not in settled_issues]


def gate(results: Results, criterion: str) -> Gate:
    """Return the result of the gate that `criterion` selects.

    If `criterion` is `fixed`, the gate checks whether a later release fixed a claim. Otherwise, the gate checks whether
    a claim is confirmed in its own environment.
    """
    claims = find_requested_claims(results)
    if not any(claim_result.at.outcome.holds or claim_result.at.outcome.is_gone for claim_result in claims):
        return Gate.NOTHING_JUDGED
    is_met = any(
        claim_result.fixed if criterion == "fixed" else claim_result.at.outcome.holds for claim_result in claims
    )
    return Gate.SLOWER if is_met else Gate.PASSED


def write_bundle(folder: Path, results: Results) -> Path | None:
    """Write the bundle of a run for one issue. Returns the path of the issue's text; None without a result."""
    if len(results.run.plan.claims) != 1:
        return None
    try:
        return bundle.write(folder)[0]
    except (UsageError, NothingSelectedError):
        return None


def find_nightly(options: Request, print_line: Callable[[str], None]) -> str:
    """Return the environment of the newest nightly wheel. If it can't be found, print the reason and return ""."""
    package = "tf-nightly" if options.gpu or options.gpus or options.gpu_via else "tf-nightly-cpu"
    try:
        _, (name,) = add_requested(load_environments(Project.find()), [parse_requested(package)])
    except (UsageError, CannotRunHereError) as error:
        print_line(f"Not measured in {package}: {error.message}")
        return ""
    return name

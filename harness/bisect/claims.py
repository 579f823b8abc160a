"""Finds the cell and the ends (`good` and `bad`) of a search in the claim of an upstream issue."""

from dataclasses import replace

from harness.bisect.request import BisectRequest
from harness.environments.catalog import load_environments
from harness.environments.lines import resolve
from harness.environments.requested import ReleaseLine, parse_requested
from harness.model.errors import UsageError
from harness.model.scenario import Claim
from harness.plan.claims import find_claims, find_newest
from harness.project import Project
from harness.scenarios.catalog import find_scenarios


def complete(request: BisectRequest) -> BisectRequest:
    """Return the request with the scenario, axes, quantity and ends that the claim of its issue defines.

    A claim between two releases is preferred, and defines both ends. If both sides of the claim are in one environment,
    the search measures the worse side in all releases. Raises UsageError for an issue without a claim, and for a
    request without a cell.
    """
    if not request.issue:
        if not request.scenario:
            raise UsageError(
                "Specify what to search for: an issue, or a cell of a scenario.",
                "Example: harness bisect T#67033, or harness bisect -s SCENARIO -a AXIS=VALUE. To list the issues: "
                "harness repro list",
            )
        return request
    project = Project.find()
    environments = load_environments(project)
    issue_claims = find_claims([request.issue], find_scenarios(project).scenarios.values())
    matching_claims = [
        (scenario, claim)
        for scenario, claim in issue_claims
        if request.scenario in ("", scenario.name)
        and request.axes.items() <= scenario.claimed_axes(claim, claim.worse).items()
    ]
    if not matching_claims:
        raise UsageError(f"No claim of {request.issue} matches the scenario and the axes.", "Omit -s and -a.")
    scenario, claim = max(matching_claims, key=lambda pair: bool(_find_better_release(pair[1])))
    good, last_name = _find_better_release(claim), ""
    if not request.package:
        if request.fix:
            name = f"tf{'.'.join(claim.fixed.split('.')[:2])}"
            good = name if claim.fixed and name in environments else ""
        elif not request.bad:
            last_name = find_newest(environments)
    return replace(
        request,
        issue=claim.issue.short,
        scenario=scenario.name,
        axes=scenario.claimed_axes(claim, claim.worse),
        of=claim.of,
        good=request.good or good,
        bad=request.bad or claim.worse.environment,
        through=last_name or request.through,
    )


def resolve_ends(request: BisectRequest) -> BisectRequest:
    """Return the request with exact versions if its ends are release lines. Raises the errors of a release line."""
    environments = load_environments(Project.find())

    def resolve_exact(text: str) -> str:
        requested = parse_requested(text)
        return str(resolve(requested, environments)[0]) if isinstance(requested, ReleaseLine) else text

    return replace(request, good=resolve_exact(request.good), bad=resolve_exact(request.bad))


def _find_better_release(claim: Claim) -> str:
    """Return the environment of the claim's better side; empty if both sides have the same environment."""
    better_environment = claim.better.environment if claim.better else ""
    return better_environment if better_environment != claim.worse.environment else ""

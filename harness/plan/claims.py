"""The cells that check claims of upstream issues: both sides, in the claimed environments and in others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.model import issues
from harness.model.environment import Device, Environment
from harness.model.errors import HarnessError, UsageError
from harness.model.issues import Issue
from harness.model.run import Unavailable
from harness.model.scenario import Cell, Claim, Scenario, Suite, SuitePart
from harness.model.texts import joined

#: The tag of every scenario for upstream issues. Its other tags are its families.
UPSTREAM = "upstream"

#: A claim, with the scenario whose header contains it.
ScenarioClaim = tuple[Scenario, Claim]


def find_claims(typed: Iterable[str], scenarios: Iterable[Scenario]) -> list[ScenarioClaim]:
    """Return the claims of the requested issues, without duplicates, in the order of the request.

    An issue is specified as T#40261, as its URL, or only as its number if scenarios don't have issues of several
    repositories with this number. Raises UsageError for invalid text, and for an issue that no scenario checks.
    """
    by_issue = group_by_issue(scenarios)
    return [pair for name in dict.fromkeys(find_issue(text, by_issue) for text in typed) for pair in by_issue[name]]


def group_by_issue(scenarios: Iterable[Scenario]) -> dict[Issue, list[ScenarioClaim]]:
    """Return the claims about each issue, with their scenarios."""
    by_issue: dict[Issue, list[ScenarioClaim]] = {}
    for scenario in scenarios:
        for claim in scenario.claims:
            by_issue.setdefault(claim.issue, []).append((scenario, claim))
    return by_issue


def find_issue(typed: str, known: Collection[Issue]) -> Issue:
    """Return the requested issue, which must be one of the `known` issues. Raises UsageError for other issues."""
    number = typed.strip().lstrip("#")
    matching = [candidate for candidate in known if number == str(candidate.number)]
    if len(matching) > 1:
        names = [candidate.short for candidate in matching]
        raise UsageError(
            f"Several issues have the number {number}: {joined(names)}.", f"Use one of these names, such as {names[0]}."
        )
    issue = matching[0] if matching else issues.parse(typed)
    if issue not in known:
        raise issues.make_unknown_error(issue, known)
    return issue


def rename_environments(wanted: Iterable[ScenarioClaim], names: Mapping[str, str]) -> list[ScenarioClaim]:
    """Return the claims, and their scenarios, with renamed environments. `names` maps old names to new names."""
    return [
        (
            replace(scenario, claims=[entry.rename_environments(names) for entry in scenario.claims]),
            claim.rename_environments(names),
        )
        for scenario, claim in wanted
    ]


def list_cells(pair: ScenarioClaim, others: Iterable[str], device: Device) -> list[Cell]:
    """Return the cells of a claim in the claimed environment, and in each of the `others`."""
    scenario, claim = pair
    sides = (scenario.claimed(claim, device, environment) for environment in ["", *others])
    return list(dict.fromkeys(cell for side in sides for cell in side if cell))


def make_suite(
    wanted: Sequence[ScenarioClaim],
    others: Sequence[str],
    environments: Iterable[str],
    missing: Mapping[str, HarnessError],
    device: Device,
) -> tuple[Suite, list[Unavailable]]:
    """Return a suite with exactly the cells that the claims need, and the cells that can't be measured, with reasons.

    Cells are measured in the claimed environments and in the `others`. The suite's environments have the order of
    `environments`. `missing` maps environments that can't be created to their errors.
    """
    measurable: dict[Cell, None] = {}
    unavailable_cells: dict[Cell, Unavailable] = {}
    for pair in wanted:
        for cell in list_cells(pair, others, device):
            visible, error = pair[1].visible, missing.get(cell.environment)
            if device not in visible:
                reason = f"{pair[1].issue} is claimed for a {' or '.join(visible).upper()}"
                advice = "Add --gpu." if device is Device.CPU else "Omit --gpu and --gpus."
                unavailable_cells[cell] = Unavailable(cell, reason, advice)
            elif error:
                unavailable_cells[cell] = Unavailable(cell, error.message, error.advice)
            else:
                measurable[cell] = None
    names_used = {cell.environment for cell in measurable}
    claim_suite = Suite(
        name=", ".join(dict.fromkeys(str(claim.issue) for _, claim in wanted)),
        title="",
        environments=[name for name in environments if name in names_used],
        parts=[
            SuitePart(cell.scenario, {axis: [value] for axis, value in cell.axes.items()}, [cell.environment])
            for cell in measurable
        ],
    )
    # another claim may be visible in the same cell
    return claim_suite, [absence for cell, absence in unavailable_cells.items() if cell not in measurable]


def find_newest(environments: Mapping[str, Environment]) -> str:
    """Return the name of the catalog's environment with the newest stable release; if there are several, the first one.

    Raises UsageError if the catalog has no release.
    """
    releases = [environment for environment in environments.values() if environment.is_stable_release]
    if not releases:
        raise UsageError(
            "The catalog is empty, so the newest release is unknown.", "Add an environment to docker-bake.hcl."
        )
    return max(releases, key=lambda environment: environment.release).name

"""The cells for claims of upstream issues: both sides in the claimed environments and in others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.model import issues
from harness.model.environment import Device, Environment
from harness.model.errors import HarnessError, UsageError
from harness.model.issues import Issue
from harness.model.run import Unavailable
from harness.model.scenario import Cell, Claim, Scenario, Suite, SuitePart
from harness.model.texts import joined

#: The tag of every scenario of upstream issues; another one is its family.
UPSTREAM = "upstream"

#: A claim, with the scenario whose header has it.
Asked = tuple[Scenario, Claim]


def find_claims(typed: Iterable[str], scenarios: Iterable[Scenario]) -> list[Asked]:
    """Return the claims of the requested issues, without duplicates, in the order of the request.

    An issue is T#40261, its URL, or only its number if no other repository here has that number. Raises UsageError
    for invalid text, and for an issue that no scenario has a claim of.
    """
    by_issue: dict[Issue, list[Asked]] = {}
    for scenario in scenarios:
        for claim in scenario.claims:
            by_issue.setdefault(claim.issue, []).append((scenario, claim))
    return [pair for name in dict.fromkeys(find_issue(text, by_issue) for text in typed) for pair in by_issue[name]]


def find_issue(typed: str, known: Collection[Issue]) -> Issue:
    """Return the requested one of the `known` issues. Raises UsageError if it is unknown."""
    alone = typed.strip().lstrip("#")
    matching = [candidate for candidate in known if alone == str(candidate.number)]
    if len(matching) > 1:
        names = [candidate.short for candidate in matching]
        raise UsageError(
            f"Several issues have the number {alone}: {joined(names)}.", f"Use one of them, such as {names[0]}."
        )
    meant = matching[0] if matching else issues.parse(typed)
    if meant not in known:
        raise issues.make_unknown_error(meant, known)
    return meant


def rename_environments(wanted: Iterable[Asked], names: Mapping[str, str]) -> list[Asked]:
    """Return the claims with renamed environments, also in their scenarios. `names` maps old to new names."""

    def of(claim: Claim) -> Claim:
        worse = replace(claim.worse, environment=names.get(claim.worse.environment, claim.worse.environment))
        better = claim.better
        if better:
            better = replace(better, environment=names.get(better.environment, better.environment))
        return replace(claim, worse=worse, better=better)

    return [(replace(scenario, claims=[*map(of, scenario.claims)]), of(claim)) for scenario, claim in wanted]


def list_cells(pair: Asked, others: Iterable[str], device: Device) -> list[Cell]:
    """Return the cells of a claim: in the claimed environment, and in each of the `others` instead."""
    scenario, claim = pair
    places = (scenario.claimed(claim, device, environment) for environment in ["", *others])
    return list(dict.fromkeys(cell for place in places for cell in place if cell))


def make_suite(
    wanted: Sequence[Asked],
    others: Sequence[str],
    environments: Iterable[str],
    missing: Mapping[str, HarnessError],
    device: Device,
) -> tuple[Suite, list[Unavailable]]:
    """Return a suite of exactly the cells that the claims need, and the cells that can't be measured, with reasons.

    The cells are in the claimed environments and in the `others`. The suite's environments have the order of
    `environments`. `missing` maps environments that can't be created to their errors.
    """
    covered: dict[Cell, None] = {}
    absent: dict[Cell, Unavailable] = {}
    for pair in wanted:
        for cell in list_cells(pair, others, device):
            visible, error = pair[1].visible, missing.get(cell.environment)
            if device not in visible:
                reason = f"{pair[1].issue} is claimed for a {' or '.join(visible).upper()}"
                advice = "Add --gpu." if device is Device.CPU else "Omit --gpu and --gpus."
                absent[cell] = Unavailable(cell, reason, advice)
            elif error:
                absent[cell] = Unavailable(cell, error.message, error.advice)
            else:
                covered[cell] = None
    used = {cell.environment for cell in covered}
    claim_suite = Suite(
        name=", ".join(dict.fromkeys(str(claim.issue) for _, claim in wanted)),
        title="",
        environments=[name for name in environments if name in used],
        parts=[
            SuitePart(cell.scenario, {axis: [value] for axis, value in cell.axes.items()}, [cell.environment])
            for cell in covered
        ],
    )
    # another claim may be visible in the same cell
    return claim_suite, [absence for cell, absence in absent.items() if cell not in covered]


def find_newest(environments: Mapping[str, Environment]) -> str:
    """Return the name of the catalogue's environment of the newest release, the first one of several."""
    releases = [
        environment for environment in environments.values() if not environment.asked and not environment.gpu_image
    ]
    return max(releases, key=lambda environment: environment.release).name

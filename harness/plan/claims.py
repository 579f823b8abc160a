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


def asked(typed: Iterable[str], scenarios: Iterable[Scenario]) -> list[Asked]:
    """Return the claims of the requested issues, without duplicates, in the order of the request.

    An issue is T#40261, its URL, or only its number if no other repository here has that number. Raises UsageError
    for invalid text, and for an issue that no scenario has a claim of.
    """
    known: dict[Issue, list[Asked]] = {}
    for scenario in scenarios:
        for claim in scenario.claims:
            known.setdefault(claim.issue, []).append((scenario, claim))
    return [each for name in dict.fromkeys(issue(text, known) for text in typed) for each in known[name]]


def issue(typed: str, known: Collection[Issue]) -> Issue:
    """Return the requested one of the `known` issues. Raises UsageError if it is unknown."""
    alone = typed.strip().lstrip("#")
    found = [each for each in known if alone == str(each.number)]
    if len(found) > 1:
        names = [each.short for each in found]
        raise UsageError(
            f"Several issues have the number {alone}: {joined(names)}.", f"Use one of them, such as {names[0]}."
        )
    meant = found[0] if found else issues.parse(typed)
    if meant not in known:
        raise issues.unknown(meant, known)
    return meant


def renamed(wanted: Iterable[Asked], names: Mapping[str, str]) -> list[Asked]:
    """Return the claims with renamed environments, also in their scenarios. `names` maps old to new names."""

    def of(claim: Claim) -> Claim:
        worse = replace(claim.worse, environment=names.get(claim.worse.environment, claim.worse.environment))
        better = claim.better
        if better:
            better = replace(better, environment=names.get(better.environment, better.environment))
        return replace(claim, worse=worse, better=better)

    return [(replace(scenario, claims=[*map(of, scenario.claims)]), of(claim)) for scenario, claim in wanted]


def cells(each: Asked, others: Iterable[str], device: Device) -> list[Cell]:
    """Return the cells of a claim: in the claimed environment, and in each of the `others` instead."""
    scenario, claim = each
    places = (scenario.claimed(claim, device, environment) for environment in ["", *others])
    return list(dict.fromkeys(cell for place in places for cell in place if cell))


def suite(
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
    found: dict[Cell, None] = {}
    absent: dict[Cell, Unavailable] = {}
    for each in wanted:
        for cell in cells(each, others, device):
            visible, error = each[1].visible, missing.get(cell.environment)
            if device not in visible:
                reason = f"{each[1].issue} is claimed for a {' or '.join(visible).upper()}"
                advice = "Add --gpu." if device is Device.CPU else "Omit --gpu and --gpus."
                absent[cell] = Unavailable(cell, reason, advice)
            elif error:
                absent[cell] = Unavailable(cell, error.message, error.advice)
            else:
                found[cell] = None
    used = {cell.environment for cell in found}
    made = Suite(
        name=", ".join(dict.fromkeys(str(claim.issue) for _, claim in wanted)),
        title="",
        environments=[name for name in environments if name in used],
        parts=[
            SuitePart(cell.scenario, {axis: [value] for axis, value in cell.axes.items()}, [cell.environment])
            for cell in found
        ],
    )
    # another claim may be visible in the same cell
    return made, [each for cell, each in absent.items() if cell not in found]


def newest(environments: Mapping[str, Environment]) -> str:
    """Return the name of the catalogue's environment of the newest release, the first one of several."""
    known = [each for each in environments.values() if not each.asked and not each.gpu_image]
    return max(known, key=lambda each: each.release).name

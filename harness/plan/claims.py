"""What claims of upstream issues need measured: both sides where it was claimed, and elsewhere in place of that."""

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
    """The claims of the issues that were typed, each once, in the order typed.

    An issue is typed as T#40261, as its URL, or as its number alone where only one repository has it here. Raises
    UsageError for what is no issue, with how to write it, and for one of which no scenario has a claim.
    """
    known: dict[Issue, list[Asked]] = {}
    for scenario in scenarios:
        for claim in scenario.claims:
            known.setdefault(claim.issue, []).append((scenario, claim))
    return [each for name in dict.fromkeys(issue(text, known) for text in typed) for each in known[name]]


def issue(typed: str, known: Collection[Issue]) -> Issue:
    """The one of the `known` issues that was typed. Raises UsageError where there is none."""
    alone = typed.strip().lstrip("#")
    found = [each for each in known if alone == str(each.number)]
    if len(found) > 1:
        names = [each.short for each in found]
        raise UsageError(f"There are several issues {alone}: {joined(names)}.", f"Type one, such as {names[0]}.")
    meant = found[0] if found else issues.parse(typed)
    if meant not in known:
        raise issues.unknown(meant, known)
    return meant


def renamed(wanted: Iterable[Asked], names: Mapping[str, str]) -> list[Asked]:
    """The claims, in their scenarios too, with the names of their environments, by what headers call these."""

    def of(claim: Claim) -> Claim:
        worse = replace(claim.worse, environment=names.get(claim.worse.environment, claim.worse.environment))
        better = claim.better
        if better:
            better = replace(better, environment=names.get(better.environment, better.environment))
        return replace(claim, worse=worse, better=better)

    return [(replace(scenario, claims=[*map(of, scenario.claims)]), of(claim)) for scenario, claim in wanted]


def cells(each: Asked, others: Iterable[str], device: Device) -> list[Cell]:
    """The cells of a claim: where it was claimed, and in each of the `others` in place of that environment."""
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
    """Exactly the cells that the claims need, as a suite; and those that cannot be measured, with the reason.

    They are where each claim was made and in the `others`. The suite's environments come in the order of the known
    `environments`; those that could not be made are `missing`.
    """
    found: dict[Cell, None] = {}
    absent: dict[Cell, Unavailable] = {}
    for each in wanted:
        for cell in cells(each, others, device):
            visible, error = each[1].visible, missing.get(cell.environment)
            if device not in visible:
                reason = f"{each[1].issue} is said to be visible on a {' or '.join(visible).upper()}"
                advice = "Give --gpu." if device is Device.CPU else "Leave out --gpu and --gpus."
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
    """The catalogue's environment of the newest release, the first of several."""
    known = [each for each in environments.values() if not each.asked and not each.gpu_image]
    return max(known, key=lambda each: each.release).name

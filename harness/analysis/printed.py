"""Numbers that plain scripts print: their units, and ratios of two of them."""

from collections.abc import Iterable, Mapping

from harness.model.launch import Launch
from harness.model.scenario import NUMBER_UNITS, NUMBERS, PRINTED, Scenario

#: The unit of numbers that are times; other numbers have an empty unit.
SECONDS = "s"


def is_printed(quantity: str) -> bool:
    """Return whether a quantity is a number that a script prints. CPU contention isn't subtracted from it."""
    return quantity.startswith(PRINTED)


def find_ratio_numbers(quantity: str, scenario: Scenario) -> tuple[str, str] | None:
    """Return the names of the two printed numbers whose ratio is the quantity; None if it isn't such a ratio."""
    name = quantity.removeprefix(PRINTED)
    slashes = [index for index, character in enumerate(name) if character == "/"]
    pairs = [(name[:slash], name[slash + 1 :]) for slash in slashes]
    quantities = set(scenario.quantities)
    return next((pair for pair in pairs if {PRINTED + part for part in pair} <= quantities), None)


def unit_of(quantity: str, launches: Iterable[Launch]) -> str | None:
    """Return the unit of a printed number: SECONDS, or empty for other numbers; None if the launches disagree."""
    units = {unit for launch in launches if (unit := _find_unit(quantity, launch)) is not None}
    return None if len(units) > 1 else next(iter(units), "")


def _find_unit(quantity: str, launch: Launch) -> str | None:
    """Return the unit of a printed number in a launch; None if the launch printed no number, or only zeros."""
    units = launch.observations.get(NUMBER_UNITS)
    if not any(values(quantity, launch)):
        return None
    return SECONDS if isinstance(units, Mapping) and units.get(quantity) == SECONDS else ""


def values(quantity: str, launch: Launch) -> list[float]:
    """Return the values of a number in the order in which a launch printed them.

    Invalid values are omitted, because an untrusted launch may have written them.
    """
    by_name = launch.observations.get(NUMBERS)
    numbers = by_name.get(quantity) if isinstance(by_name, Mapping) else None
    if not isinstance(numbers, list):
        return []
    return [
        float(number)
        for number in numbers
        if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 1e300
    ]

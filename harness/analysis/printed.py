"""Numbers and output that plain scripts print: units, ratios, and comparisons of output between environments.

Launches of the same environment can have different outputs, for example if a script prints its duration. A line that
differs in this way isn't a difference between environments.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.analysis.cell_index import Lookup
from harness.model.launch import Launch, Status
from harness.model.numbers import is_number
from harness.model.scenario import NUMBER_UNITS, NUMBERS, OUTPUT, PRINTED, Cell, Scenario

#: The unit of numbers that are times; other numbers have an empty unit.
SECONDS = "s"

#: The number of characters that are saved of each line, as in scenarios/kit/script.py.
CHARACTERS = 200


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
    return [float(number) for number in numbers if is_number(number)]


class OutputMatch(StrEnum):
    """The result of comparing the outputs of two environments."""

    SAME = "the same"
    DIFFERS = "differs"
    VARIES = "varies"
    LATER = "differs later"


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """A comparison of the output of `cell` with the output of `other`.

    `line` (from 1) is the first line that differs. `texts` contains its text in `cell` and in `other`; a text is None
    if that output has no such line. If the only lines that differ also differ between launches of the same cell
    (VARIES), `line` is the first such line, and `texts` contains two of its texts. If the outputs differ only in a part
    that isn't saved (LATER), `line` is the first line that isn't saved completely.
    """

    cell: Cell
    other: Cell
    likeness: OutputMatch
    line: int = 0
    texts: tuple[str | None, str | None] = (None, None)


@dataclass(frozen=True, slots=True)
class _Output:
    """The output of a launch: the first lines, the number of lines, and a hash of all lines."""

    lines: Sequence[str]
    count: int
    sha256: str

    def line(self, number: int) -> str | None:
        return self.lines[number - 1] if number <= len(self.lines) else None


def compare_outputs(lookup: Lookup, reference: str, scripts: Iterable[str]) -> list[OutputComparison]:
    """Return the comparison of each cell's output with the output of the baseline cell with the same axis values."""
    by_cell = {
        cell: outputs for name in scripts for cell in lookup.cells_of(name) if (outputs := _read_outputs(cell, lookup))
    }
    pairs = [
        (cell, other)
        for cell in by_cell
        for other in by_cell
        if other.environment == reference != cell.environment
        and (other.scenario, other.device, other.axes) == (cell.scenario, cell.device, cell.axes)
    ]
    return [_compare(cell, other, by_cell[cell], by_cell[other]) for cell, other in pairs]


def _read_outputs(cell: Cell, lookup: Lookup) -> list[_Output]:
    pilot = lookup.pilots.get(cell)
    launches: Sequence[Launch] = lookup.numbers.get(cell) or ([pilot] if pilot and pilot.status is Status.OK else [])
    return [output for launch in launches if (output := _read(launch.observations.get(OUTPUT)))]


def _read(observation: Any) -> _Output | None:
    """Convert an observation to output; None if it isn't valid, because an untrusted launch may have written it."""
    if not isinstance(observation, Mapping):
        return None
    lines, count, digest = (observation.get(key) for key in ("lines", "count", "sha256"))
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return None
    return _Output(lines, count, digest) if isinstance(count, int) and isinstance(digest, str) else None


def _compare(cell: Cell, other: Cell, outputs: Sequence[_Output], other_outputs: Sequence[_Output]) -> OutputComparison:
    """Return the comparison of two cells' outputs. Each cell has at least one output."""
    if len({output.sha256 for output in [*outputs, *other_outputs]}) == 1:
        return OutputComparison(cell, other, OutputMatch.SAME)
    varying_line = 0
    for number in range(1, max(len(output.lines) for output in [*outputs, *other_outputs]) + 1):
        lines, other_lines = ({output.line(number) for output in side} for side in (outputs, other_outputs))
        if len(lines) == len(other_lines) == 1:
            if lines != other_lines:
                return OutputComparison(cell, other, OutputMatch.DIFFERS, number, (lines.pop(), other_lines.pop()))
        elif not varying_line:
            varying_line = number
    if varying_line:
        side = outputs if len({output.line(varying_line) for output in outputs}) > 1 else other_outputs
        texts = list(dict.fromkeys(output.line(varying_line) for output in side))
        return OutputComparison(cell, other, OutputMatch.VARIES, varying_line, (texts[0], texts[1]))
    # a line of this length may have been cut off, so the rest of it may differ
    shortest_output = min((output.lines for output in [*outputs, *other_outputs]), key=len)
    first_incomplete = next(
        (number for number, line in enumerate(shortest_output, 1) if len(line) >= CHARACTERS), 1 + len(shortest_output)
    )
    return OutputComparison(cell, other, OutputMatch.LATER, first_incomplete)

"""Valid ranges of the numbers that a worker sends and that the files of a run contain.

The ranges are much wider than measured values need, but sums, squares and ratios of valid numbers are finite.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

from harness.model.texts import format_number

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Within:
    """The valid range of a number in a stored dataclass, including both ends. Infinity and NaN are never valid."""

    least: float
    most: float

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most

    # pydantic uses this range when it validates a stored document
    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        schema: Any = handler(source)
        schema.update(ge=self.least, le=self.most)
        core_schema: CoreSchema = schema
        return core_schema


#: Seconds of one sample: from 1 ns, which is the resolution of clocks, to four months.
SAMPLE = Within(1e-9, 1e7)
#: Seconds of a phase, a launch or a budget: up to thirty years.
LENGTH = Within(0.0, 1e9)
#: Counts: integers that a float represents exactly.
COUNT = Within(0, 2**53)
#: Bytes: 64-bit integers.
BYTES = Within(0, 2**63 - 1)
#: Resources that a worker reports: seconds, bytes, counts.
AMOUNT = Within(0.0, 2.0**64)
#: Rounds and attempts.
ROUNDS = Within(0, 1_000_000)
#: CPU numbers: up to the highest NR_CPUS of the kernel.
CPUS = Within(0, 8192)
#: Shares, such as a margin.
SHARE = Within(1e-6, 1.0)

#: The smallest valid amount other than zero. The inverse of a much smaller number, such as 5e-324, is infinite.
LEAST = 1e-30
#: MOST: the largest absolute value of a number in an observation or a fingerprint. DEPTH: the deepest valid nesting.
#: Results need much smaller numbers and depths, and JSON writers support much larger depths.
MOST, DEPTH = 1e100, 32

SampleSeconds = Annotated[float, SAMPLE]
Seconds = Annotated[float, LENGTH]
Amount = Annotated[float, AMOUNT]
Share = Annotated[float, SHARE]
Count = Annotated[int, COUNT]
Some = Annotated[int, Within(1, 2**53)]
Bytes = Annotated[int, BYTES]
Rounds = Annotated[int, ROUNDS]
Cpu = Annotated[int, CPUS]


def find_problem(value: object, depth: int = DEPTH) -> str:
    """Return why a JSON value from a scenario isn't valid, as a clause, or "" if it is valid."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return ""
    if kind is int or kind is float:
        return "" if -MOST <= value <= MOST else f"a number is not within ±{format_number(MOST)}"  # type: ignore[operator]
    if depth == 0:
        return f"a value is nested deeper than {DEPTH}"
    children = value.values() if isinstance(value, Mapping) else value
    return next(filter(None, (find_problem(element, depth - 1) for element in children)), "")  # type: ignore[attr-defined]


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a JSON value is a number, not a boolean, that isn't too large for a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def is_amount(value: float) -> bool:
    """Return whether the value is a valid amount: 0, or in the range and not too small."""
    return value == 0.0 or LEAST <= value <= AMOUNT.most

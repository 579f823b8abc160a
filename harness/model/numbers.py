"""The ranges of the numbers that come in: from a worker, and from the files of a run.

They are far wider than what is measured, and narrow enough that sums, squares and ratios of them stay numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Within:
    """Marks a number of a stored dataclass with its range; the ends are in it. Infinity and NaN are in none."""

    least: float
    most: float

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most

    # how the store reads it
    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        schema: Any = handler(source)
        schema.update(ge=self.least, le=self.most)
        found: CoreSchema = schema
        return found


#: Seconds of one sample: a nanosecond, which is what clocks count in, to four months.
SAMPLE = Within(1e-9, 1e7)
#: Seconds of a phase, of a launch, and of what a run is asked to take: up to thirty years.
LENGTH = Within(0.0, 1e9)
#: What is counted in whole: floats have all of these.
COUNT = Within(0, 2**53)
#: Bytes, which are counted in 64 bits.
BYTES = Within(0, 2**63 - 1)
#: What a worker tells of the machine: seconds, bytes, counts.
AMOUNT = Within(0.0, 2.0**64)
#: Rounds and attempts.
ROUNDS = Within(0, 1_000_000)
#: CPUs: the kernel knows no machine with more (its highest NR_CPUS).
CPUS = Within(0, 8192)
#: Shares, such as a margin.
SHARE = Within(1e-6, 1.0)

#: An amount that is not zero, and smaller than this, is none: 1 / 5e-324 is infinite.
LEAST = 1e-30
#: What an observation or a fingerprint may have in it, on both sides of zero; and how deep it may be nested: far more
#: than results need, far less than what makes a writer of JSON fail.
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


def wrong(value: object, depth: int = DEPTH) -> str:
    """What is wrong with a JSON value that a scenario made, as a clause; empty where nothing is."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return ""
    if kind is int or kind is float:
        return "" if -MOST <= value <= MOST else f"a number is not within ±{MOST:g}"  # type: ignore[operator]
    if depth == 0:
        return f"a value is nested deeper than {DEPTH}"
    inner = value.values() if isinstance(value, Mapping) else value
    return next(filter(None, (wrong(each, depth - 1) for each in inner)), "")  # type: ignore[attr-defined]


def is_amount(value: float) -> bool:
    """Whether it is an amount: zero, or within the range and not next to nothing."""
    return value == 0.0 or LEAST <= value <= AMOUNT.most

"""Suites: named selections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: What a run takes that names no suite and no scenario.
DEFAULT_SUITE = "headline"


@dataclass(frozen=True, slots=True)
class SuitePart:
    """Cells of one scenario: for each axis named the values chosen, every value (or the default) of the others.

    `environments` are names or globs of those that these cells are measured in; empty: all that the run has.
    """

    scenario: str
    axes: Mapping[str, Sequence[str]]
    environments: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """What `--suite NAME` runs: the union of its parts, in the environments it names.

    `rounds`, `budget`, `warmup` and `measure`, as the options of these names take them, are what these options are
    unless they are typed; None and empty where the suite says nothing.
    """

    name: str
    title: str
    environments: Sequence[str]
    parts: Sequence[SuitePart]
    rounds: int | None = None
    budget: str = ""
    warmup: str = ""
    measure: str = ""

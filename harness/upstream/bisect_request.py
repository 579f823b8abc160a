"""What a search is asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.model.scenario import STEP

#: What --budget is where it is left out, in seconds of launches.
BUDGET = 15 * 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectRequest:
    """What is searched for: a cell, between two ends, in releases or in the versions of one package.

    `good` and `bad` are what -e takes, empty where the claim or the catalogue has them. `fix`: the step back to good is
    searched, not the one to bad. `package` moves, and all else is held; empty: releases. `of` is the quantity, as
    comparisons name it; `through` is up to where a scan looks for more changes; `budget` is in seconds of launches.
    """

    scenario: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)
    of: str = STEP
    issue: str = ""
    through: str = ""
    good: str = ""
    bad: str = ""
    fix: bool = False
    package: str = ""
    budget: float = BUDGET
    backend: str = "auto"
    cpus: str = ""
    timeout: float | None = None
    margin: float = 0.03
    results: str = "results"
    command: Sequence[str] = ()

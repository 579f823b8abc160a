"""What a search is asked for. Light to import: `harness bisect` makes its options of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from harness.model.defaults import BISECT_BUDGET, MARGIN
from harness.model.errors import UsageError
from harness.model.scenario import STEP
from harness.plan.selection import parse_axes
from harness.session.request import Option, Panel, length_text, read_seconds, shared


def read_cell_axes(typed: Sequence[str], option: str) -> dict[str, str]:
    """`mode=eager`: one value by axis. Raises UsageError."""
    found = parse_axes(typed)
    for axis, values in found.items():
        if len(values) > 1:
            raise UsageError(
                f"A search measures one cell, and the axis {axis} has {len(values)} values.", f"-a {axis}={values[0]}"
            )
    return {axis: values[0] for axis, values in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectRequest:
    """What is searched for: a cell, between two ends, in releases or in the versions of one package.

    `good` and `bad` are what -e takes, empty where the claim or the catalogue has them. `fix`: the step back to good is
    searched, not the one to bad. `package` moves, and all else is held; empty: releases. `of` is the quantity, as
    comparisons name it; `through` is up to where a scan looks for more changes; `budget` is in seconds of launches.
    The fields without an `Option` are options of `Request`, or none.
    """

    scenario: Annotated[str, Option("A scenario, without an issue.", ("-s", "--scenario"))] = ""
    axes: Annotated[Mapping[str, str], Option("AXIS=VALUE: which of its cells.", ("-a", "--axis"), read_cell_axes)] = (
        field(default_factory=dict)
    )
    of: str = STEP
    issue: str = ""
    through: str = ""
    good: Annotated[str, Option("An environment before the change.", metavar="ENVIRONMENT")] = ""
    bad: Annotated[str, Option("An environment after the change.", metavar="ENVIRONMENT")] = ""
    fix: Annotated[bool, Option("Search where it became good again.", ("--find-fix",))] = False
    package: Annotated[
        str,
        Option(
            "Search in the versions of this package, all else held: tensorflow (patch releases and release "
            "candidates), tf-nightly, tf-nightly-cpu, keras, keras-nightly, numpy or another.",
            metavar="NAME",
        ),
    ] = ""
    budget: Annotated[
        float,
        Option(
            "Start nothing that would pass so much time of launches.",
            read=read_seconds,
            shown=length_text(BISECT_BUDGET),
            panel=Panel.PRECISION,
        ),
    ] = BISECT_BUDGET
    backend: str = "auto"
    cpus: Annotated[str, shared("cpus", shown="1")] = ""
    timeout: float | None = None
    margin: float = MARGIN
    results: Path = Path("results")
    command: Sequence[str] = ()

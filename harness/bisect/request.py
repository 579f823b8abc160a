"""The request for a search. This module is fast to import, because `harness bisect` makes its options from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from harness.model.defaults import BISECT_BUDGET, MARGIN
from harness.model.errors import UsageError
from harness.model.scenario import STEP
from harness.plan.selection import parse_axes
from harness.session.options import Option, PrecisionOption, format_length, read_seconds


def read_cell_axes(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return the value of each axis, from texts such as `mode=eager`. Raises UsageError for several values."""
    axes = parse_axes(texts)
    for axis, values in axes.items():
        if len(values) > 1:
            raise UsageError(
                f"A search measures one cell, but the axis {axis} has {len(values)} values.",
                f"Pass one value, such as -a {axis}={values[0]}",
            )
    return {axis: values[0] for axis, values in axes.items()}


class By(StrEnum):
    """How a search compares candidates."""

    TIME = "time"
    WORK = "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectRequest:
    """A cell, and the two ends (`good` and `bad`) between which releases or the versions of one package are searched.

    The ends are values of -e, or, with a `repository`, revisions. If they are empty, they come from the claim of the
    issue, or from the catalog. With `fix`, the search is for the fix. `of` is the name of the quantity.
    A scan continues up to the environment `through`, to find further changes. `budget` is in seconds of launches. If a
    plain script is measured, `script` contains its path, files and arguments as they are passed to `harness bisect`.
    Fields without an `Option` share the option of `Request`, or have none.
    """

    scenario: Annotated[str, Option("The scenario to measure if no issue is passed.", ("-s", "--scenario"))] = ""
    axes: Annotated[
        Mapping[str, str], Option("One value for each axis that has several values.", ("-a", "--axis"), read_cell_axes)
    ] = field(default_factory=dict)
    of: str = STEP
    issue: str = ""
    script: Sequence[str] = ()
    through: str = ""
    good: Annotated[
        str, Option("An environment before the change. With --repository: a commit.", metavar="ENVIRONMENT")
    ] = ""
    bad: Annotated[
        str, Option("An environment after the change. With --repository: a commit.", metavar="ENVIRONMENT")
    ] = ""
    fix: Annotated[bool, Option("Search for the release that fixed the regression.", ("--find-fix",))] = False
    package: Annotated[
        str,
        Option(
            "Search the versions of this package. The versions of all other packages stay the same. Examples: "
            "tensorflow (patch releases and release candidates), tf-nightly, tf-nightly-cpu, keras, keras-nightly, "
            "numpy.",
            metavar="NAME",
        ),
    ] = ""
    repository: Annotated[
        str,
        Option(
            "Search the commits of this repository, and build the package from each commit. A merge counts as one "
            "commit.",
            metavar="FOLDER",
        ),
    ] = ""
    environment: Annotated[
        str,
        Option(
            "With --repository: the environment in which the package is replaced. Default: the newest one.",
            ("-e", "--env", "--environment"),
            metavar="NAME",
        ),
    ] = ""
    by: Annotated[
        By, PrecisionOption("Compare times, or exact numbers of calls (`work`), in one launch of each candidate.")
    ] = By.TIME
    budget: Annotated[
        float,
        PrecisionOption(
            "Stop before the launches exceed this time.", read=read_seconds, shown=format_length(BISECT_BUDGET)
        ),
    ] = BISECT_BUDGET
    backend: str = "auto"
    trust: bool = False
    share: bool = False
    gpu: bool = False
    gpus: str = ""
    cpus: str = ""
    timeout: float | None = None
    margin: float = MARGIN
    results: Path = Path("results")
    command: Sequence[str] = ()

"""Requests to the history: the selected series, and the options for confirming suspected changes.

Like `harness.session.request`, this module is fast to import.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from harness.model.defaults import BISECT_BUDGET, CONFIRM_ROUNDS, CONFIRMATIONS, MARGIN
from harness.plan.selection import parse_axes
from harness.session.options import Option, PrecisionOption, format_length, format_seconds, read_seconds, split_names


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRequest:
    """A selection of series. Without any option, it selects all series."""

    scenarios: Annotated[Sequence[str], Option("Scenarios or globs.", ("-s", "--scenario"), split_names)] = ()
    environments: Annotated[
        Sequence[str], Option("Environments or globs.", ("-e", "--env", "--environment"), split_names)
    ] = ()
    axes: Annotated[
        Mapping[str, Sequence[str]],
        Option(
            "Values of an axis, or globs: AXIS=VALUE[,VALUE…].", ("-a", "--axis"), lambda typed, _: parse_axes(typed)
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmRequest(SeriesRequest):
    """A request to measure suspected changes again. Fields without an `Option` have the options of `Request`."""

    rounds: Annotated[
        int, PrecisionOption("The number of times to measure both sides.", least=2, shown=str(CONFIRM_ROUNDS))
    ] = CONFIRM_ROUNDS
    budget: Annotated[
        float | None, PrecisionOption("Don't start a round that would exceed this time.", read=read_seconds)
    ] = None
    confirmations: Annotated[
        int,
        PrecisionOption(
            "How many series that didn't change may be measured again per month. More find smaller changes earlier.",
            least=1,
            shown=str(CONFIRMATIONS),
        ),
    ] = CONFIRMATIONS
    search: Annotated[
        float,
        PrecisionOption(
            "For a confirmed slowdown of a release line, search the wheels between the two versions. Stop before the "
            "launches exceed this time. 0s: don't search.",
            read=partial(read_seconds, or_none=True),
            text=format_seconds,
            shown=format_length(BISECT_BUDGET),
            metavar=format_length(BISECT_BUDGET),
        ),
    ] = BISECT_BUDGET
    backend: str = "auto"
    trust: bool = False
    share: bool = False
    warmup: float | None = None
    measure: float | None = None
    margin: float = MARGIN
    results: Path = Path("results")

"""Pydantic models of scenario headers and of suites.toml. Pydantic loads slowly, so import this module only at use."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, TypeAlias

from packaging import requirements
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    FiniteFloat,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from harness.environments.requested import Files, FromSource, parse_requested
from harness.model import issues
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.scenario import ENVIRONMENT, GROWTH, PEAK, PERCENTILES, STEP, TRACES, Axes, has_values
from harness.model.texts import find_nearest
from harness.scenarios.validation import (
    ERROR_LENGTH,
    TomlTable,
    make_error,
    make_invalid_error,
    make_validator,
    raise_errors,
)
from harness.toml import Key, format_number_text, is_json, is_number, list_choices

#: Axis names that scenarios can't use.
_RESERVED = ("bench", "device", ENVIRONMENT, "scenario")
#: Maximum length of an axis value in characters: tables and command lines show it.
_VALUE_LENGTH = 200
#: Phases that every launch has. A file can define others.
_PHASES = ("container start", "interpreter start", "device", "first fill", "warm up", "steady state")
#: The keys of claimed ranges, with the limit of each range and an example.
_RANGES = {"ratio": (1, "ratio = [2, 5]"), "seconds": (0, "seconds = [5, 20]"), "bytes": (0, "bytes = [1000, 20000]")}


@dataclass(frozen=True, slots=True)
class HeaderContext:
    """Facts about the whole header that validators need.

    `axes` are the values of each axis (none if they are invalid), and `sweeps` are the numeric axes. `phases` are the
    phases in the file, or None for a plain script.
    """

    axes: Mapping[str, Sequence[str]]
    sweeps: Collection[str]
    phases: Sequence[str] | None


# as a string, because ValidationInfo is generic at run time only from pydantic 2.12 on
Info: TypeAlias = "ValidationInfo[HeaderContext]"


def _check_distinct(values: list[str]) -> list[str]:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise make_invalid_error(f"expected {value!r} once", "Remove the duplicate.", value)
    return values


def _check_increasing(numbers: list[float]) -> list[float]:
    for previous, number in pairwise(numbers):
        if previous >= number:
            pair = f"{format_number_text(number)} after {format_number_text(previous)}"
            problem = f"expected increasing numbers, each once, not {pair}"
            raise make_invalid_error(problem, "Sort the numbers.", format_number_text(number))
    return numbers


def _check_quantity(of: str, info: Info) -> str:
    """Check the quantity of an entry: the step, another quantity, or a phase in the file or one of its helpers."""
    names = list(dict.fromkeys([STEP, *PERCENTILES, PEAK, GROWTH, TRACES, *(info.context.phases or ()), *_PHASES]))
    if info.context.phases is not None and of not in names and find_nearest(of, names):
        raise make_invalid_error(
            "expected a quantity or a phase of the file", list_choices(of, names, "possible values")
        )
    return of


def _parse_point(values: dict[str, Any], info: Info) -> dict[str, str]:
    """Return the value of each axis in a table. Values of sweeps can be numbers."""
    context, point, errors = info.context, {}, []
    for axis, value in values.items():
        axis_values = context.axes.get(axis)
        point[axis] = format_number_text(value) if axis in context.sweeps and is_number(value) else value
        if axis_values is None:
            errors.append(make_error((axis,), {}, "this is not an axis", list_choices(axis, context.axes, "axes")))
        elif axis_values and point[axis] not in axis_values:
            advice = list_choices(str(value)[:ERROR_LENGTH], axis_values, "values")
            errors.append(make_error((axis,), value, f"expected a value of the axis {axis}", advice))
    raise_errors(errors)
    return point


def _normalize_environment(text: str) -> str:
    """Return the name of an environment or of a release line. For requirements, return the normalized text."""
    requested = parse_requested(text)
    if isinstance(requested, FromSource | Files):
        raise UsageError("expected an environment without packages from sources or files", "For example: tf2.15")
    return str(requested)


_LOWER = re.compile(rf"(?!({'|'.join(_RESERVED)})$)[a-z][a-z0-9_]*")
_UPPER = re.compile("[A-Z][A-Z0-9_]*")
_LETTERS = "letters, digits and `_`, beginning with a letter"

Requirement = Annotated[str, make_validator(requirements.Requirement, "expected a requirement (PEP 508)")]
Requirements = Annotated[list[Requirement], Field(examples=['NAME = ["tensorflow>=2.4"]'])]
IssueName = Annotated[str, make_validator(issues.parse, "expected an issue", converts=True)]
Environment = Annotated[str, make_validator(_normalize_environment, "expected an environment", converts=True)]
Versions = Annotated[str, make_validator(SpecifierSet, "expected a range of versions (PEP 440)", 'Example: ">=3.6"')]
Release = Annotated[str, make_validator(Version, "expected a release", 'Example: "2.3"')]
Devices = Annotated[list[Annotated[Device, Field(strict=False)]], Field(min_length=1, examples=['NAME = ["cpu"]'])]
Quantity = Annotated[str, AfterValidator(_check_quantity)]
Point = Annotated[dict[str, Any], AfterValidator(_parse_point)]
When = Annotated[Point, Field(examples=['NAME = { mode = "graph" }'])]
Range = Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]
AxisName = Annotated[
    str, make_validator(_LOWER.fullmatch, f"expected lower-case {_LETTERS}, and none of {', '.join(_RESERVED)}")
]
VariableName = Annotated[str, make_validator(_UPPER.fullmatch, f"expected upper-case {_LETTERS}")]
AxisText = Annotated[str, Field(max_length=_VALUE_LENGTH)]
AxisTexts = Annotated[list[AxisText], Field(min_length=1), AfterValidator(_check_distinct)]
#: A name or a glob. A number (of a sweep) is converted to the text that cells have for it.
Pattern = Annotated[str, BeforeValidator(lambda value: format_number_text(value) if is_number(value) else value)]
Patterns = Annotated[list[Pattern], Field(min_length=1)]
Positive = Annotated[int, make_validator(lambda number: number > 0, "expected a number above 0")]


class SweepTable(TomlTable):
    """A numeric axis."""

    sweep: Annotated[list[FiniteFloat], Field(min_length=2), AfterValidator(_check_increasing)] = Field(
        examples=["NAME = [1, 32, 1024]"]
    )
    unit: str = ""


Axis = Annotated[
    Annotated[SweepTable, Tag("[sweep]")] | Annotated[AxisTexts, Tag("[texts]")],
    Discriminator(lambda value: "[sweep]" if isinstance(value, dict) else "[texts]"),
]
_AXES: Any = Field({}, examples=['NAME = ["one", "other"]', "NAME = { sweep = [1, 32] }"])


class AxesTable(TomlTable, extra="allow"):
    """A table of axes with their values, and other keys."""

    @model_validator(mode="after")
    def check_axes(self, info: Info) -> Self:
        """Check the axes, and convert the numbers of sweeps to texts."""
        self.axes.update(_parse_point(self.axes, info))
        return self

    @property
    def axes(self) -> dict[str, Any]:
        """Value of each axis."""
        return self.__pydantic_extra__ or {}


class NeedTable(TomlTable):
    """`[[tool.harness.needs]]`."""

    requires: Requirements = []
    when: When = {}
    reason: str = ""
    advice: str = ""
    devices: Devices = []


class PickTable(AxesTable):
    """`pick` of a comparison."""

    requires: Requirements = []

    @model_validator(mode="after")
    def check_sweeps(self, info: Info) -> Self:
        """Check that no axis is a sweep."""
        advice = "Remove this axis: environments are compared at each value of the sweep."
        raise_errors(
            make_error((axis,), {}, "this axis is a sweep", advice) for axis in self.axes if axis in info.context.sweeps
        )
        return self


class ComparisonTable(TomlTable):
    """`[[tool.harness.compare]]`."""

    name: str = ""
    along: str = ""
    plus: str = ""
    against: str = ""
    pick: list[PickTable] = []
    of: Quantity = STEP

    @model_validator(mode="after")
    def check_values(self, info: Info) -> Self:
        """Check the axis, and that it has the compared values."""
        axes, along, errors = info.context.axes, self.along, []
        if along in info.context.sweeps:
            advice = "Use another axis: its values are compared at each value of the sweep."
            errors.append(make_error(("along",), along, "this axis is a sweep", advice))
        elif along != ENVIRONMENT and along not in axes:
            advice = list_choices(along, [ENVIRONMENT, *axes], "possible values")
            errors.append(make_error(("along",), along, f"expected `{ENVIRONMENT}` or an axis", advice))
        for name, value in (("plus", self.plus), ("against", self.against)):
            if along == ENVIRONMENT and value:
                advice = f"Remove `{name}`: each environment is compared with the baseline of the run."
                errors.append(make_error((name,), value, f'expected nothing with along = "{ENVIRONMENT}"', advice))
            # without `against`, `plus` is compared with each other value
            values = axes.get(along) if along != ENVIRONMENT and (value or name == "plus") else None
            if values and value not in values:
                errors.append(
                    make_error((name,), value, f"expected a value of {along}", list_choices(value, values, "values"))
                )
        raise_errors(errors)
        return self


class ExpectationTable(TomlTable):
    """`[[tool.harness.expect]]`."""

    observation: str = Field(min_length=1, examples=['NAME = "traces", the name in bench.observe()'])
    value: Annotated[Any, make_validator(is_json, "expected a value that JSON can store")] = Field(
        examples=["NAME = 3", 'NAME = "text"', "NAME = [1, 2.5]"]
    )
    when: When = {}
    requires: Requirements = []


class SideTable(AxesTable):
    """`worse` and `better` of a claim."""

    environment: Environment = Field(examples=['NAME = "tf2.2"', 'NAME = "tensorflow==2.2.0"'])


class ClaimTable(TomlTable):
    """`[[tool.harness.claim]]`."""

    issue: IssueName = Field(examples=['NAME = "T#33487"'])
    reported: str = Field(min_length=1, examples=['NAME = "predict takes 100 times as long as a call of the model"'])
    worse: SideTable = Field(examples=['NAME = { environment = "tf2.2" }'])
    better: SideTable | None = Field(None, examples=['NAME = { environment = "tf2.2" }'])
    ratio: Range | None = Field(None, examples=[_RANGES["ratio"][1]])
    seconds: Range | None = Field(None, examples=[_RANGES["seconds"][1]])
    bytes: Range | None = Field(None, examples=[_RANGES["bytes"][1]])
    of: Quantity = ""
    when: When = {}
    hardware: str = ""
    version: str = ""
    program: Literal["", "same", "similar", "guessed"] = ""
    fixed: Release = ""
    visible: Devices = list(Device)

    @model_validator(mode="after")
    def check_range(self) -> Self:
        """Check that the claim has exactly one range, and that the range fits its quantity."""
        ranges = [key for key in _RANGES if getattr(self, key)]
        advice = f"Write one of {', '.join(example for _, example in _RANGES.values())}."
        if len(ranges) != 1:
            raise_errors([make_error((*ranges[-1:],), {}, f"expected one range, not {len(ranges)}", advice)])
        key, (low, high) = ranges[0], getattr(self, ranges[0])
        limit, example = _RANGES[key]
        self.of = of = self.of or (GROWTH if key == "bytes" else STEP)
        errors = []
        if {"bytes": of != GROWTH, "ratio": of == GROWTH, "seconds": of in (PEAK, GROWTH, TRACES)}[key]:
            errors.append(make_error(("of",), of, f"expected a quantity that `{key}` can describe", advice))
        if not limit < low < high:
            hint = ". If the other side takes longer, swap `worse` and `better`." if key == "ratio" else ""
            problem = f"expected two numbers above {limit}, the lower one first"
            errors.append(make_error((key,), [], problem, f"Example: {example}{hint}"))
        raise_errors(errors)
        return self


class ProfileTable(TomlTable):
    """`[tool.harness.profile]`."""

    data: list[str] = []


class HeaderTable(TomlTable):
    """`[tool.harness]`."""

    title: str = ""
    source: str = ""
    tags: list[str] = []
    axes: dict[AxisName, Axis] = _AXES
    env: dict[VariableName, Axis] = _AXES
    default: Point = {}
    exclude: list[Point] = Field([], examples=["[[PATH]]"])
    needs: list[NeedTable] = []
    compare: list[ComparisonTable] = []
    claim: list[ClaimTable] = []
    expect: list[ExpectationTable] = []
    profile: ProfileTable = ProfileTable()
    files: list[str] = []
    script: str = ""

    @field_validator("claim")
    @classmethod
    def check_sides(cls, claims: list[ClaimTable], info: Info) -> list[ClaimTable]:
        """Check that each side of a claim selects exactly one cell."""
        default, exclude = info.data.get("default", {}), info.data.get("exclude", [])
        raise_errors(
            error
            for number, claim in enumerate(claims)
            for error in _find_side_errors((number,), claim, info.context, default, exclude)
        )
        return claims


def _find_side_errors(
    location: Key, claim: ClaimTable, context: HeaderContext, default: Axes, exclude: Sequence[Axes]
) -> Iterator[InitErrorDetails]:
    """Return errors for sides that are redundant, missing, or equal, and for axes that have no value or two values."""
    worse, better, when = claim.worse, claim.better, claim.when
    if better and not claim.ratio:
        advice = "Remove `better`: seconds and bytes describe only `worse`."
        yield make_error((*location, "better"), {}, "expected no second side", advice)
    if not better and claim.ratio:
        yield make_error((*location, "better"), "", "expected the faster side")
    sides = {"worse": worse, **({"better": better} if better else {})}
    if worse == better:
        advice = "Change a value: the environment, or the value of an axis."
        yield make_error((*location, "better"), {}, "this is the same as `worse`", advice)
    for axis, values in context.axes.items():
        named_in = [name for name, side in sides.items() if axis in side.axes]
        if named_in and better and axis in context.sweeps:
            advice = "Move this axis to `when`: values of a sweep aren't compared with each other."
            yield make_error((*location, named_in[0], axis), {}, "this axis is a sweep", advice)
        elif named_in and axis in when:
            advice = f"Use {axis} in one place only."
            yield make_error((*location, "when"), {}, f"`{named_in[0]}` names {axis} too", advice)
        elif len(named_in) < len(sides) and named_in:
            missing_side = next(name for name in sides if name not in named_in)
            problem = f"expected a value of {axis}, as in `{named_in[0]}`"
            yield make_error((*location, missing_side), {}, problem, f"Specify {axis} on both sides, or in `when`.")
        elif not named_in and axis not in {**default, **when} and len(values) > 1:
            advice = f"Add the axis to `when`. The values are {', '.join(values)}."
            yield make_error(location, {}, f"expected a value of {axis}", advice)
    for name, side in sides.items():
        axes = {**default, **when, **side.axes}
        if any(has_values(excluded, axes) for excluded in exclude):
            problem = "this is a combination of values that the header excludes"
            yield make_error((*location, name), {}, problem, "Use other values.")


class ToolTable(TomlTable, extra="ignore"):
    """`[tool]`."""

    harness: HeaderTable


class ScriptTable(TomlTable, extra="ignore"):
    """The header of a script (PEP 723)."""

    requires_python: Versions = Field("", alias="requires-python")
    dependencies: Requirements = []
    tool: ToolTable


class PartTable(TomlTable, extra="allow"):
    """`[[NAME.select]]` of a suite: a scenario, and the selected values of its axes."""

    __pydantic_extra__: dict[str, Patterns]
    scenario: str = Field(examples=['NAME = "keras_step"'])


class SuiteTable(TomlTable):
    """`[NAME]` of suites.toml."""

    title: str = ""
    environments: Patterns = ["*"]
    rounds: Positive | None = Field(None, examples=["NAME = 3"])
    budget: str = ""
    warmup: str = ""
    measure: str = ""
    instead: dict[str, Patterns] = Field({}, examples=['"tf1.14" = ["tf1.15-ngc", "tf2.*"], quoted because of the dot'])
    select: list[PartTable] = Field(min_length=1, examples=['[[PATH]] with scenario = "keras_step"'])

"""Reads and checks the claims of a scenario's header, `[[tool.harness.claim]]`: what upstream issues say."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields

from harness.catalog.toml import Table, is_number
from harness.model import issues
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.issues import Issue
from harness.model.scenario import (
    ENVIRONMENT,
    GROWTH,
    PEAK,
    STEP,
    TRACES,
    Axes,
    Claim,
    ClaimSide,
    matches,
)

_KEYS = [field.name for field in fields(Claim)]
#: The keys of which a claim has one: what the range is of, what it is above, and an example.
_RANGES: Mapping[str, tuple[str, int, str]] = {
    "ratio": ("how many times as much `worse` takes as `better`", 1, "ratio = [2, 5]"),
    "seconds": ("what `worse` takes", 0, "seconds = [5, 20]"),
    "bytes": ("what each call of `worse` keeps", 0, "bytes = [1000, 20000]"),
}
_EXAMPLES = ", ".join(example for _, _, example in _RANGES.values())
_NO_SECONDS = (PEAK, GROWTH, TRACES)


@dataclass(frozen=True, slots=True)
class Known:
    """What claims are checked against: the header's axes, defaults, sweeps, and combinations that do not exist.

    `values` reads axis to value of a table, less one key that is none, `quantity` what an entry is about, and `devices`
    a list of devices.
    """

    axes: Mapping[str, Sequence[str]]
    default: Axes
    sweeps: Collection[str]
    exclude: Sequence[Axes]
    values: Callable[[Table, str], dict[str, str]]
    quantity: Callable[[Table], str]
    devices: Callable[[Table, str], list[Device]]


def read(entry: Table, known: Known) -> Claim:
    """A claim as far as it can be read; what is wrong with it is noted."""
    entry.check_keys(_KEYS)
    if not entry.text("reported") and isinstance(entry.values.get("reported", ""), str):
        entry.wrong("reported", "is missing.", "Write what the issue says, short and in plain words.")
    of, ranges = _range(entry, known)
    claim = Claim(
        issue=_issue(entry),
        reported=entry.text("reported"),
        worse=_side(entry, "worse", known),
        better=_side(entry, "better", known) if "better" in entry.values else None,
        of=of,
        when=known.values(entry.table("when", 'For example: when = { mode = "graph" }.'), ""),
        hardware=entry.text("hardware"),
        fixed=entry.text("fixed"),
        visible=known.devices(entry, "visible") or tuple(Device),
        **ranges,
    )
    _check_sides(entry, claim, known)
    return claim


def _issue(entry: Table) -> Issue:
    """The issue that the claim is of; none that exists where that cannot be read."""
    text = entry.text("issue")
    if not text and isinstance(entry.values.get("issue", ""), str):
        entry.wrong("issue", "is missing.", issues.HOW_TO_WRITE)
    try:
        return issues.parse(text)
    except UsageError as error:
        if text:
            entry.wrong("issue", f"is {text!r}, which is not the name of an issue.", error.advice)
        return Issue("", 0)


def _range(entry: Table, known: Known) -> tuple[str, dict[str, tuple[float, float]]]:
    """What the claim is about, and the range that is claimed, by its key; none where that cannot be read."""
    given = [key for key in _RANGES if key in entry.values]
    of = known.quantity(entry) if "of" in entry.values else GROWTH if given == ["bytes"] else STEP
    if len(given) != 1:
        problem = (
            f"`{'` and `'.join(given)}` are given, and a claim has one range." if given else "No range is claimed."
        )
        entry.findings.add((*entry.key, *given[-1:]), problem, f"Write one of {_EXAMPLES}.")
        return of, {}
    (key,) = given
    ends, (what, above, example) = entry.values[key], _RANGES[key]
    if key == "bytes" and of != GROWTH:
        entry.wrong("of", f"is {of!r}, and bytes are what each call keeps.", "Leave `of` out, or claim a ratio.")
    if key == "ratio" and of == GROWTH:
        fix = f"Write {_RANGES['bytes'][-1]}: a growth may be zero, and has no ratio then."
        entry.wrong("of", f"is {of!r}, with a ratio.", fix)
    if key == "seconds" and of in _NO_SECONDS:
        entry.wrong("of", f"is {of!r}, which takes no seconds.", "Name a phase, or claim a ratio or bytes.")
    if not isinstance(ends, list) or len(ends) != 2 or not all(map(is_number, ends)):
        entry.wrong(key, f"must be a list of two numbers: {what}, lowest and highest.", f"For example: {example}.")
        return of, {}
    low, high = ends
    if low >= high:
        entry.wrong(key, f"is from {low} to {high}.", f"Write the lowest first, then the highest: {example}.")
    elif low <= above:
        turned = " Where the other side takes longer, turn `worse` and `better` around." if key == "ratio" else ""
        entry.wrong(
            key, f"begins at {low}; it is {what}, and has to be above {above}.", f"For example: {example}.{turned}"
        )
    return of, {key: (float(low), float(high))}


def _side(entry: Table, name: str, known: Known) -> ClaimSide:
    """A side of the claim: an environment, and values of axes."""
    example = f'For example: {name} = {{ environment = "tf2.2" }}.'
    side = entry.table(name, example)
    if name not in entry.values:
        entry.wrong(name, "is missing.", example)
    elif ENVIRONMENT not in side.values and isinstance(entry.values[name], dict):
        side.wrong(ENVIRONMENT, "is missing.", "Name one of docker-bake.hcl, or requirements as -e takes them.")
    for axis in side.values:
        if axis in known.sweeps and "better" in entry.values:
            side.wrong(axis, "is a sweep.", "Name it in `when`: nothing is compared along a sweep.")
    return ClaimSide(_environment(side), known.values(side, ENVIRONMENT))


def _environment(side: Table) -> str:
    """The environment's name; of requirements the text that they are known by once they are made."""
    from harness.catalog.asked import is_asked, is_move, parse, parse_move  # noqa: PLC0415 - it imports packaging

    text = side.text(ENVIRONMENT)
    try:
        return str(parse_move(text) if is_move(text) else parse(text)) if is_asked(text) else text
    except UsageError as error:
        side.wrong(ENVIRONMENT, f"is {text!r}. {error.message}", error.advice, value=text)
        return text


def _check_sides(entry: Table, claim: Claim, known: Known) -> None:
    """Note sides that are too many, too few or equal, and axes that they leave open or name twice."""
    worse, better = claim.worse, claim.better
    if better and (claim.seconds or claim.bytes):
        entry.wrong("better", "has no meaning here: seconds and bytes are those of `worse`.", "Remove it.")
    if not better and claim.ratio:
        entry.wrong("better", "is missing.", "Write the side that was said to take less.")
    sides = {"worse": worse, **({"better": better} if better else {})}
    if len(sides) == 2 and worse == better:
        entry.wrong("better", "is the same as `worse`.", "Name what differs: the environment, or an axis.")
    for axis, values in known.axes.items():
        named = [name for name, side in sides.items() if axis in side.axes]
        if named and axis in claim.when:
            entry.wrong("when", f"names {axis}, and so does `{named[0]}`.", "Name it in one place.")
        elif len(named) < len(sides) and named:
            other = next(name for name in sides if name not in named)
            fix = f"Name {axis} in both, or in `when`."
            entry.wrong(other, f"does not name {axis}, and `{named[0]}` does.", fix)
        elif not named and axis not in {**known.default, **claim.when} and len(values) > 1:
            fix = f"Name it in `when`. The values are {', '.join(values)}."
            entry.findings.add(entry.key, f"The claim leaves {axis} open.", fix)
    for name, side in sides.items():
        axes = {**known.default, **claim.when, **side.axes}
        if any(matches(excluded, axes) for excluded in known.exclude):
            entry.wrong(name, "is a combination of values that the header excludes.", "Name others.")

"""Analysis of profiles: functions, the share of data handling, and changes between two profiles.

Samples of the stack become a tree of functions, for a flame graph or an icicle graph.

Function calls are nested, so shares of cumulative time overlap. Shares of own time add up to 100 %. All shares are
relative to the time in all functions of a profile, without the profiler's own time.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from harness.model.profile import Function, Profile

#: The largest number of iterations that propagate shares from callers to callees. It exceeds the depth of stacks.
ROUNDS = 100

#: The largest depth of a flame graph.
MAX_DEPTH = 250

#: A function counts as a wrapper of another function if calls of the latter by the former are at least this share of
#: the cumulative time of both functions.
WRAPPER_SHARE = 0.9

# functions written in C, as cProfile names them
_BUILT_IN = re.compile(r"<built-in method (.+)>")
_METHOD = re.compile(r"<method '(.+)' of '(.+)' objects>")
# TensorFlow calls its own C functions through modules that were renamed more than once
_WRAPPER = re.compile(r"builtins|PyCapsule|.*_pywrap_\w+")
# AutoGraph generates files with random names
_GENERATED = re.compile(r"__autograph_generated_file.*|tmp[a-z0-9_]{8}")


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """The time of all functions with one name in a profile: calls, own and cumulative seconds, and their shares.

    If several functions of a module have the same name, their seconds are added. The sum of cumulative seconds is at
    most the time of the profile.
    """

    name: str
    calls: int
    own: float
    cumulative: float
    own_share: float
    cumulative_share: float

    def seconds(self, *, own: bool) -> float:
        """Return the own seconds, or the cumulative seconds if `own` is False."""
        return self.own if own else self.cumulative

    def share(self, *, own: bool) -> float:
        """Return the share of the own seconds, or of the cumulative seconds if `own` is False."""
        return self.own_share if own else self.cumulative_share


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """A function's shares of the time in two profiles, and its seconds per step in each."""

    name: str
    share: float
    other_share: float
    seconds: float
    other_seconds: float

    @property
    def by(self) -> float:
        """The share in the first profile minus the share in the second profile."""
        return self.share - self.other_share


@dataclass(slots=True)
class Node:
    """A node of the call tree: a function, its cumulative seconds, and its callees."""

    name: str
    seconds: float = 0.0
    children: dict[str, "Node"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """One box of a flame graph. It starts at `left` and has the width `width`, as shares of the whole width.

    `depth` is the number of functions above it. `own` is the share of the time in which no drawn function was below it.
    `base` is the width of the same stack of functions in another profile, on the same scale.
    """

    name: str
    depth: int
    left: float
    width: float
    own: float
    base: float = 0.0


def name(function: Function) -> str:
    """Return a function's name with its module, or with its class if it is in C: `training.fit`, `list.append`.

    The name doesn't include packages, because releases rename them.
    """
    if match := _BUILT_IN.fullmatch(function.name):
        module, _, base = match[1].rpartition(".")
        return base if not module or _WRAPPER.fullmatch(module) else f"{module.rpartition('.')[2]}.{base}"
    if match := _METHOD.fullmatch(function.name):
        owner = match[2]
        return match[1] if _WRAPPER.fullmatch(owner) else f"{owner.rpartition('.')[2]}.{match[1]}"
    if function.file.startswith("<"):
        module = function.file.strip("<>").removeprefix("frozen ")
        return f"{module}.{function.name}"
    path = PurePosixPath(function.file)
    stem = path.parent.name if path.stem == "__init__" else path.stem
    return f"{'autograph' if _GENERATED.fullmatch(stem) else stem}.{function.name}"


def sum_by_name(profile: Profile) -> dict[str, FunctionTime]:
    """Return the time of the functions with the same name, by name."""
    grouped: dict[str, list[Function]] = defaultdict(list)
    for function in profile.functions:
        grouped[name(function)].append(function)
    total = profile.own
    times = {}
    for label, functions in grouped.items():
        own_seconds = sum(function.own for function in functions)
        cumulative = min(total, sum(function.cumulative for function in functions))
        times[label] = FunctionTime(
            name=label,
            calls=sum(function.calls for function in functions),
            own=own_seconds,
            cumulative=cumulative,
            own_share=_share(own_seconds, total),
            cumulative_share=_share(cumulative, total),
        )
    return times


def count_calls(profile: Profile) -> dict[str, float]:
    """Return the exact number of calls of each function per step, by name."""
    return {label: times.calls / (profile.calls * profile.steps) for label, times in sum_by_name(profile).items()}


def find_top(profile: Profile, count: int, *, own: bool) -> list[FunctionTime]:
    """Return the `count` slowest functions, by own or by cumulative seconds."""
    return sorted(sum_by_name(profile).values(), key=lambda function: -function.seconds(own=own))[:count]


def sum_matching(profile: Profile, patterns: Sequence[str]) -> float:
    """Return the share of a profile's time in functions whose names match one of the glob `patterns`, with callees.

    Time is counted once: a matching function that is called inside another matching function is part of the time of the
    outer function. A profile stores callers, but no stacks. So a function's time is divided in proportion to the time
    of each caller's calls.
    """
    is_matching = [any(fnmatchcase(name(function), pattern) for pattern in patterns) for function in profile.functions]
    covered_shares = _compute_covered_shares(profile, is_matching)
    seconds = 0.0
    for function, matches in zip(profile.functions, is_matching, strict=True):
        if matches and not function.callers:
            seconds += function.cumulative
        elif matches:
            outer_callers = (caller for caller in function.callers if not is_matching[caller.place])
            seconds += sum(caller.cumulative * (1.0 - covered_shares[caller.place]) for caller in outer_callers)
    return min(1.0, _share(seconds, profile.own))


def sum_own_seconds(profile: Profile, *, sampled: bool) -> dict[str, float]:
    """Return the seconds in a step that functions spend in themselves, by name.

    `sampled` stacks have no overhead of the profiler, and time in C belongs to the Python function that called it.
    """
    seconds: dict[str, float] = defaultdict(float)
    if sampled:
        for sample, stack in profile.stacks:
            seconds[name(profile.functions[stack[-1]])] += sample
    else:
        seconds |= {function.name: function.own for function in sum_by_name(profile).values()}
    return {label: total / (profile.calls * profile.steps) for label, total in seconds.items()}


def find_moves(one: Profile, other: Profile, count: int, *, own: bool) -> list[FunctionChange]:
    """Return the functions whose shares differ most between two profiles, by own or by cumulative time.

    For cumulative time, functions that only wrap another function are omitted, because a chain of wrappers would show
    the same change several times.
    """
    times, other_times = sum_by_name(one), sum_by_name(other)
    sides = [] if own else [(_find_wrappers(one), times), (_find_wrappers(other), other_times)]
    steps, other_steps = (profile.calls * profile.steps for profile in (one, other))
    no_time = FunctionTime("", calls=0, own=0.0, cumulative=0.0, own_share=0.0, cumulative_share=0.0)
    changes = []
    for label in {**times, **other_times}:
        if sides and all(label in wrappers or label not in names for wrappers, names in sides):
            continue
        time, other_time = times.get(label, no_time), other_times.get(label, no_time)
        seconds, other_seconds = time.seconds(own=own) / steps, other_time.seconds(own=own) / other_steps
        changes.append(FunctionChange(label, time.share(own=own), other_time.share(own=own), seconds, other_seconds))
    return sorted(changes, key=lambda change: (-abs(change.by), change.name))[:count]


def _find_wrappers(profile: Profile) -> set[str]:
    """Return the functions that spend nearly all of their time in a function that has nearly no other caller."""
    names, times = [name(function) for function in profile.functions], sum_by_name(profile)
    seconds_by_call: dict[tuple[str, str], float] = defaultdict(float)
    for function, callee in zip(profile.functions, names, strict=True):
        for caller in function.callers:
            seconds_by_call[names[caller.place], callee] += caller.cumulative
    return {
        caller
        for (caller, callee), seconds in seconds_by_call.items()
        if caller != callee
        and seconds > 0.0
        and seconds >= WRAPPER_SHARE * max(times[side].cumulative for side in (caller, callee))
    }


def tree(profile: Profile) -> Node:
    """Return the tree of the stacks. Its root represents all stacks."""
    names = [name(function) for function in profile.functions]
    root = Node("")
    for seconds, stack in profile.stacks:
        node = root
        node.seconds += seconds
        for place in stack[:MAX_DEPTH]:
            label = names[place]
            if label not in node.children:
                node.children[label] = Node(label)
            node = node.children[label]
            node.seconds += seconds
    return root


def list_frames(root: Node, min_width: float, base: Node | None = None, weight: float = 1.0) -> list[Frame]:
    """Return the tree as boxes, outermost functions first, without boxes that are narrower than the share `min_width`.

    Slower functions are farther to the left, so that the same work has the same shape in every run. Boxes are compared
    with the tree `base`, whose seconds are multiplied by `weight`.
    """
    if root.seconds <= 0:
        return []
    return list(_list_boxes(root, base or Node(""), 0, 0.0, _Scale(root.seconds, min_width, weight)))


def compute_depth(frames: Sequence[Frame]) -> int:
    """Return the largest number of functions on top of each other in a flame graph."""
    return max((frame.depth + 1 for frame in frames), default=0)


def _compute_covered_shares(profile: Profile, is_matching: Sequence[bool]) -> list[float]:
    """Return the share of each function's time that is spent in calls from functions marked in `is_matching`."""
    totals = [sum(caller.cumulative for caller in function.callers) for function in profile.functions]
    covered_shares = [0.0] * len(is_matching)
    for _ in range(ROUNDS):
        new_shares = []
        for function, total in zip(profile.functions, totals, strict=True):
            covered_time = sum(
                caller.cumulative * (1.0 if is_matching[caller.place] else covered_shares[caller.place])
                for caller in function.callers
            )
            new_shares.append(_share(covered_time, total))
        share_pairs = zip(new_shares, covered_shares, strict=True)
        if all(abs(new_share - old_share) < 1e-6 for new_share, old_share in share_pairs):
            break
        covered_shares = new_shares
    return covered_shares


def _share(part: float, total: float) -> float:
    return part / total if total > 0 else 0.0


class _Scale(NamedTuple):
    total: float
    min_share: float
    weight: float


def _list_boxes(parent: Node, base: Node, level: int, left: float, scale: _Scale) -> Iterator[Frame]:
    """Yield the boxes below a node, whose counterpart is `base`."""
    for node in sorted(parent.children.values(), key=lambda node: (-node.seconds, node.name)):
        width = node.seconds / scale.total
        if width < scale.min_share:
            return  # the following nodes are narrower too
        drawn = [child.seconds for child in node.children.values() if child.seconds / scale.total >= scale.min_share]
        counterpart = base.children.get(node.name) or Node(node.name)
        own = max(0.0, node.seconds - sum(drawn)) / scale.total
        yield Frame(node.name, level, left, width, own, counterpart.seconds * scale.weight / scale.total)
        yield from _list_boxes(node, counterpart, level + 1, left, scale)
        left += width

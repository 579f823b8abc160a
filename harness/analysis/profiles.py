"""Analysis of profiles: functions, the document's classes, the share of data handling, and changes.

Samples of the stack become a tree of functions, for a flame graph or an icicle graph.

Functions are nested, so shares of cumulative time overlap. Shares of own time add up to 100 %. All shares are relative
to the time in all functions of a profile, without the profiler's own time.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from harness.model.profile import Function, Profile

#: The rule of the source document (see `classify_functions`): functions with at most this many calls in the whole run
#: are building.
BUILD_CALLS = 2

#: The number of times that the share of data handling is passed on to callees. Stacks are less deep than this.
ROUNDS = 100

#: The largest depth of a picture of the stacks.
DEEPEST = 250

#: A function only wraps another function if it spends this share of its time in it, and nothing else calls that one.
HANDED_ON = 0.9

# functions written in C, as cProfile names them
_BUILT_IN = re.compile(r"<built-in method (.+)>")
_METHOD = re.compile(r"<method '(.+)' of '(.+)' objects>")
# TensorFlow's own C functions come through modules that were renamed more than once
_WRAPPER = re.compile(r"builtins|PyCapsule|.*_pywrap_\w+")
# AutoGraph generates files with random names
_GENERATED = re.compile(r"__autograph_generated_file.*|tmp[a-z0-9_]{8}")


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """The time of all functions with one name in a profile: calls, own and cumulative seconds, and their shares.

    Several functions of a module may have the same name: their seconds are added, up to the whole.
    """

    name: str
    calls: int
    own: float
    cumulative: float
    own_share: float
    cumulative_share: float

    def seconds(self, *, own: bool) -> float:
        """Own or cumulative seconds."""
        return self.own if own else self.cumulative

    def share(self, *, own: bool) -> float:
        """Return the share of these seconds."""
        return self.own_share if own else self.cumulative_share


class FunctionClass(StrEnum):
    """The document's classes of functions."""

    BUILD = "build"
    TRAIN = "train"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Filed:
    """The functions of one of the document's classes: their number, own seconds, and share of all.

    `building` contains the number and the own seconds of the functions that no later call reaches, which are work of
    the first call. `examples` are names of such functions, slowest first.
    """

    kind: FunctionClass
    functions: int
    own: float
    share: float
    building: int
    building_own: float
    examples: Sequence[str]


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """A function's share of one profile and of another, and its seconds per step in each."""

    name: str
    share: float
    other_share: float
    seconds: float
    other_seconds: float

    @property
    def by(self) -> float:
        """The share in the first profile minus the share in the second one."""
        return self.share - self.other_share


@dataclass(slots=True)
class Node:
    """A node of the call tree: a function, its cumulative seconds, and its callees."""

    name: str
    seconds: float = 0.0
    children: dict[str, "Node"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """One box of the picture, which starts at `left` and has the width `width`.

    Both are shares of the whole. `depth` is the number of functions above it.

    `own` is the share in which no drawn function was below it.
    """

    name: str
    depth: int
    left: float
    width: float
    own: float


def name(function: Function) -> str:
    """Return the module and the function without the packages, which releases rename: `training.fit`.

    For C functions, return `list.append`.
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
    """Return the time of each name."""
    grouped: dict[str, list[Function]] = defaultdict(list)
    for function in profile.functions:
        grouped[name(function)].append(function)
    whole = profile.own
    times = {}
    for label, functions in grouped.items():
        own = sum(function.own for function in functions)
        cumulative = min(whole, sum(function.cumulative for function in functions))
        times[label] = FunctionTime(
            name=label,
            calls=sum(function.calls for function in functions),
            own=own,
            cumulative=cumulative,
            own_share=_share(own, whole),
            cumulative_share=_share(cumulative, whole),
        )
    return times


def find_top(profile: Profile, count: int, *, own: bool) -> list[FunctionTime]:
    """Return the functions that took most time, by own or by cumulative seconds."""
    return sorted(sum_by_name(profile).values(), key=lambda function: -function.seconds(own=own))[:count]


def classify_functions(first: Profile, steady: Profile, examples: int = 3) -> list[Filed]:
    """Return the classes of the source document, as in one profile of the first and the later calls together.

    The rule is from https://stackoverflow.com/a/58653636: functions that are called once or twice are building, and
    functions with at least as many calls as iterations are training. Other functions have no class. Here the two parts
    were profiled separately, so it is known which functions only the first call reaches. The result shows which
    functions the rule classifies wrongly.
    """
    calls: dict[tuple[str, int, str], int] = defaultdict(int)
    own: dict[tuple[str, int, str], float] = defaultdict(float)
    for function in (*first.functions, *steady.functions):
        calls[function[:3]] += function.calls
        own[function[:3]] += function.own
    names = {function[:3]: name(function) for function in first.functions}
    later = {function[:3] for function in steady.functions}
    whole = sum(own.values())
    classes = []
    for kind in FunctionClass:
        members = [key for key, count in calls.items() if _class(count, steady.calls) is kind]
        building = sorted((key for key in members if key not in later), key=lambda key: -own[key])
        seconds = sum(own[key] for key in members)
        classes.append(
            Filed(
                kind=kind,
                functions=len(members),
                own=seconds,
                share=_share(seconds, whole),
                building=len(building),
                building_own=sum(own[key] for key in building),
                examples=list(dict.fromkeys(names[key] for key in building))[:examples],
            )
        )
    return classes


def sum_matching(profile: Profile, patterns: Sequence[str]) -> float:
    """Return the share of a profile's time in functions whose names match a glob of `patterns`, including callees.

    Time is counted once: if such a function is called inside another one, it is part of the time of the other one. A
    profile stores callers, but no stacks, so a function's time is divided in proportion to the time of each caller's
    calls.
    """
    inside = [any(fnmatchcase(name(function), pattern) for pattern in patterns) for function in profile.functions]
    covered = _share_inside(profile, inside)
    seconds = 0.0
    for function, is_inside in zip(profile.functions, inside, strict=True):
        if is_inside and not function.callers:
            seconds += function.cumulative
        elif is_inside:
            outside = (caller for caller in function.callers if not inside[caller.place])
            seconds += sum(caller.cumulative * (1.0 - covered[caller.place]) for caller in outside)
    return min(1.0, _share(seconds, profile.own))


def find_moves(one: Profile, other: Profile, count: int, *, own: bool) -> list[FunctionChange]:
    """Return the functions whose shares differ most between two profiles, by own or by cumulative time.

    By cumulative time, functions that only wrap another function are omitted, because a chain of them is one change,
    not ten.
    """
    mine, theirs = sum_by_name(one), sum_by_name(other)
    sides = [] if own else [(_find_wrappers(one), mine), (_find_wrappers(other), theirs)]
    steps, other_steps = (profile.calls * profile.steps for profile in (one, other))
    nothing = FunctionTime("", calls=0, own=0.0, cumulative=0.0, own_share=0.0, cumulative_share=0.0)
    changes = []
    for label in {**mine, **theirs}:
        if sides and all(label in wrappers or label not in names for wrappers, names in sides):
            continue
        a, b = mine.get(label, nothing), theirs.get(label, nothing)
        seconds, other_seconds = a.seconds(own=own) / steps, b.seconds(own=own) / other_steps
        changes.append(FunctionChange(label, a.share(own=own), b.share(own=own), seconds, other_seconds))
    return sorted(changes, key=lambda move: (-abs(move.by), move.name))[:count]


def _find_wrappers(profile: Profile) -> set[str]:
    """Return the functions that spend nearly all of their time in one other function that nothing else calls."""
    names, times = [name(function) for function in profile.functions], sum_by_name(profile)
    handed: dict[tuple[str, str], float] = defaultdict(float)
    for function, callee in zip(profile.functions, names, strict=True):
        for caller in function.callers:
            handed[names[caller.place], callee] += caller.cumulative
    return {
        caller
        for (caller, callee), seconds in handed.items()
        if caller != callee
        and seconds > 0.0
        and seconds >= HANDED_ON * max(times[side].cumulative for side in (caller, callee))
    }


def tree(profile: Profile) -> Node:
    """Return the tree of the stacks. Its root represents all stacks."""
    names = [name(function) for function in profile.functions]
    root = Node("")
    for seconds, stack in profile.stacks:
        node = root
        node.seconds += seconds
        for place in stack[:DEEPEST]:
            label = names[place]
            if label not in node.children:
                node.children[label] = Node(label)
            node = node.children[label]
            node.seconds += seconds
    return root


def list_frames(root: Node, least: float) -> list[Frame]:
    """Return the tree as boxes, without boxes that are narrower than the share `least`.

    The outermost function comes first.

    The slowest function is on the left, so that the same work has the same shape in every run.
    """
    if root.seconds <= 0:
        return []
    return list(_lay(_find_widest(root.children), 0, 0.0, root.seconds, least))


def compute_depth(laid: Sequence[Frame]) -> int:
    """Return the depth of the picture in functions."""
    return max((frame.depth + 1 for frame in laid), default=0)


def _share_inside(profile: Profile, inside: Sequence[bool]) -> list[float]:
    """Return the share of each function's time that is spent below a function of `inside`."""
    totals = [sum(caller.cumulative for caller in function.callers) for function in profile.functions]
    covered = [0.0] * len(inside)
    for _ in range(ROUNDS):
        new = []
        for function, total in zip(profile.functions, totals, strict=True):
            above = sum(
                caller.cumulative * (1.0 if inside[caller.place] else covered[caller.place])
                for caller in function.callers
            )
            new.append(above / total if total else 0.0)
        if max((abs(a - b) for a, b in zip(new, covered, strict=True)), default=0.0) < 1e-6:
            break
        covered = new
    return covered


def _class(calls: int, iterations: int) -> FunctionClass:
    if calls <= BUILD_CALLS:
        return FunctionClass.BUILD
    return FunctionClass.TRAIN if calls >= iterations else FunctionClass.NEITHER


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _lay(nodes: Sequence[Node], level: int, left: float, whole: float, least: float) -> Iterator[Frame]:
    for node in nodes:
        width = node.seconds / whole
        if width < least:
            return  # the following nodes are narrower too
        children = _find_widest(node.children)
        drawn = sum(child.seconds for child in children if child.seconds / whole >= least)
        yield Frame(node.name, level, left, width, max(0.0, node.seconds - drawn) / whole)
        yield from _lay(children, level + 1, left, whole, least)
        left += width


def _find_widest(children: Mapping[str, Node]) -> list[Node]:
    return sorted(children.values(), key=lambda node: (-node.seconds, node.name))

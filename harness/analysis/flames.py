"""Samples of the stack as a tree of functions: what an icicle or flame graph draws."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.analysis.profiles import name
from harness.model.profile import Profile

#: No picture is deeper than this.
DEEPEST = 250


@dataclass(slots=True)
class Node:
    """A function where it was called from: its seconds with all that it called, and what it called."""

    name: str
    seconds: float = 0.0
    children: dict[str, "Node"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """One box of the picture: from `left`, `width` wide, both as shares of the whole, `depth` functions deep.

    `own` is the share in which no function that is drawn was below it.
    """

    name: str
    depth: int
    left: float
    width: float
    own: float


def tree(profile: Profile) -> Node:
    """The stacks put together; the root stands for all of them."""
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


def frames(root: Node, least: float) -> list[Frame]:
    """The tree laid out from the outermost function down, without what is narrower than the share `least`.

    What takes longest stands left, so that the same work has the same shape in every run.
    """
    if root.seconds <= 0:
        return []
    return list(_lay(_widest(root.children), 0, 0.0, root.seconds, least))


def depth(laid: Sequence[Frame]) -> int:
    """How many functions deep the picture is."""
    return max((frame.depth + 1 for frame in laid), default=0)


def _lay(nodes: Sequence[Node], level: int, left: float, whole: float, least: float) -> Iterator[Frame]:
    for node in nodes:
        width = node.seconds / whole
        if width < least:
            return  # and those that follow are narrower
        children = _widest(node.children)
        drawn = sum(child.seconds for child in children if child.seconds / whole >= least)
        yield Frame(node.name, level, left, width, max(0.0, node.seconds - drawn) / whole)
        yield from _lay(children, level + 1, left, whole, least)
        left += width


def _widest(children: Mapping[str, Node]) -> list[Node]:
    return sorted(children.values(), key=lambda node: (-node.seconds, node.name))

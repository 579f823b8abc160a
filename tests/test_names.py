"""A class name says which class it is: no two classes of the harness share one, but for those that are left."""

import ast
from collections import Counter
from pathlib import Path

SOURCES = (Path(__file__).parents[1] / "harness").rglob("*.py")

#: Shared still. A name that is unique now is taken off here, and none is added.
SHARED = {
    "Change",
    "Panel",
    "Difference",
    "Ended",
    "Engine",
    "Entry",
    "Finding",
    "Held",
    "Issue",
    "Measured",
    "Move",
    "Outcome",
    "Place",
    "Point",
    "Process",
    "Script",
    "Slot",
    "Software",
    "Stage",
    "Step",
    "Table",
    "Unit",
    "_Line",
    "_Part",
}


def test_class_names_are_unique() -> None:
    nodes = (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())))
    count = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert {name for name, times in count.items() if times > 1} <= SHARED

"""A class name says which class it is: no two classes of harness share one."""

import ast
from collections import Counter
from pathlib import Path

SOURCES = (Path(__file__).parents[1] / "harness").rglob("*.py")


def test_class_names_are_unique() -> None:
    nodes = (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())))
    count = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, times in count.items() if times > 1] == []

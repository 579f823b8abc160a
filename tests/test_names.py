"""A class name says which class it is: no two classes of harness share one, and no two of the tests."""

import ast
from collections import Counter

import pytest

from tests import style


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["harness", "tests"])
def test_class_names_are_unique(folder):
    counts = Counter(
        node.name
        for path in style.modules(folder)
        for node in style.definitions(style.tree(path))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in counts.items() if count > 1] == []

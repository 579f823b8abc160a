"""docs/dev/code-path.md names functions and classes that exist."""

import ast
import re

from harness.package_data import FOLDER
from tests import style

PAGE = FOLDER / "docs" / "dev" / "code-path.md"


def test_the_page_of_the_code_path_names_what_exists():
    text = PAGE.read_text("utf-8")
    assert len(text.splitlines()) <= 60
    steps = re.findall(r"`(\w+)`\s+in\s+\[([\w/.]+)\]", text)
    assert len(steps) > 10
    for name, path in steps:
        functions = {getattr(node, "name", "") for node in style.definitions(style.tree(FOLDER / path))}
        assert name in functions, f"{path} has no function {name}"
    names = {
        node.name
        for path in style.modules("harness")
        for node in style.definitions(style.tree(path))
        if isinstance(node, ast.ClassDef)
    }
    _, table = text.split("## Requests")
    assert set(re.findall(r"`([A-Z][A-Za-z]+)`", table)) <= names

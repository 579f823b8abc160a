from pathlib import Path

import pytest

from harness.catalog.header import parse
from harness.catalog.signature import find_oldest_python
from harness.model.errors import FileError

HEADER = """\
# /// script
# requires-python = ">=3.6"
# [tool.harness.axes]
# mode = ["graph", "eager"]
# size = { sweep = [1, 32] }
# [tool.harness.env]
# TF_XLA_FLAGS = ["", "1"]
# ///
"""
FIRST = HEADER.count("\n") + 1


def told(python: str, header: str = HEADER) -> list[str]:
    """What is said of a file's Python, lines counted from the header's end."""
    try:
        parse(header + python, Path("step.py"))
    except FileError as error:
        return [f"{problem.line - FIRST}: {problem.text} {problem.fix}" for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "python",
    [
        "def scenario(bench, mode, size): pass",
        'def scenario(bench, size="32", mode="graph", colour="red"): pass',
        "def scenario(bench, **axes): pass",
        "def scenario(*given, mode, size): pass",
        "@traced\ndef scenario(*anything): pass",
        "from functools import partial\nscenario = partial(print)",
        "from elsewhere import scenario",
        "if True:\n    def scenario(bench): pass",
        'import re\nre.compile("\\d")\ndef scenario(bench, mode, size): pass',
    ],
)
def test_a_function_that_takes_the_axes_or_cannot_be_judged_is_right(python: str) -> None:
    assert told(python) == []


@pytest.mark.parametrize(
    ("python", "problem"),
    [
        ("import os\n\ndef scenario(bench, mode):\n    pass", "2: scenario() needs a parameter for the axis `size`."),
        ("def scenario(bench, size, mod):\n    pass", "0: The parameter `mod` of scenario() is not an axis"),
        ("def scenario(bench, size, mod):\n    pass", "Did you mean `mode`? The axes are mode, size."),
        ("def scenario(bench, size, mode, TF_XLA_FLAGS):\n    pass", "The parameter `TF_XLA_FLAGS` of"),
        ("def scenario(\n    bench,\n    size,\n    mode='grahp',\n): pass", "3: The default 'grahp' of `mode` is"),
        ("def scenario(bench, size=32, *, mode='graph'): pass", "0: The default 32 of `size` is not a value of the"),
        ("def scenario(): pass", "0: scenario() has no parameter `bench`."),
        ("import os\n\n\ndef scenarios(bench): pass", "3: The file doesn't define scenario(). harness"),
        ("", "The file doesn't define scenario()."),
        ("def scenario(bench, mode, size):\n    x = = 1", "1: This is not valid Python 3.6: invalid syntax. The file"),
        ("def scenario(bench, mode, size):\n    if (x := 1): pass", "1: This is not valid Python 3.6: Assignment"),
        ("def scenario(bench, mode, size):\n    'nul: \0'", "This is not valid Python 3.6"),
    ],
)  # fmt: skip
def test_a_function_that_does_not_fit_its_header_is_told_with_its_line(python: str, problem: str) -> None:
    assert any(problem in entry for entry in told(python)), told(python)


def test_what_a_newer_python_has_is_right_where_only_that_is_claimed() -> None:
    python = "def scenario(bench, mode, size):\n    if (x := 1): pass"
    assert told(python, HEADER.replace("3.6", "3.9")) == []


def test_an_axis_that_the_header_has_wrong_is_not_told_again_of_the_function() -> None:
    header = HEADER.replace('["graph", "eager"]', "[]")
    assert len(told("def scenario(bench, mode='graph', size='1'): pass", header)) == 1


@pytest.mark.parametrize(
    ("requires", "oldest"),
    [
        ("", (3, 6)),
        (">=3.6", (3, 6)),
        (">=3.6.1", (3, 6)),
        (">=3.9,<3.12", (3, 9)),
        ("==3.11.*", (3, 11)),
        (">=4", (3, 6)),
    ],
)
def test_the_oldest_python_is_the_least_that_is_admitted(requires: str, oldest: tuple[int, int]) -> None:
    assert find_oldest_python(requires) == oldest

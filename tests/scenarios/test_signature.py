from pathlib import Path

from harness.model.errors import FileError
from harness.scenarios.header import parse
from harness.scenarios.signature import find_oldest_python

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


def problems(python: str, header: str = HEADER) -> list[str]:
    """What is said of a file's Python, lines counted from the header's end."""
    try:
        parse(header + python, Path("step.py"))
    except FileError as error:
        return [f"{problem.line - FIRST}: {problem.text} {problem.fix}".strip() for problem in error.problems]
    return []


def test_a_function_that_takes_the_axes_or_cannot_be_judged_is_right():
    codes = [
        "def scenario(bench, mode, size): pass",
        'def scenario(bench, size="32", mode="graph", colour="red"): pass',
        "def scenario(bench, **axes): pass",
        "def scenario(*given, mode, size): pass",
        "@traced\ndef scenario(*anything): pass",
        "from functools import partial\nscenario = partial(print)",
        "from elsewhere import scenario",
        "if True:\n    def scenario(bench): pass",
        'import re\nre.compile("\\d")\ndef scenario(bench, mode, size): pass',
    ]
    assert {code: problems(code) for code in codes} == {code: [] for code in codes}


def test_a_function_that_does_not_fit_its_header_is_told_with_its_line(snapshot):
    codes = [
        "import os\n\ndef scenario(bench, mode):\n    pass",
        "def scenario(bench, size, mod):\n    pass",
        "def scenario(bench, size, mode, TF_XLA_FLAGS):\n    pass",
        "def scenario(\n    bench,\n    size,\n    mode='grahp',\n): pass",
        "def scenario(bench, size=32, *, mode='graph'): pass",
        "def scenario(): pass",
        "import os\n\n\ndef scenarios(bench): pass",
        "",
        "def scenario(bench, mode, size):\n    x = = 1",
    ]
    assert {code.replace("\n", " / "): problems(code) for code in codes} == snapshot
    assert "Python 3.6" in problems("def scenario(bench, mode, size):\n    'nul: \0'")[0]
    walrus = "def scenario(bench, mode, size):\n    if (x := 1): pass"
    (problem,) = problems(walrus)
    assert problem.startswith("1: ")
    assert "Python 3.6" in problem
    # what a newer Python has is right where only that is claimed
    assert problems(walrus, HEADER.replace("3.6", "3.9")) == []
    assert "recursion" in problems("x = " + "+".join(["1"] * 5000))[0]
    # an axis that the header has wrong is not told again
    header = HEADER.replace('["graph", "eager"]', "[]")
    assert len(problems("def scenario(bench, mode='graph', size='1'): pass", header)) == 1


def test_the_oldest_python_is_the_least_that_is_admitted():
    ranges = {"": (3, 6), ">=3.6": (3, 6), ">=3.6.1": (3, 6), ">=3.9,<3.12": (3, 9), "==3.11.*": (3, 11), ">=4": (3, 6)}
    assert {text: find_oldest_python(text) for text in ranges} == ranges

import datetime
import math
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.toml import (
    Findings,
    Key,
    _walk_keys,
    format_number_text,
    is_json,
    is_number,
    read,
    read_file,
    read_header,
)
from harness.model.errors import FileError

TOML = '''\
# a comment
requires-python = ">=3.6"

[tool.harness]
title = "A step"
text = """
[not.a.table]
title = "nor a key"
"""

[tool.harness.axes]
mode = [
  "graph",
  "eager",        # the default of TensorFlow 2
]
"size" = { sweep = [1, 32], unit = "values" }

[[tool.harness.exclude]]
mode = "eager"
[[tool.harness.exclude]]
mode = "graph"

[[tool.harness.compare]]
along = "environment"
pick = [
  { requires = ["tensorflow<2"], mode = "graph" },
  { requires = ["tensorflow>=2"], mode = "eager" },
]
[[tool.harness.compare.more]]
deep.er = 1
'''
HARNESS = ("tool", "harness")


def found(*key: str | int, value: str = "", first: int = 1) -> str:
    """The line that a key, or a value, is found at."""
    return TOML.split("\n")[Findings(Path("toml"), TOML, first).line(key, value) - first]


def test_a_key_is_found_where_it_stands() -> None:
    assert found("requires-python") == 'requires-python = ">=3.6"'
    assert found(*HARNESS) == "[tool.harness]"
    assert found(*HARNESS, "title") == 'title = "A step"'
    assert found(*HARNESS, "axes", "size").startswith('"size"')
    assert found(*HARNESS, "compare", 0, "more", 0, "deep", "er") == "deep.er = 1"


def test_a_key_within_a_value_is_found_in_its_line() -> None:
    assert found(*HARNESS, "axes", "size", "unit").startswith('"size"')
    assert found(*HARNESS, "compare", 0, "pick", 0, "requires") == '  { requires = ["tensorflow<2"], mode = "graph" },'


def test_the_entries_of_a_list_of_tables_are_told_apart() -> None:
    findings = Findings(Path("toml"), TOML)
    assert findings.line((*HARNESS, "exclude", 1, "mode")) == findings.line((*HARNESS, "exclude", 0, "mode")) + 2


def test_a_value_is_found_in_its_own_line() -> None:
    assert found(*HARNESS, "axes", "mode", value="eager").strip().startswith('"eager"')
    assert found(*HARNESS, "compare", 0, "pick", 1, "mode", value="eager").endswith('mode = "eager" },')


def test_a_key_that_is_not_there_is_looked_for_in_its_table() -> None:
    assert found(*HARNESS, "exclude", 1, "model") == "[[tool.harness.exclude]]"
    assert found("nothing") == "# a comment"


def test_lines_are_counted_in_the_file() -> None:
    assert Findings(Path("toml"), TOML, 10).line(("requires-python",)) == 11


@given(st.lists(st.sampled_from(["mode", "size", "model"]), unique=True, min_size=1), st.integers(0, 3))
def test_every_key_of_every_table_is_found(keys: list[str], comments: int) -> None:
    lines = []
    for table in ("one", "two"):
        lines += [f"[{table}]", *["#"] * comments, *(f'{key} = "{table}"' for key in keys)]
    for table in ("one", "two"):
        for key in keys:
            line = lines[Findings(Path("toml"), "\n".join(lines)).line((table, key)) - 1]
            assert re.fullmatch(f'{key} = "{table}"', line)


STATEMENTS = st.lists(
    st.sampled_from(
        [
            *("", '# [one]  "', "[t]", "[t.u]", "  [[v]] # ]", "[[t.w]]", "[v.x]", "[[v.y]]", '["a.b".c]', "[ z . y ]"),
            *("a = 1", "b.c = 'b]['", '"q.r" = "\\"[#"', "'s [t' = true", "d.e.f = [1,\n # ] c\n 2]"),
            *('a = """x\n[y]\n\\""" z"""""', "a = '''\n[t]\n''''", "g = [{ a = 1 },\n { b = ']' }] # ["),
        ]
    ),
    max_size=8,
)


@given(STATEMENTS)
def test_a_key_is_there_with_the_last_line_of_its_statement(statements: list[str]) -> None:
    toml = "\n".join(statements)
    try:
        tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return
    lines = toml.split("\n")
    found: dict[Key, tuple[int, int]] = {}
    begin = 0
    for end in range(1, len(lines) + 1):
        try:
            document = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:  # the statement goes on
            continue
        found = {**dict.fromkeys(_walk_keys(document), (begin, end)), **found}
        begin = end
    assert Findings(Path("toml"), toml)._statements == found


@pytest.mark.parametrize("toml", ["k{0} = 1", "[k{0}]", "[[k]]", "#", "k{0} = [\n1,\n2,\n]"])
def test_no_line_is_parsed_often(monkeypatch: pytest.MonkeyPatch, toml: str) -> None:
    text = "\n".join(toml.format(number) for number in range(2000))
    parsed, loads = [], tomllib.loads

    def counting(text: str) -> dict[str, Any]:
        parsed.append(len(text))
        return loads(text)

    monkeypatch.setattr(tomllib, "loads", counting)
    Findings(Path("toml"), text).line(("k",))
    assert sum(parsed) <= len(text)


def test_so_many_problems_are_told_and_no_more_is_read() -> None:
    findings = Findings(Path("x.py"), "")

    def add_all() -> None:
        for number in range(20_000):
            findings.add(("k",), f"Problem {number}.")

    with pytest.raises(FileError) as raised:
        add_all()
    assert len(raised.value.problems) == 100


SCRIPT = """\
#!/usr/bin/env python
# /// script
# requires-python = ">=3.6"
#
# [tool.harness]
# title = "A step"
# ///
import this
"""


def problem(text: str) -> str:
    with pytest.raises(FileError) as caught:
        read_header(text, Path("step.py"))
    (found,) = caught.value.problems
    return str(found)


def test_the_block_is_toml_whose_lines_are_those_of_the_file() -> None:
    found = read_header(SCRIPT, Path("step.py"))
    assert found.values == {"requires-python": ">=3.6", "tool": {"harness": {"title": "A step"}}}
    assert found.findings.line(("tool", "harness", "title")) == 6


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (SCRIPT, "import this\n", "step.py:1: This file has no `# /// script` header (PEP 723). Start the file with"),
        (SCRIPT, "", "step.py:1: This file has no"),
        ("# /// script", "# /// other", "step.py:1: This file has no"),
        ("# [tool", "#[tool", "step.py:5: This line interrupts the header that starts in line 2. Start every"),
        ("#\n", "\n", "step.py:4: This line interrupts the header that starts in line 2."),
        ("# ///\nimport", "import", "step.py:7: This line interrupts the header that starts in line 2."),
        ("import this\n", SCRIPT, "step.py:9: This is a second `# /// script` header. A file can have"),
        ('"A step"', "A step", "step.py:6: This is not valid TOML: Invalid value. The line is `title = A step`"),
        ('"A step"', '"A step', "step.py:6: This is not valid TOML:"),
        ('"A step"', '["A step"', "step.py:6: This is not valid TOML:"),
        ("title", "requires = 1\n# requires", "step.py:7: This is not valid TOML: Cannot overwrite a value"),
    ],
)
def test_what_is_no_header_is_told_with_its_line(old: str, new: str, told: str) -> None:
    assert old in SCRIPT
    assert problem(SCRIPT.replace(old, new, 1)).startswith(told)


def test_a_header_of_nothing_is_told() -> None:
    assert problem("# /// script\n# ///\n").startswith("step.py:1: The header is empty or isn't closed.")


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (1024.0, "1024"), (0.5, "0.5"), (1e-05, "1e-05"), (-3.0, "-3"), (2**60 + 1, "1152921504606846977")],
)
def test_a_number_has_no_zeros_that_say_nothing(number: float, text: str) -> None:
    assert format_number_text(number) == text


@given(st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_is_the_number_again(number: float) -> None:
    assert float(format_number_text(number)) == number


def test_what_is_no_finite_number() -> None:
    assert not any(map(is_number, [True, "1", None, math.inf, math.nan, [1], 10**400]))


def test_dates_and_infinities_are_no_json() -> None:
    assert is_json({"day": ["2026-11-21", 1, 0.5, True]})
    assert not any(map(is_json, [{"day": [datetime.date(2026, 11, 21)]}, math.inf, math.nan]))


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("x = " + "[" * 3000 + "]" * 3000, "nested deeper than 16 levels"),
        ("x = " + "[" * 20 + "]" * 20, "nested deeper than 16 levels"),
        ("x = " + "{a = " * 3000 + "1" + "}" * 3000, "nested deeper than 16 levels"),
        (".".join("a" * 2000) + " = 1", "nested deeper than 16 levels"),
        ("[" + ".".join("a" * 2000) + "]", "nested deeper than 16 levels"),
        ("-" * 100_000 + " = 1", "A key has more than 100 characters"),
        ("x = " + "-" * 100_000, "not valid TOML"),
        ("x = '" + "y" * 300_000 + "'", "more than 262,144 characters"),
        ("x = 1\ny = 1" + "0" * 5000, "^x.py:2: Invalid integer: expected at most 64 bits"),
        ("x = 1\ny = [0x1" + "0" * 5000 + "]", "^x.py:2: Invalid `y`: expected an integer of at most 64 bits"),
    ],
)
def test_what_is_too_deep_or_too_long_is_told_at_once(toml: str, told: str) -> None:
    with pytest.raises(FileError, match=told) as raised:
        read(toml, Path("x.py"))
    assert len(str(raised.value)) < 5000


def test_a_pipe_and_a_name_that_is_no_utf_8_are_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(FileError, match=r"pipe\.py cannot be read: it is not a regular file"):
        read_file(tmp_path / "pipe.py")
    odd = tmp_path / os.fsdecode(b"\xff.py")
    odd.write_text("")
    with pytest.raises(FileError, match="The path of this file is not UTF-8"):
        read_file(odd)

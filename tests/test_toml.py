import datetime
import math
import os
import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import FileError
from harness.toml import Findings, _walk_values, format_number_text, is_json, is_number, read, read_file, read_header
from tests.errors import catch, catch_text

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


def find_line(*key: str | int, value: str = "") -> str:
    """The line that a key, or a value, is found at."""
    return TOML.split("\n")[Findings(Path("toml"), TOML).line(key, value) - 1]


def test_a_key_or_a_value_is_found_in_its_line_and_what_is_not_there_in_its_table():
    assert find_line("requires-python") == 'requires-python = ">=3.6"'
    assert find_line(*HARNESS) == "[tool.harness]"
    assert find_line(*HARNESS, "title") == 'title = "A step"'
    assert find_line(*HARNESS, "axes", "size").startswith('"size"')
    assert find_line(*HARNESS, "axes", "size", "unit").startswith('"size"')
    pick = (*HARNESS, "compare", 0, "pick")
    assert find_line(*pick, 0, "requires") == '  { requires = ["tensorflow<2"], mode = "graph" },'
    assert find_line(*HARNESS, "compare", 0, "more", 0, "deep", "er") == "deep.er = 1"
    # a value
    assert find_line(*HARNESS, "axes", "mode", value="eager").strip().startswith('"eager"')
    assert find_line(*pick, 1, "mode", value="eager").endswith('mode = "eager" },')
    # what is not there
    assert find_line(*HARNESS, "exclude", 1, "model") == "[[tool.harness.exclude]]"
    assert find_line("nothing") == "# a comment"
    # entries of a list of tables, and lines of a file that begins earlier
    findings = Findings(Path("toml"), TOML)
    assert findings.line((*HARNESS, "exclude", 1, "mode")) == findings.line((*HARNESS, "exclude", 0, "mode")) + 2
    assert Findings(Path("toml"), TOML, 10).line(("requires-python",)) == 11


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
def test_a_key_is_there_with_the_last_line_of_its_statement(statements):
    toml = "\n".join(statements)
    try:
        tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return
    lines = toml.split("\n")
    statements_by_key: dict[tuple[str | int, ...], tuple[int, int]] = {}
    begin = 0
    for end in range(1, len(lines) + 1):
        try:
            document = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:  # the statement goes on
            continue
        statements_by_key = {**{key: (begin, end) for key, _ in _walk_values(document)}, **statements_by_key}
        begin = end
    assert Findings(Path("toml"), toml)._statements == statements_by_key


def test_no_line_is_parsed_often(monkeypatch):
    parsed, loads = [], tomllib.loads

    def counting(text):
        parsed.append(len(text))
        return loads(text)

    monkeypatch.setattr(tomllib, "loads", counting)
    for toml in ("k{0} = 1", "[k{0}]", "[[k]]", "#", "k{0} = [\n1,\n2,\n]"):
        parsed.clear()
        text = "\n".join(toml.format(number) for number in range(1000))
        Findings(Path("toml"), text).line(("k",))
        assert sum(parsed) <= len(text), toml


def test_no_more_than_so_many_problems_are_told():
    findings = Findings(Path("x.py"), "")
    for number in range(99):
        findings.add(("k",), f"Problem {number}.")
    assert len(catch(FileError, findings.add, ("k",), "The last one.").problems) == 100


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


CHANGES = [
    (SCRIPT, "import this\n"),
    (SCRIPT, ""),
    ("# /// script", "# /// other"),
    ("# [tool", "#[tool"),
    ("#\n", "\n"),
    ("# ///\nimport", "import"),
    ("import this\n", SCRIPT),
    (SCRIPT, "# /// script\n# ///\n"),
]


def test_a_header_has_the_lines_of_its_file_and_what_is_none_is_told_with_its_line(snapshot):
    header = read_header(SCRIPT, Path("step.py"))
    assert header.values == {"requires-python": ">=3.6", "tool": {"harness": {"title": "A step"}}}
    assert header.findings.line(("tool", "harness", "title")) == 6

    def problem(old, new):
        assert old in SCRIPT
        error = catch(FileError, read_header, SCRIPT.replace(old, new, 1), Path("step.py"))
        assert len(error.problems) == 1
        return str(error)

    assert [problem(old, new) for old, new in CHANGES] == snapshot
    # what TOML's own parser says differs between releases of Python
    for old, new, line in (
        ('"A step"', "A step", 6),
        ('"A step"', '"A step', 6),
        ('"A step"', '["A step"', 6),
        ("title", "requires = 1\n# requires", 7),
    ):
        assert problem(old, new).startswith(f"step.py:{line}: This is not valid TOML: ")


def test_dates_and_infinities_are_no_numbers_and_no_json_and_numbers_have_no_zeros_that_say_nothing():
    assert not any(map(is_number, [True, "1", None, math.inf, math.nan, [1], 10**400]))
    assert is_json({"day": ["2026-11-21", 1, 0.5, True]})
    assert not any(map(is_json, [{"day": [datetime.date(2026, 11, 21)]}, math.inf, math.nan]))
    texts = {1: "1", 1024.0: "1024", 0.5: "0.5", 1e-05: "1e-05", -3.0: "-3", 2**60 + 1: "1152921504606846977"}
    assert {number: format_number_text(number) for number in texts} == texts


def test_what_is_too_deep_or_too_long_is_told_at_once(snapshot):
    deep = ["x = " + "[" * 3000 + "]" * 3000, "x = " + "[" * 20 + "]" * 20, "x = " + "{a = " * 3000 + "1" + "}" * 3000]
    dotted = ".".join("a" * 2000)
    texts = [
        *(*deep, f"{dotted} = 1", f"[{dotted}]"),
        *("-" * 100_000 + " = 1", "x = '" + "y" * 300_000 + "'"),
        *("x = 1\ny = 1" + "0" * 5000, "x = 1\ny = [0x1" + "0" * 5000 + "]"),
    ]
    assert {text[:30]: catch_text(FileError, read, text, Path("x.py")) for text in texts} == snapshot
    assert len(catch_text(FileError, read, "x = " + "-" * 100_000, Path("x.py"))) < 5000


def test_a_pipe_and_a_name_that_is_no_utf_8_are_told(tmp_path, snapshot):
    os.mkfifo(tmp_path / "pipe.py")
    odd = tmp_path / os.fsdecode(b"\xff.py")
    odd.write_text("")
    texts = [catch_text(FileError, read_file, path) for path in (tmp_path / "pipe.py", odd)]
    assert [text.replace(str(tmp_path), "").encode(errors="replace").decode() for text in texts] == snapshot

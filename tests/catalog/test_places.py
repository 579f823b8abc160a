import re

from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.places import Places

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
    return TOML.split("\n")[Places(TOML, first).line(key, value) - first]


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
    places = Places(TOML)
    assert places.line((*HARNESS, "exclude", 1, "mode")) == places.line((*HARNESS, "exclude", 0, "mode")) + 2


def test_a_value_is_found_in_its_own_line() -> None:
    assert found(*HARNESS, "axes", "mode", value="eager").strip().startswith('"eager"')
    assert found(*HARNESS, "compare", 0, "pick", 1, "mode", value="eager").endswith('mode = "eager" },')


def test_a_key_that_is_not_there_is_looked_for_in_its_table() -> None:
    assert found(*HARNESS, "exclude", 1, "model") == "[[tool.harness.exclude]]"
    assert found("nothing") == "# a comment"


def test_lines_are_counted_in_the_file() -> None:
    assert Places(TOML, 10).line(("requires-python",)) == 11


@given(st.lists(st.sampled_from(["mode", "size", "model"]), unique=True, min_size=1), st.integers(0, 3))
def test_every_key_of_every_table_is_found(keys: list[str], comments: int) -> None:
    lines = []
    for table in ("one", "two"):
        lines += [f"[{table}]", *["#"] * comments, *(f'{key} = "{table}"' for key in keys)]
    for table in ("one", "two"):
        for key in keys:
            line = lines[Places("\n".join(lines)).line((table, key)) - 1]
            assert re.fullmatch(f'{key} = "{table}"', line)

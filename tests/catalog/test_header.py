# ruff: noqa: E501 - a case per line
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.header import parse
from harness.model.errors import FileError
from harness.model.scenario import Comparison, Expectation, Scenario, Sweep

HEADER = """\
# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title = "A step"
# source = "https://example.org"
# tags = ["seed"]
#
# [tool.harness.axes]
# model = ["small", "large"]
# mode = ["graph", "eager"]
# size = { sweep = [1, 32.0, 1e3], unit = "values" }
#
# [tool.harness.env]
# TF_ENABLE_ONEDNN_OPTS = ["", "0"]
#
# [tool.harness.default]
# TF_ENABLE_ONEDNN_OPTS = ""
# size = 32
#
# [[tool.harness.exclude]]
# model = "large"
# mode = "eager"
#
# [[tool.harness.needs]]
# when = { mode = "graph" }
# requires = ["tensorflow<2.16"]
# reason = "Keras 3 has no graph mode"
#
# [[tool.harness.compare]]
# name = "graph against eager"
# along = "mode"
# plus = "graph"
#
# [[tool.harness.compare]]
# name = "as released"
# along = "environment"
# pick = [
#     { requires = ["tensorflow<2"], mode = "graph" },
#     { requires = ["tensorflow>=2"], mode = "eager" },
# ]
#
# [[tool.harness.expect]]
# observation = "traces"
# value = [1, 2, 3]
# when = { mode = "graph", size = 1 }
# requires = ["tensorflow>=2.4"]
#
# [tool.harness.profile]
# data = ["*.cast"]
# ///

raise SystemExit("a header is read, never run")


def scenario(bench, model, mode="graph", *, size="32"):
    pass
"""


def read(text: str = HEADER) -> Scenario:
    return parse(text, Path("step.py"))


def problems(old: str, new: str, text: str = HEADER) -> list[str]:
    """What is said of the header after a change, each with the text of the line that it names."""
    assert old in text
    changed = text.replace(old, new, 1)
    with pytest.raises(FileError) as caught:
        read(changed)
    assert all(problem.path == Path("step.py") for problem in caught.value.problems)
    lines = changed.split("\n")
    return [
        f"{lines[problem.line - 1].lstrip('# ')} | {problem.text} {problem.fix}" for problem in caught.value.problems
    ]


def test_a_header_describes_the_whole_scenario() -> None:
    scenario = read()
    assert scenario.name == "step"
    assert scenario.axes == {
        "model": ["small", "large"],
        "mode": ["graph", "eager"],
        "size": ["1", "32", "1000"],
        "TF_ENABLE_ONEDNN_OPTS": ["", "0"],
    }
    assert scenario.environ == ["TF_ENABLE_ONEDNN_OPTS"]
    assert scenario.needs[0].requires == ["tensorflow<2.16"]
    assert scenario.compare[1].pick[0].axes == {"mode": "graph"}
    assert scenario.expect == [Expectation("traces", [1, 2, 3], {"mode": "graph", "size": "1"}, ["tensorflow>=2.4"])]
    assert scenario.data_handling == ["*.cast"]


def test_a_comparison_may_be_told_in_percent_as_well() -> None:
    assert not read().compare[0].percent
    assert read(HEADER.replace('# plus = "graph"', '# percent = true\n# plus = "graph"')).compare[0].percent


def test_a_header_that_names_no_comparison_compares_the_releases() -> None:
    assert with_lines().compare == [Comparison("release vs release", "environment")]
    claim = ('worse = { environment = "tf2.0", mode = "eager" }', 'better = { environment = "tf2.0", mode = "graph" }')
    lines = ('issue = "T#1"', 'reported = "slow"', "ratio = [2, 3]", *claim)
    assert not with_lines("[[tool.harness.claim]]", *lines).compare


@pytest.mark.parametrize(
    "of", ["peak memory", "memory growth", "traces", "first call", "device", "what a helper names"]
)
def test_a_comparison_may_be_about_another_quantity_than_the_step(of: str) -> None:
    text = HEADER.replace("    pass", '    with bench.phase("first call"):\n        pass')
    scenario = read(text.replace('# plus = "graph"', f'# of = "{of}"\n# plus = "graph"'))
    assert [entry.of for entry in scenario.compare] == [of, "step"]
    assert scenario.quantities == (of,)


def test_a_sweep_is_an_axis_whose_values_are_texts() -> None:
    scenario = read()
    assert scenario.sweeps == {"size": Sweep(unit="values")}
    assert scenario.default["size"] == "32"
    assert read(HEADER.replace(', unit = "values"', "")).sweeps == {"size": Sweep()}


def test_compared_axes_are_columns_and_the_others_rows() -> None:
    scenario = read()
    assert scenario.compared_axes == ("mode",)
    assert scenario.row_axes == ("model", "size", "TF_ENABLE_ONEDNN_OPTS")


def test_combinations_leave_out_what_the_header_excludes() -> None:
    scenario = read()
    combinations = scenario.combinations({**scenario.axes, "size": ["32"], "TF_ENABLE_ONEDNN_OPTS": [""]})
    pairs = [(axes["model"], axes["mode"]) for axes in combinations]
    assert pairs == [("small", "graph"), ("small", "eager"), ("large", "graph")]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[tool.harness]\n", "[tool.harnes]\n", "[tool.harnes] | harness doesn't read the table `tool.harnes`. Did"),
        ('title = "A step"', "title = 3", 'title = 3 | Invalid `title` 3: expected a valid string. Example: title = "3"'),
        ('title = "A step"', 'titel = "A"', 'titel = "A" | `titel` is not a known key. Did you mean `title`? The'),
        ('"small", "large"]', "1, 2]", 'model = [1, 2] | Invalid `axes.model` 1: expected a valid string. Example: model = ["one", "other"]'),
        ('"small", "large"]', "1, 2]", "or model = { sweep = [1, 32] }"),
        ('["small", "large"]', "[]", "model = [] | Invalid `axes.model`: list should have at least 1 item, not 0. Example: model ="),
        ('"small", "large"]', '"small", "small"]', 'model = ["small", "small"] | Invalid `axes.model`: expected \'small\' once. Remove the duplicate.'),
        ('model = ["small', 'environment = ["small', '"large"] | Invalid `axes.environment` \'environment\': expected lower-case letters, digits and `_`,'),
        ('model = "large"', 'model = "huge"', 'model = "huge" | Invalid `exclude.model` \'huge\': expected a value of the axis model. The values are'),
        ('model = "large"', 'model = "lagre"', "Did you mean `large`? The values are small, large."),
        ("{ mode = \"graph\" }", '{ mood = "graph" }', 'graph" } | Invalid `needs.when.mood`: this is not an axis. Did you mean `mode`? The axes are model,'),
        ('"tensorflow<2.16"', '"tensorflow <> 1"', 'requires = ["tensorflow <> 1"] | Invalid `needs.requires` \'tensorflow <> 1\': expected a requirement'),
        ('dependencies = ["tensorflow"]', 'dependencies = ["=1"]', '["=1"] | Invalid `dependencies` \'=1\': expected a requirement (PEP 508). Example: dependencies ='),
        ('">=3.6"', '"three"', 'requires-python = "three" | Invalid `requires-python` \'three\': expected a range of versions (PEP'),
        ('along = "mode"', 'along = "model"', 'graph" | Invalid `compare.plus` \'graph\': expected a value of model. The values are small, large.'),
        ('along = "mode"', 'along = "mood"', 'mood" | Invalid `compare.along` \'mood\': expected `environment` or an axis. Did you mean `mode`? The'),
        ('along = "mode"', 'along = "size"', "Invalid `compare.along` 'size': this axis is a sweep. Use another axis: its values are compared at each"),
        ('# plus = "graph"\n', "", "[[tool.harness.compare]] | Missing `compare.plus`: expected a value of mode. The values are graph,"),
        ('along = "environment"', 'along = "environment"\n# plus = "x"', 'plus = "x" | Invalid `compare.plus` \'x\': expected nothing with along = "environment". Remove `plus`:'),
        ('# plus = "graph"', '# of = "peek memory"\n# plus = "graph"', "Invalid `compare.of` 'peek memory': expected a quantity or a phase of the file. Did you mean `peak"),
        ('# plus = "graph"', '# of = 3\n# plus = "graph"', 'Invalid `compare.of` 3: expected a valid string. Example: of = "3"'),
        ('# plus = "graph"', '# percent = 1\n# plus = "graph"', "percent = 1 | Invalid `compare.percent` 1: expected a valid boolean. Example: percent = true"),
        ('>=2"], mode = "eager"', '>=2"], mode = "eagre"', 'mode = "eagre" }, | Invalid `compare.pick.mode` \'eagre\': expected a value of the axis mode. Did you'),
        ('["tensorflow>=2"], mode = "eager"', '["tensorflow>=2"], size = 1', "Invalid `compare.pick.size`: this axis is a sweep. Remove this axis: environments are compared at each"),
        ('reason = "Keras', 'reasons = "Keras', "`needs.reasons` is not a known key. Did you mean `reason`?"),
        ('reason = "Keras', 'devices = ["gpu", "tpu"]\n# reason = "Keras', 'Invalid `needs.devices` \'tpu\': expected \'cpu\' or \'gpu\'. Example: devices = ["cpu"]'),
        ('reason = "Keras', 'devices = []\n# reason = "Keras', 'Invalid `needs.devices`: list should have at least 1 item, not 0. Example: devices = ["cpu"]'),
        ('reason = "Keras', 'devices = "cpu"\n# reason = "Keras', 'Invalid `needs.devices` \'cpu\': expected a valid list. Example: devices = ["cpu"]'),
        ("[1, 32.0, 1e3]", "[1]", "Invalid `axes.size.sweep`: list should have at least 2 items, not 1. Example: sweep = [1, 32, 1024]"),
        ("[1, 32.0, 1e3]", '[1, "32"]', "Invalid `axes.size.sweep` '32': expected a valid number. Example: sweep = [1, 32, 1024]"),
        ("[1, 32.0, 1e3]", "[1, inf]", "Invalid `axes.size.sweep` inf: expected a finite number. Example: sweep = [1, 32, 1024]"),
        ("[1, 32.0, 1e3]", "[1, 1.0]", "Invalid `axes.size.sweep`: expected increasing numbers, each once, not 1 after 1. Sort the numbers."),
        ("size = { sweep = [1, 32.0, 1e3]", "size = { swept = [1]", "`axes.size.swept` is not a known key. Did you"),
        ("size = 32", "size = 33", "size = 33 | Invalid `default.size` 33: expected a value of the axis size. Did you mean `32`? The"),
        ("[[tool.harness.exclude]]", "[tool.harness.exclude]", "Invalid `exclude`: expected a valid list. Example: [[tool.harness.exclude]]"),
        ('observation = "traces"', 'observed = "traces"', "`expect.observed` is not a known key. Did you mean"),
        ('observation = "traces"', "", '[[tool.harness.expect]] | Missing `expect.observation`. Example: observation = "traces", the name'),
        ("value = [1, 2, 3]", "value = 2026-11-21", "value = 2026-11-21 | Invalid `expect.value` 2026-11-21: expected a value that JSON can store."),
        ("[tool.harness.default]", "[[tool.harness.default]]", "Invalid `default`: expected a table. Example: [tool.harness.default]"),
        ('data = ["*.cast"]', 'date = ["*.cast"]', "`profile.date` is not a known key. Did you mean `data`?"),
        ('data = ["*.cast"]', "data = 1", 'Invalid `profile.data` 1: expected a valid list. Example: data = ["one", "other"]'),
        ("[tool.harness.profile]", "[[tool.harness.profile]]", "Invalid `profile`: expected a table. Example: [tool.harness.profile]"),
    ],
)  # fmt: skip
def test_a_wrong_header_is_told_with_its_line_and_what_to_write(old: str, new: str, problem: str) -> None:
    assert any(problem in told for told in problems(old, new))


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_the_lines() -> None:
    told = problems('title = "A step"', 'titel = "A step"', HEADER.replace('model = "large"', 'model = "huge"'))
    assert [line.split(" | ")[0] for line in told] == ['titel = "A step"', 'model = "huge"']


def test_a_repeated_value_is_found_on_its_line() -> None:
    assert problems('["small", "large"]', '[\n#   "small",\n#   "large",\n#   "large",\n# ]')[0].startswith(
        '"large", |'
    )
    assert problems("[1, 32.0, 1e3]", "[\n#   5,\n#   2,\n# ]")[0].startswith("2, |")


def test_one_mistake_is_told_once() -> None:
    assert len(problems('mode = ["graph", "eager"]', 'mode = "graph"')) == 1


def test_the_sentence_names_file_and_line() -> None:
    with pytest.raises(FileError) as caught:
        read(HEADER.replace('title = "A step"', "title = 3"))
    assert str(caught.value) == 'step.py:6: Invalid `title` 3: expected a valid string. Example: title = "3"'


def toml(value: Any) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {toml(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


WORDS = ["axes", "mode", "size", "graph", "sweep", "unit", "when", "requires", "along", "plus", "pick", ">=1"]
WORDS += ["environment", "worse", "better", "ratio", "bytes", "issue", "T#1", "visible"]
VALUES = st.recursive(
    st.sampled_from(WORDS) | st.text("a\"\\'#=[{", max_size=3) | st.integers() | st.booleans() | st.just(0.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["title", "tags", "axes", "env", "default", "exclude", "needs", "compare", "claim", "expect", "profile", "titel"]


@given(VALUES, st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_whatever_a_header_says_is_a_scenario_or_a_list_of_problems(outer: object, table: dict[str, object]) -> None:
    keys = [f"# {key} = {toml(value)}" for key, value in table.items()]
    lines = ["# /// script", f"# requires-python = {toml(outer)}", "# [tool.harness]", *keys, "# ///"]
    with suppress(FileError):
        read("\n".join([*lines, "def scenario(bench, mode=1, **axes): pass", ""]))


SETTING = """\
# /// script
# [tool.harness]
# title = "A step"
#
# [tool.harness.axes]
# mode = ["graph", "eager"]
#
{more}# ///
{code}"""


def with_lines(*lines: str, code: str = "def scenario(bench, mode): ...") -> Scenario:
    return parse(SETTING.format(more="".join(f"# {line}\n" for line in lines), code=code), Path("step.py"))


def test_a_setting_with_a_default_is_an_axis_that_the_function_does_not_get() -> None:
    made = with_lines("[tool.harness.default]", 'xla = "off"')
    assert (made.axes["xla"], made.settings, made.default) == (["on", "off", "default"], ["xla"], {"xla": "off"})


def test_a_setting_that_is_compared_is_an_axis_of_its_two_values() -> None:
    made = with_lines("[[tool.harness.compare]]", 'along = "precision"', 'plus = "mixed_float16"')
    assert (made.axes["precision"], made.compared_axes) == (["mixed_float16", "float32"], ("precision",))


def test_a_setting_that_the_header_does_not_use_is_no_axis() -> None:
    assert (list(with_lines().axes), with_lines().settings) == (["mode"], [])
    with pytest.raises(FileError, match="tf32"):
        with_lines("[[tool.harness.exclude]]", 'tf32 = "on"')


def test_a_value_that_a_setting_does_not_have_is_wrong() -> None:
    with pytest.raises(FileError, match="The values are on, off, default"):
        with_lines("[tool.harness.default]", 'xla = "fast"')


def test_an_axis_of_a_settings_name_is_the_scenarios_own() -> None:
    made = parse(SETTING.format(more="", code="def scenario(bench, xla): ...").replace("mode =", "xla ="), Path("a.py"))
    assert (made.axes["xla"], made.settings) == (["graph", "eager"], [])


@pytest.mark.parametrize(
    ("code", "uses"),
    [
        ("import keras", True),
        ("from tensorflow.keras import layers", True),
        ("layers = tf.keras.layers", True),
        ("import tensorflow as tf", False),
        ('"""Without keras."""', False),
    ],
)
def test_whether_a_file_uses_keras_is_read_in_its_code(code: str, uses: bool) -> None:
    assert with_lines(code=f"{code}\ndef scenario(bench, mode): ...").uses_keras is uses


def test_more_combinations_than_anybody_measures_are_refused_at_once() -> None:
    values = [str(number) for number in range(1000)]
    axes = "".join(f"# a{axis} = {values}\n" for axis in range(5))
    (told,) = problems('# model = ["small", "large"]\n', f'# model = ["small", "large"]\n{axes}')
    assert "`axes` have 24,000,000,000,000,000 combinations. At most 100,000 are allowed." in told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '"small", "large"]',
            '"x", ' * 1001 + "]",
            "`axes.model` has 1,001 entries: expected at most 1,000.",
        ),
        ('"small", "large"]', f'"{"x" * 201}"]', "…: string should have at most 200 characters."),
        ("sweep = [1, 32.0, 1e3]", f"sweep = {list(range(1001))}", "has 1,001 entries: expected at most 1,000."),
        ('title = "', f'title = "{"x" * 1001}', "`title` has 1,007 characters: expected at most 1,000."),
        ("size = 32", f"size = {2**63}", "Invalid `default.size`: expected an integer of at most 64 bits."),
    ],
)
def test_what_is_too_long_is_told(old: str, new: str, told: str) -> None:
    assert any(told in problem for problem in problems(old, new))

from pathlib import Path

import pytest

from harness.catalog.header import parse
from harness.model.errors import UsageError
from harness.model.scenario import Scenario

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
#
# [tool.harness.env]
# TF_ENABLE_ONEDNN_OPTS = ["", "0"]
#
# [tool.harness.default]
# TF_ENABLE_ONEDNN_OPTS = ""
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
# pick = [{ requires = ["tensorflow<2"], mode = "graph" }, { requires = ["tensorflow>=2"], mode = "eager" }]
# ///

raise SystemExit("a header is read, never run")
"""


def read(text: str = HEADER) -> Scenario:
    return parse(text, Path("step.py"))


def test_a_header_describes_the_whole_scenario() -> None:
    scenario = read()
    assert scenario.name == "step"
    assert scenario.axes == {
        "model": ["small", "large"],
        "mode": ["graph", "eager"],
        "TF_ENABLE_ONEDNN_OPTS": ["", "0"],
    }
    assert scenario.environ == ["TF_ENABLE_ONEDNN_OPTS"]
    assert scenario.needs[0].requires == ["tensorflow<2.16"]
    assert scenario.compare[1].pick[0].axes == {"mode": "graph"}


def test_compared_axes_are_columns_and_the_others_rows() -> None:
    scenario = read()
    assert scenario.compared_axes == ("mode",)
    assert scenario.row_axes == ("model", "TF_ENABLE_ONEDNN_OPTS")


def test_combinations_leave_out_what_the_header_excludes() -> None:
    values = {"model": ["small", "large"], "mode": ["graph", "eager"], "TF_ENABLE_ONEDNN_OPTS": [""]}
    pairs = [(axes["model"], axes["mode"]) for axes in read().combinations(values)]
    assert pairs == [("small", "graph"), ("small", "eager"), ("large", "graph")]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("# /// script", "# /// other", "no `# /// script` header"),
        ('title = "A step"', "title = A", "not valid TOML"),
        ('title = "A step"', "title = 3", "`title` is not a string"),
        ('title = "A step"', 'titel = "A"', "`titel` is not a key"),
        ('model = ["small", "large"]', "model = [1, 2]", "not a list of strings"),
        ('model = ["small", "large"]', "model = []", "has no value"),
        ('model = ["small", "large"]', 'model = ["small", "small"]', "a value twice"),
        ('model = ["small", "large"]', 'environment = ["small"]', "no name for an axis"),
        ('# model = "large"', '# model = "huge"', "gives model the value 'huge'"),
        ('when = { mode = "graph" }', 'when = { mood = "graph" }', "names the axis 'mood'"),
        ('requires = ["tensorflow<2.16"]', 'requires = ["tensorflow <> 1"]', "no requirement"),
        ('along = "mode"', 'along = "model"', "must be values of model"),
        ('along = "mode"', 'along = "mood"', "must be `environment` or one of"),
        ('along = "environment"', 'along = "environment"\n# plus = "x"', "no meaning along the environments"),
        ('reason = "Keras', 'reasons = "Keras', "`needs.reasons` is not a key"),
    ],
)
def test_a_wrong_header_gets_a_sentence_that_names_file_and_key(old: str, new: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(HEADER.replace(old, new))
    assert problem in str(caught.value)
    assert str(caught.value).startswith("step.py")

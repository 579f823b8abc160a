"""The claims in a scenario's header."""
# ruff: noqa: E501

from pathlib import Path

import pytest

from harness.catalog.header import parse
from harness.model.environment import Device
from harness.model.errors import FileError
from harness.model.issues import Issue
from harness.model.scenario import Cell, Claim, ClaimSide, Scenario

HEADER = """\
# /// script
# requires-python = ">=3.6"
#
# [tool.harness]
# title = "Calls"
#
# [tool.harness.axes]
# call = ["predict", "model"]
# rows = ["one", "many"]
# size = { sweep = [1, 32] }
# inputs = ["numpy", "dataset"]
# model = ["small"]
#
# [tool.harness.default]
# inputs = "numpy"
#
# [[tool.harness.exclude]]
# call = "model"
# inputs = "dataset"
#
# [[tool.harness.claim]]
# issue = "https://github.com/tensorflow/tensorflow/issues/40261#issue-1"
# reported = "predict takes 100 times as long as a call of the model"
# worse = { environment = "tf2.2", call = "predict" }
# better = { environment = "tf2.2", call = "model" }
# ratio = [50, 300]
# when = { rows = "one", size = 1 }
# hardware = "Colab CPU"
# fixed = "2.3"
# visible = ["cpu"]
#
# [[tool.harness.claim]]
# issue = "K#13118"
# reported = "predict leaks"
# worse = { environment = "tf2.0+numpy==1.17.4", call = "predict", rows = "one", size = 32, inputs = "dataset" }
# bytes = [1000, 20000]
# ///
def scenario(bench, call, rows, size, inputs, model):
    with bench.phase("first call"):
        pass
"""


def read(text: str = HEADER) -> Scenario:
    return parse(text, Path("calls.py"))


def problems(old: str, new: str) -> list[str]:
    """What is said of the header after a change, each with the text of the line that it names."""
    assert old in HEADER
    changed = HEADER.replace(old, new, 1)
    with pytest.raises(FileError) as caught:
        read(changed)
    lines = changed.split("\n")
    return [
        f"{lines[problem.line - 1].lstrip('# ')} | {problem.text} {problem.fix}" for problem in caught.value.problems
    ]


def test_a_claim_is_what_an_issue_says_of_two_cells() -> None:
    assert read().claims[0] == Claim(
        issue=Issue("tensorflow/tensorflow", 40261),
        reported="predict takes 100 times as long as a call of the model",
        worse=ClaimSide("tf2.2", {"call": "predict"}),
        better=ClaimSide("tf2.2", {"call": "model"}),
        ratio=(50.0, 300.0),
        when={"rows": "one", "size": "1"},
        hardware="Colab CPU",
        fixed="2.3",
        visible=[Device.CPU],
    )


def test_bytes_are_what_each_call_of_one_side_keeps() -> None:
    claim = read().claims[1]
    assert (claim.of, claim.bytes, claim.better) == ("memory growth", (1000.0, 20000.0), None)
    assert claim.range == (1000.0, 20000.0)
    assert set(claim.visible) == {Device.CPU, Device.GPU}


def test_requirements_are_kept_as_environments_are_known_by() -> None:
    text = HEADER.replace("tf2.0+numpy==1.17.4", "tf2.0+ NumPy == 1.17.4")
    assert read(text).claims[1].worse.environment == "tf2.0+numpy==1.17.4"


def test_a_claim_may_be_of_a_phase() -> None:
    text = HEADER.replace("ratio = [50, 300]", 'ratio = [1.2, 1.5]\n# of = "first call"')
    assert read(text).claims[0].of == "first call"
    seconds = HEADER.replace("bytes = [1000, 20000]", 'seconds = [5, 20]\n# of = "import"')
    assert (read(seconds).claims[1].of, read(seconds).claims[1].seconds) == ("import", (5.0, 20.0))


def test_the_sides_of_a_claim_are_columns_of_the_table() -> None:
    assert read().compared_axes == ("call",)
    assert "rows" in read().row_axes


def test_a_side_has_a_value_of_each_axis_and_moves_to_another_environment() -> None:
    scenario = read()
    rest = {"rows": "one", "size": "1", "inputs": "numpy", "model": "small"}
    predict, model = {"call": "predict", **rest}, {"call": "model", **rest}

    def cells(environment: str, other: str = "") -> tuple[Cell, Cell]:
        name = scenario.name
        return Cell(name, environment, Device.CPU, predict), Cell(name, other or environment, Device.CPU, model)

    assert scenario.claimed(scenario.claims[0], Device.CPU) == cells("tf2.2")
    assert scenario.claimed(scenario.claims[0], Device.CPU, "tf2.3") == cells("tf2.3")
    apart = read(HEADER.replace('better = { environment = "tf2.2"', 'better = { environment = "tf1.15"'))
    assert apart.claimed(apart.claims[0], Device.CPU, "tf2.3") == cells("tf2.3", "tf1.15")
    leak = scenario.claimed(scenario.claims[1], Device.GPU, "tf2.3")
    assert (leak[0].environment, leak[0].device, leak[1]) == ("tf2.3", Device.GPU, None)


RATIO, BYTES = "ratio = [50, 300]", "bytes = [1000, 20000]"
WORSE, BETTER = (
    'worse = { environment = "tf2.2", call = "predict" }',
    'better = { environment = "tf2.2", call = "model" }',
)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('issue = "K#13118"', 'issue = "K13118"', '"K13118" | Invalid `claim.issue` \'K13118\': expected an issue. \'K13118\' is not a valid issue name.'),
        ('issue = "K#13118"', "issue = 13118", 'issue = 13118 | Invalid `claim.issue` 13118: expected a valid string. Example: issue = "T#33487"'),
        ('issue = "K#13118"', "", '[[tool.harness.claim]] | Missing `claim.issue`. Example: issue = "T#33487"'),
        ('reported = "predict leaks"', "", 'Missing `claim.reported`. Example: reported = "predict takes 100 times as long as a call of the'),
        ('reported = "predict leaks"', 'report = "x"', "`claim.report` is not a known key. Did you mean `reported`?"),
        ("[[tool.harness.claim]]", "[[tool.harness.claims]]", "`claims` is not a known key. Did you mean `claim`?"),
        (RATIO, "", "[[tool.harness.claim]] | Invalid `claim`: expected one range, not 0. Write one of ratio = [2, 5],"),
        (RATIO, f"{RATIO}\n# seconds = [1, 2]", "seconds = [1, 2] | Invalid `claim.seconds`: expected one range, not 2. Write one of ratio = [2, 5],"),
        (RATIO, "ratio = 100", "ratio = 100 | Invalid `claim.ratio` 100: expected a valid list. Example: ratio = [2, 5]"),
        (RATIO, "ratio = [50]", "Invalid `claim.ratio`: list should have at least 2 items, not 1. Example: ratio = [2, 5]"),
        (RATIO, "ratio = [1, inf]", "Invalid `claim.ratio` inf: expected a finite number. Example: ratio = [2, 5]"),
        (RATIO, "ratio = [300, 50]", "Invalid `claim.ratio`: expected two numbers above 1, the lower one first. Example: ratio = [2, 5]. If"),
        (RATIO, "ratio = [50, 50]", "Invalid `claim.ratio`: expected two numbers above 1, the lower one first. Example: ratio = [2, 5]. If"),
        (RATIO, "ratio = [0.2, 0.5]", "Example: ratio = [2, 5]. If the other side takes longer, swap `worse` and `better`."),
        (BYTES, "bytes = [0, 100]", "Invalid `claim.bytes`: expected two numbers above 0, the lower one first. Example: bytes = [1000,"),
        (RATIO, f'{RATIO}\n# of = "memory growth"', "Invalid `claim.of` 'memory growth': expected a quantity that `ratio` can describe. Write"),
        (BYTES, f'{BYTES}\n# of = "step"', "Invalid `claim.of` 'step': expected a quantity that `bytes` can describe. Write one of"),
        (BYTES, 'seconds = [1, 2]\n# of = "traces"', "Invalid `claim.of` 'traces': expected a quantity that `seconds` can describe. Write one"),
        (WORSE, "", '[[tool.harness.claim]] | Missing `claim.worse`. Example: worse = { environment = "tf2.2" }'),
        (WORSE, 'worse = "tf2.2"', '"tf2.2" | Invalid `claim.worse` \'tf2.2\': expected a table. Example: worse = { environment = "tf2.2"'),
        (WORSE, 'worse = { call = "predict" }', 'Missing `claim.worse.environment`. Example: environment = "tf2.2" or environment ='),
        (WORSE, 'worse = { environment = 2.2, call = "predict" }', 'Invalid `claim.worse.environment` 2.2: expected a valid string. Example: environment = "tf2.2" or'),
        ("tf2.0+numpy==1.17.4", "tf2.0+numpy", "Invalid `claim.worse.environment` 'tf2.0+numpy': expected an environment. The environment"),
        ("tf2.0+numpy==1.17.4", "numpy==1.17.4", "cannot be created: the first package is numpy, not one of"),
        (WORSE, 'worse = { environment = "tf2.2", cal = "predict" }', "Invalid `claim.worse.cal`: this is not an axis. Did you mean `call`? The axes are call, rows, size,"),
        (WORSE, 'worse = { environment = "tf2.2", call = "predct" }', "Invalid `claim.worse.call` 'predct': expected a value of the axis call. Did you mean `predict`? The"),
        (WORSE, 'worse = { environment = "tf2.2" }', "Invalid `claim.worse`: expected a value of call, as in `better`. Specify call on both sides, or in `when`."),
        (WORSE, 'worse = { environment = "tf2.2", call = "predict", size = 1 }', "Invalid `claim.worse.size`: this axis is a sweep. Move this axis to `when`: values of a"),
        (WORSE, 'worse = { environment = "tf2.2", call = "predict", rows = "one" }', "Invalid `claim.when`: `worse` names rows too. Use rows in one place only."),
        (BETTER, "", "[[tool.harness.claim]] | Missing `claim.better`: expected the faster side."),
        (BETTER, 'better = { environment = "tf2.2", call = "predict" }', "Invalid `claim.better`: this is the same as `worse`. Change a value: the environment, or the"),
        (BETTER, 'better = { environment = "tf2.2", call = "model", inputs = "dataset" }', "Invalid `claim.better`: this is a combination of values that the header excludes. Use other values."),
        (BYTES, f'{BYTES}\n# better = {{ environment = "tf2.2", call = "model" }}', "Invalid `claim.better`: expected no second side. Remove `better`: seconds and bytes describe only `worse`."),
        ('rows = "one", size = 1', "size = 1", "[[tool.harness.claim]] | Invalid `claim`: expected a value of rows. Add the axis to `when`. The values"),
        ('rows = "one", size = 1', 'rows = "on", size = 1', "Invalid `claim.when.rows` 'on': expected a value of the axis rows. Did you mean `one`? The values"),
        (RATIO, f'{RATIO}\n# of = "first cal"', "Invalid `claim.of` 'first cal': expected a quantity or a phase of the file. Did you mean `first"),
        ('fixed = "2.3"', "fixed = 2.3", 'fixed = 2.3 | Invalid `claim.fixed` 2.3: expected a valid string. Example: fixed = "2.3"'),
        ('visible = ["cpu"]', 'visible = ["tpu"]', 'Invalid `claim.visible` \'tpu\': expected \'cpu\' or \'gpu\'. Example: visible = ["cpu"]'),
        ('visible = ["cpu"]', "visible = []", 'Invalid `claim.visible`: list should have at least 1 item, not 0. Example: visible = ["cpu"]'),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_told_with_its_line_and_what_to_write(old: str, new: str, problem: str) -> None:
    assert any(problem in told for told in problems(old, new)), problems(old, new)


def test_a_setting_that_a_claim_names_is_an_axis() -> None:
    sides = 'worse = { environment = "tf2.2", xla = "on" }\n# better = { environment = "tf2.2", xla = "off" }'
    text = HEADER.replace(f"{WORSE}\n# {BETTER}", sides).replace("when = { rows", 'when = { call = "model", rows')
    made = read(text.replace("size = 32, inputs", 'xla = "off", size = 32, inputs'))
    assert (made.settings, made.axes["xla"], made.compared_axes) == (["xla"], ["on", "off"], ("xla",))

from dataclasses import asdict
from pathlib import Path

from harness.model.environment import Device
from harness.model.scenario import Cell, Scenario
from harness.scenarios.header import parse
from tests.scenarios.problems import read_changes

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


def test_a_claim_is_what_an_issue_says_of_two_cells_or_of_what_each_call_keeps(snapshot):
    assert [asdict(claim) for claim in read().claims] == snapshot
    assert read().claims[1].range == (1000.0, 20000.0)
    # requirements are kept as environments are known by
    text = HEADER.replace("tf2.0+numpy==1.17.4", "tf2.0+ NumPy == 1.17.4")
    assert read(text).claims[1].worse.environment == "tf2.0+numpy==1.17.4"

    text = HEADER.replace("ratio = [50, 300]", 'ratio = [1.2, 1.5]\n# of = "first call"')
    assert read(text).claims[0].of == "first call"
    seconds = HEADER.replace("bytes = [1000, 20000]", 'seconds = [5, 20]\n# of = "import"')
    assert (read(seconds).claims[1].of, read(seconds).claims[1].seconds) == ("import", (5.0, 20.0))


def test_a_side_has_a_value_of_each_axis_and_moves_to_another_environment():
    scenario = read()
    assert scenario.compared_axes == ("call",)
    assert "rows" in scenario.row_axes
    rest = {"rows": "one", "size": "1", "inputs": "numpy", "model": "small"}
    predict, model = {"call": "predict", **rest}, {"call": "model", **rest}

    def cells(environment, other=""):
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


CHANGES = [
    ('issue = "K#13118"', 'issue = "K13118"'),
    ('issue = "K#13118"', ""),
    ('reported = "predict leaks"', 'report = "x"'),
    (RATIO, ""),
    (RATIO, f"{RATIO}\n# seconds = [1, 2]"),
    (RATIO, "ratio = [50]"),
    (RATIO, "ratio = [300, 50]"),
    (RATIO, "ratio = [50, 50]"),
    (BYTES, "bytes = [0, 100]"),
    (RATIO, f'{RATIO}\n# of = "memory growth"'),
    (BYTES, f'{BYTES}\n# of = "step"'),
    (BYTES, 'seconds = [1, 2]\n# of = "traces"'),
    (WORSE, ""),
    (WORSE, 'worse = "tf2.2"'),
    (WORSE, 'worse = { call = "predict" }'),
    ("tf2.0+numpy==1.17.4", "tf2.0+num py"),
    ("tf2.0+numpy==1.17.4", "numpy==1.17.4"),
    (WORSE, 'worse = { environment = "tf2.2", call = "predct" }'),
    (WORSE, 'worse = { environment = "tf2.2" }'),
    (WORSE, 'worse = { environment = "tf2.2", call = "predict", size = 1 }'),
    (WORSE, 'worse = { environment = "tf2.2", call = "predict", rows = "one" }'),
    (BETTER, ""),
    (BETTER, 'better = { environment = "tf2.2", call = "predict" }'),
    (BETTER, 'better = { environment = "tf2.2", call = "model", inputs = "dataset" }'),
    (BYTES, f'{BYTES}\n# better = {{ environment = "tf2.2", call = "model" }}'),
    ('rows = "one", size = 1', "size = 1"),
    ('rows = "one", size = 1', 'rows = "on", size = 1'),
    (RATIO, f'{RATIO}\n# of = "first cal"'),
    ('visible = ["cpu"]', 'visible = ["tpu"]'),
]


def test_a_wrong_claim_is_told_with_its_line_and_what_to_write(snapshot):
    assert read_changes(HEADER, CHANGES) == snapshot


def test_a_setting_that_a_claim_names_is_an_axis():
    sides = 'worse = { environment = "tf2.2", xla = "on" }\n# better = { environment = "tf2.2", xla = "off" }'
    text = HEADER.replace(f"{WORSE}\n# {BETTER}", sides).replace("when = { rows", 'when = { call = "model", rows')
    scenario = read(text.replace("size = 32, inputs", 'xla = "off", size = 32, inputs'))
    assert (scenario.settings, scenario.axes["xla"], scenario.compared_axes) == (["xla"], ["on", "off"], ("xla",))

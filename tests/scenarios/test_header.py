from dataclasses import asdict
from pathlib import Path

from harness.model.errors import FileError
from harness.model.scenario import Comparison, Scenario, Sweep
from harness.scenarios.header import parse
from tests.errors import catch_text
from tests.scenarios.problems import read_changes, read_problems

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


def test_a_header_describes_the_whole_scenario(snapshot):
    scenario = read()
    assert {key: value for key, value in asdict(scenario).items() if value} == snapshot
    assert read(HEADER.replace(', unit = "values"', "")).sweeps == {"size": Sweep()}
    # compared axes are columns, and the others rows
    assert scenario.compared_axes == ("mode",)
    assert scenario.row_axes == ("model", "size", "TF_ENABLE_ONEDNN_OPTS")
    # and no combination is one that the header excludes
    combinations = scenario.combinations({**scenario.axes, "size": ["32"], "TF_ENABLE_ONEDNN_OPTS": [""]})
    pairs = [(axes["model"], axes["mode"]) for axes in combinations]
    assert pairs == [("small", "graph"), ("small", "eager"), ("large", "graph")]


def test_a_comparison_may_be_about_another_quantity_than_the_step_and_without_any_is_of_releases():
    text = HEADER.replace("    pass", '    with bench.phase("first call"):\n        pass')
    quantities = ("peak memory", "memory growth", "traces", "first call", "device", "what a helper names")
    for quantity in quantities:
        scenario = read(text.replace('# plus = "graph"', f'# of = "{quantity}"\n# plus = "graph"'))
        assert [comparison.of for comparison in scenario.compare] == [quantity, "step"]
        assert scenario.quantities == (quantity,)
    assert with_lines().compare == [Comparison("release vs release", "environment")]
    claim = ('worse = { environment = "tf2.0", mode = "eager" }', 'better = { environment = "tf2.0", mode = "graph" }')
    lines = ('issue = "T#1"', 'reported = "slow"', "ratio = [2, 3]", *claim)
    assert not with_lines("[[tool.harness.claim]]", *lines).compare


CHANGES = [
    ("[tool.harness]\n", "[tool.harnes]\n"),
    ('title = "A step"', "title = 3"),
    ('"small", "large"]', "1, 2]"),
    ('["small", "large"]', "[]"),
    ('"small", "large"]', '"small", "small"]'),
    ('model = ["small', 'environment = ["small'),
    ('model = "large"', 'model = "lagre"'),
    ('{ mode = "graph" }', '{ mood = "graph" }'),
    ('"tensorflow<2.16"', '"tensorflow <> 1"'),
    ('dependencies = ["tensorflow"]', 'dependencies = ["=1"]'),
    ('">=3.6"', '"three"'),
    ('along = "mode"', 'along = "model"'),
    ('along = "mode"', 'along = "mood"'),
    ('along = "mode"', 'along = "size"'),
    ('# plus = "graph"\n', ""),
    ('along = "environment"', 'along = "environment"\n# plus = "x"'),
    ('# plus = "graph"', '# of = "peek memory"\n# plus = "graph"'),
    ('>=2"], mode = "eager"', '>=2"], mode = "eagre"'),
    ('["tensorflow>=2"], mode = "eager"', '["tensorflow>=2"], size = 1'),
    ('reason = "Keras', 'reasons = "Keras'),
    ('reason = "Keras', 'devices = ["gpu", "tpu"]\n# reason = "Keras'),
    ("[1, 32.0, 1e3]", "[1]"),
    ("[1, 32.0, 1e3]", '[1, "32"]'),
    ("[1, 32.0, 1e3]", "[1, inf]"),
    ("[1, 32.0, 1e3]", "[1, 1.0]"),
    ("size = { sweep = [1, 32.0, 1e3]", "size = { swept = [1]"),
    ("size = 32", "size = 33"),
    ("[[tool.harness.exclude]]", "[tool.harness.exclude]"),
    ('observation = "traces"', ""),
    ("value = [1, 2, 3]", "value = 2026-11-21"),
    ("[tool.harness.default]", "[[tool.harness.default]]"),
    ('data = ["*.cast"]', 'date = ["*.cast"]'),
    ('mode = ["graph", "eager"]', 'mode = "graph"'),
    ("[1, 32.0, 1e3]", "[\n#   5,\n#   2,\n# ]"),
]


def test_a_wrong_header_is_told_with_its_line_and_what_to_write(snapshot):
    assert read_changes(HEADER, CHANGES) == snapshot
    # all at once, in the order of the lines
    header = HEADER.replace('model = "large"', 'model = "huge"')
    texts = read_problems(header, 'title = "A step"', 'titel = "A step"')
    assert [line.split(" | ")[0] for line in texts] == ['titel = "A step"', 'model = "huge"']


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


def test_a_setting_that_has_a_default_or_is_compared_is_an_axis(snapshot):
    scenario = with_lines("[tool.harness.default]", 'xla = "off"')
    assert scenario.axes["xla"] == ["on", "off", "default"]
    assert (scenario.settings, scenario.default) == (["xla"], {"xla": "off"})
    scenario = with_lines("[[tool.harness.compare]]", 'along = "precision"', 'plus = "mixed_float16"')
    assert (scenario.axes["precision"], scenario.compared_axes) == (["mixed_float16", "float32"], ("precision",))
    # one that the header does not use is none
    assert (list(with_lines().axes), with_lines().settings) == (["mode"], [])
    # and an axis of its name is the scenario's own
    text = SETTING.format(more="", code="def scenario(bench, xla): ...").replace("mode =", "xla =")
    scenario = parse(text, Path("a.py"))
    assert (scenario.axes["xla"], scenario.settings) == (["graph", "eager"], [])
    assert [
        catch_text(FileError, with_lines, "[[tool.harness.exclude]]", 'tf32 = "on"'),
        catch_text(FileError, with_lines, "[tool.harness.default]", 'xla = "fast"'),
    ] == snapshot


def test_whether_a_file_uses_keras_is_read_in_its_code():
    uses = {
        "import keras": True,
        "from tensorflow.keras import layers": True,
        "layers = tf.keras.layers": True,
        "import tensorflow as tf": False,
        '"""Without keras."""': False,
        # a name in Python 3.6, and a keyword in the Python of harness
        "import keras\nasync = 1": False,
    }
    assert {code: with_lines(code=f"{code}\ndef scenario(bench, mode): ...").uses_keras for code in uses} == uses


def test_what_is_too_much_or_too_long_is_told(snapshot):
    model, values = '"small", "large"]', [str(number) for number in range(1000)]
    axes = "".join(f"# a{axis} = {values}\n" for axis in range(5))
    changes = {
        "combinations": (f"# model = [{model}\n", f"# model = [{model}\n{axes}"),
        "entries": (model, '"x", ' * 1001 + "]"),
        "characters": (model, f'"{"x" * 201}"]'),
        "values": ("sweep = [1, 32.0, 1e3]", f"sweep = {list(range(1001))}"),
        "title": ('title = "', f'title = "{"x" * 1001}'),
        "integer": ("size = 32", f"size = {2**63}"),
    }
    texts = {name: read_problems(HEADER, *change)[0].partition(" | ")[2] for name, change in changes.items()}
    assert texts == snapshot

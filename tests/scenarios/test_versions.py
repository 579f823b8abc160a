import json
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

from harness.model.errors import FileError, UsageError
from harness.scenarios import versions
from harness.scenarios.catalog import load_scenario
from tests.errors import catch_text

KIT = Path(__file__).parents[2] / "scenarios"

write_side_by_side = partial(versions.write_side_by_side, kind="scripts")

HEADER = """\
# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title = "Sums ˜, \\\\ and \\"quotes\\""
# files = ["data/numbers.txt"]
#
# [tool.harness.axes]
# length = ["short", "long"]
# call = {calls}
# size = {{ sweep = [1, 32], unit = "values" }}
#
# [tool.harness.env]
# TF_FLAG = ["", "1"]
#
{exclude}
# [[tool.harness.needs]]
# when = {{ length = "long" }}
# requires = ["tensorflow>={least}"]
#
# [[tool.harness.compare]]
# along = "environment"
# [[tool.harness.compare]]
# along = "environment"
# of = "build"
# ///
"""

CODE = """
import os
from tensorflow.keras import layers
from helper import ADDED


def scenario(bench, length, call, size):
    with bench.phase("build"):
        pass
"""


def version(calls: str = '["a", "b", "c"]', least: str = "2.0", code: str = CODE) -> dict[str, bytes]:
    exclude = '# [[tool.harness.exclude]]\n# length = "long"\n# call = "c"' if '"c"' in calls else "#"
    text = HEADER.format(calls=calls, least=least, exclude=exclude) + code
    return {"sums.py": text.encode(), "data/numbers.txt": b"1 2 3"}


def change(files: dict[str, bytes], old: str, new: str) -> dict[str, bytes]:
    text = files["sums.py"].decode()
    assert old in text
    return {**files, "sums.py": text.replace(old, new.replace("'", '"')).encode()}


def test_it_has_the_newer_header_with_an_axis_of_the_versions_and_compares_along_that_alone(snapshot):
    path = write_side_by_side("sums", version(), version(least="2.5"))
    scenario = load_scenario(path)
    assert {key: value for key, value in asdict(scenario).items() if value and key != "path"} == snapshot
    # the same versions are the same file, and others another
    assert write_side_by_side("sums", version(), version(least="2.5")) == path
    assert write_side_by_side("sums", version(), {**version(least="2.5"), "data/numbers.txt": b"4"}) != path
    # values that one version alone has are left out, with what names them
    scenario = load_scenario(write_side_by_side("sums", version('["b", "a"]'), version()))
    assert (scenario.axes["call"], scenario.exclude) == (["a", "b"], [])


def test_a_sweep_has_the_numbers_of_both_versions_and_the_newer_unit():
    more = change(version(), "sweep = [1, 32], unit", "sweep = [0.5, 1, 32, 64], unit")
    named = "# [tool.harness.default]\n# size = {}\n#\n# [[tool.harness.exclude]]\n# size = '64'\n# call = 'b'"
    for default, defaults in ((64, {}), (32, {"size": "32"})):
        newer = change(more, '# [[tool.harness.exclude]]\n# length = "long"\n# call = "c"', named.format(default))
        scenario = load_scenario(write_side_by_side("sums", version(), newer))
        assert scenario.axes["size"] == ["1", "32"]
        assert (dict(scenario.default), scenario.exclude) == (defaults, [])
    scenario = load_scenario(write_side_by_side("sums", more, change(version(), '"values"', '"numbers"')))
    assert (scenario.axes["size"], scenario.sweeps["size"].unit) == (["1", "32"], "numbers")


def test_a_setting_that_is_no_axis_any_more_is_named_nowhere():
    setting = (
        "# [[tool.harness.exclude]]\n# xla = 'on'\n# [[tool.harness.compare]]\n# along = 'xla'\n# plus = 'on'\n#\n"
    )
    needs = setting + "# [[tool.harness.needs]]\n# when = { xla = 'on' }\n# requires = ['tensorflow>=2.5']\n#\n"
    newer = change(version(), "# [[tool.harness.needs]]", f"{needs}# [[tool.harness.needs]]")
    scenario = load_scenario(write_side_by_side("sums", newer, newer))
    assert "xla" not in str([scenario.axes, scenario.exclude, scenario.needs])


def test_versions_that_do_not_ask_the_same_are_refused(snapshot):
    axis = version()["sums.py"].replace(b"# call =", b"# how =").replace(b"# call", b"# how")
    side = {"sums.py": version()["sums.py"].replace(b"call", b"side")}
    pairs = {
        "no value": (version('["x"]'), version()),
        "no sweep": (change(version(), "[1, 32]", "[2, 32]"), version()),
        "a sweep": (change(version(), '{ sweep = [1, 32], unit = "values" }', '["1", "32"]'), version()),
        "an axis": (version(), {"sums.py": axis.replace(b"length, call", b"length, how")}),
        "the axis of the versions": (side, side),
    }
    assert {name: catch_text(UsageError, write_side_by_side, "sums", *pair) for name, pair in pairs.items()} == snapshot
    # what is wrong in a version is told with its side
    base = {"sums.py": version()["sums.py"].replace(b"title", b"titel")}
    assert "base/sums.py:6: " in catch_text(FileError, write_side_by_side, "sums", base, version())


def test_a_launch_runs_the_version_of_its_side_with_the_files_beside_it(tmp_path):
    header = "# /// script\n# dependencies = []\n# [tool.harness]\n# title = 'T'\n# files = ['own.py']\n# ///\n"
    code = "from own import NUMBER\ndef scenario(bench):\n    bench.observe('number', NUMBER + {})\n"
    sides = [
        {"sums.py": (header + code.format(number)).encode(), "own.py": f"NUMBER = {number}0".encode()}
        for number in (1, 2)
    ]
    path = write_side_by_side("sums", *sides)
    bench = "class Bench:\n    def observe(self, name, value): print(value)\n"
    folders = json.dumps([str(path.parent), str(KIT)])
    program = f"import sys; sys.path[:0] = {folders}\n{bench}from {path.stem} import scenario\n"
    for side, number in (("base", 11), ("head", 22)):
        command = [sys.executable, "-c", f"{program}scenario(Bench(), {side!r})"]
        completed = subprocess.run(command, capture_output=True, text=True, check=True)
        assert int(completed.stdout) == number

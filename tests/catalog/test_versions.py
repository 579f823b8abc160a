"""Two versions of a scenario's file as one scenario."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.catalog.scenarios import load_scenario
from harness.catalog.versions import write_side_by_side
from harness.model.errors import FileError, UsageError

KIT = Path(__file__).parents[2] / "scenarios"

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


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))


def test_it_has_the_newer_header_with_an_axis_of_the_versions_and_compares_along_that_alone():
    made = load_scenario(write_side_by_side("sums", version(), version(least="2.5")))
    assert made.name == "sums_side_by_side"
    assert made.title == 'Sums ˜, \\ and "quotes"'
    assert dict(made.axes) == {
        "length": ["short", "long"],
        "call": ["a", "b", "c"],
        "size": ["1", "32"],
        "side": ["base", "head"],
        "TF_FLAG": ["", "1"],
    }
    assert [(entry.along, entry.plus, entry.against, entry.of) for entry in made.compare] == [
        ("side", "head", "base", "step"),
        ("side", "head", "base", "build"),
    ]
    # what one version cannot run, the other can
    assert [(dict(need.when), list(need.requires)) for need in made.needs] == [
        ({"length": "long", "side": "base"}, ["tensorflow>=2.0"]),
        ({"length": "long", "side": "head"}, ["tensorflow>=2.5"]),
    ]
    assert made.uses_keras
    assert set(made.files) == {"base/sums.py", "base/data/numbers.txt", "head/sums.py", "head/data/numbers.txt"}


def test_values_that_one_version_alone_has_are_left_out_with_what_names_them():
    made = load_scenario(write_side_by_side("sums", version('["b", "a"]'), version()))
    assert made.axes["call"] == ["a", "b"]
    assert made.exclude == []


def test_a_sweep_has_the_numbers_of_both_versions_and_the_newer_unit():
    more = change(version(), "sweep = [1, 32], unit", "sweep = [0.5, 1, 32, 64], unit")
    named = "# [tool.harness.default]\n# size = {}\n#\n# [[tool.harness.exclude]]\n# size = '64'\n# call = 'b'"
    for default, kept in ((64, {}), (32, {"size": "32"})):
        newer = change(more, '# [[tool.harness.exclude]]\n# length = "long"\n# call = "c"', named.format(default))
        made = load_scenario(write_side_by_side("sums", version(), newer))
        assert made.axes["size"] == ["1", "32"]
        assert (dict(made.default), made.exclude) == (kept, [])
    made = load_scenario(write_side_by_side("sums", more, change(version(), '"values"', '"numbers"')))
    assert (made.axes["size"], made.sweeps["size"].unit) == (["1", "32"], "numbers")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (version('["x"]'), version(), "have no common value of the axis call"),
        (change(version(), "[1, 32]", "[2, 32]"), version(), "have fewer than two common values of the sweep size"),
        (
            change(version(), '{ sweep = [1, 32], unit = "values" }', '["1", "32"]'),
            version(),
            "The axis size is a sweep in only one of the two versions of sums",
        ),
        (
            version(),
            {"sums.py": version()["sums.py"].replace(b"# call =", b"# how =").replace(b"# call", b"# how")
             .replace(b"length, call", b"length, how")},
            "only one of them has call, how",
        ),
    ],
)  # fmt: skip
def test_versions_that_do_not_ask_the_same_are_refused(before, after, told):
    with pytest.raises(UsageError, match=told):
        write_side_by_side("sums", before, after)


def test_an_axis_of_that_name_is_refused():
    text = version()["sums.py"].decode().replace("call", "side")
    with pytest.raises(UsageError, match="already has an axis 'side'"):
        write_side_by_side("sums", {"sums.py": text.encode()}, {"sums.py": text.encode()})


def test_what_is_wrong_in_a_version_is_told_with_its_side():
    with pytest.raises(FileError, match=r"base/sums\.py:6: "):
        write_side_by_side("sums", {"sums.py": version()["sums.py"].replace(b"title", b"titel")}, version())


def test_the_same_versions_are_the_same_file_and_others_another():
    first = write_side_by_side("sums", version(), version(least="2.5"))
    assert write_side_by_side("sums", version(), version(least="2.5")) == first
    assert write_side_by_side("sums", version(), {**version(least="2.5"), "data/numbers.txt": b"4"}) != first


def test_a_launch_runs_the_version_of_its_side_with_the_files_beside_it(tmp_path):
    header = "# /// script\n# dependencies = []\n# [tool.harness]\n# title = 'T'\n# files = ['own.py']\n# ///\n"
    code = "from own import SAID\ndef scenario(bench):\n    bench.observe('said', SAID + {})\n"
    sides = [
        {"sums.py": (header + code.format(number)).encode(), "own.py": f"SAID = {number}0".encode()}
        for number in (1, 2)
    ]
    made = write_side_by_side("sums", *sides)
    for side, said in (("base", 11), ("head", 22)):
        class_of = "class Bench:\n    def observe(self, name, value): print(value)\n"
        program = f"{class_of}import {made.stem} as made\nmade.scenario(Bench(), {side!r})"
        path = json.dumps([str(made.parent), str(KIT)])
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {path}\n{program}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert int(done.stdout) == said

"""`harness scenarios`: list, show, check and new, and what the matrix does with a file that is wrong."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SCENARIO, Harness

Write = Callable[[str, str], Path]

BROKEN = SCENARIO.replace("title =", "titel =").replace('way = "signals"', 'way = "sings"')
SWEEP = """\
# /// script
# requires-python = ">=3.7"
#
# [tool.harness]
# title = "Sizes"
# tags = ["example"]
#
# [tool.harness.axes]
# size = { sweep = [1, 0.5e1], unit = "values" }
#
# [[tool.harness.exclude]]
# size = 1
# FLAGS = ""
#
# [tool.harness.env]
# FLAGS = ["", "1"]
#
# [[tool.harness.compare]]
# name = "with flags"
# along = "FLAGS"
# plus = "1"
#
# [[tool.harness.expect]]
# observation = "size"
# value = "5"
# when = { size = 5 }
# ///


def scenario(bench, size):
    bench.observe("size", size)
    bench.measure(lambda: sum(range(int(size))))
"""
#: Where BROKEN is wrong.
PLACES = ["scenarios/broken.py:6: ", "scenarios/broken.py:17: "]


def write_suites(harness: Harness, text: str) -> None:
    (harness.root / "scenarios" / "suites.toml").write_text(text)


@pytest.mark.slow
def test_check_and_list_tell_every_problem_by_file_and_line_and_what_is_right(
    harness, write_scenario, tmp_path, snapshot
):
    outputs: dict[str, list[object]] = {}

    def check(case: str, *arguments: str, command: str = "check") -> None:
        process = harness.call("scenarios", command, *arguments)
        texts = [text.replace(str(tmp_path), "TMP") for text in (process.stdout, process.stderr)]
        outputs[case] = [process.returncode, *texts]

    write_scenario("broken", BROKEN)
    check("check beside a broken file", "ways")
    check("list beside a broken file", command="list")
    (tmp_path / "outside.py").write_text(BROKEN)
    check("files from anywhere", str(tmp_path / "outside.py"), "scenarios/ways.py")
    header = SWEEP.partition("\n\n\n")[0]
    write_scenario("new", f"{header}\ndef scenario(bench, size):\n    break\n")
    check("the oldest Python that a file claims", "new")
    write_scenario("new", f"{SWEEP}\nx = {'+'.join('1' * 9999)}\n")
    assert "recursion" in harness.call("scenarios", "check", "new").stderr
    write_scenario("broken", SWEEP.replace("# ///\n\n", f"{CLAIM}\n"))
    check("an environment of a claim", "broken")
    write_scenario("broken", SWEEP)
    write_scenario("new", SWEEP)
    check("all is right")
    write_suites(harness, '[few]\nbudget = "soon"\n[[few.select]]\nscenario = "ways"\nway = ["fin"]\n')
    check("suites")
    assert outputs == snapshot


def test_show_tells_the_header_and_where_the_cells_exist(harness, write_scenario, snapshot):
    write_scenario("broken", BROKEN)
    write_scenario("sizes", SWEEP.replace("# ///\n\n", f"{CLAIM}\n"))
    texts = {name: harness.call("scenarios", "show", name).stdout.splitlines() for name in ("ways", "sizes")}
    assert {name: [line.replace(str(harness.root), "PROJECT") for line in lines] for name, lines in texts.items()} == (
        snapshot
    )
    sizes, ways = json.loads(harness.call("scenarios", "show", "*", "--json").stdout)
    assert (sizes["sweeps"], sizes["cells"]) == ({"size": {"unit": "values"}}, 3)
    assert sizes["claims"][0]["issue"] == {"repository": "tensorflow/tensorflow", "number": 40261}
    assert [(entry["name"], entry["cells"]) for entry in ways["environments"]] == [("old", 14), ("new", 14)]
    assert ways["environments"][0]["not_available"][0]["reason"] == "no release does this"


def test_new_writes_what_passes_the_check_and_can_be_selected(harness, tmp_path):
    process = harness.call("scenarios", "new", "matrix_product", "--title", 'A "product" of \\ matrices')
    assert process.returncode == 0, process.stderr
    assert "scenarios/matrix_product.py" in process.stdout
    folder = tmp_path / "my files"
    folder.mkdir()
    elsewhere = harness.call("scenarios", "new", "mine", "--directory", str(folder))
    assert f"PYTHONPATH={harness.root}/scenarios python '{folder}/mine.py'" in elsewhere.stdout
    check = harness.call("scenarios", "check", "ways", "matrix_product", str(folder / "mine.py"))
    assert (check.returncode, check.stdout.split()[0]) == (0, "3")
    assert 'matrix_product: A "product" of \\ matrices' in harness.call("scenarios", "list").stdout
    plan = json.loads(harness.call("matrix", "-s", "matrix_product", "--dry-run", "--json").stdout)
    assert len(plan["not available"]) == 8


@pytest.mark.slow
def test_new_writes_what_runs_by_hand(harness):
    harness.call("scenarios", "new", "matrix_product")
    script = harness.root / "scenarios" / "matrix_product.py"
    (harness.root / "scenarios" / "tensorflow.py").write_text(TENSORFLOW)
    command = [sys.executable, str(script), "--seconds", "0.05", "--mode", "function"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 0, process.stderr
    assert "result 42.0" in process.stdout


#: As much of TensorFlow as the skeleton calls.
TENSORFLOW = """
__version__ = "2.0.0"
ones, matmul, reduce_sum = list, lambda one, other: one, lambda values: 42.0
function, executing_eagerly = lambda work: work, lambda: True
class constant:
    __init__ = numpy = lambda *given: None
"""


def test_for_a_user_the_scenarios_of_the_package_are_names_that_are_used_and_files_without_a_header_none(
    harness, tmp_path, monkeypatch, snapshot
):
    monkeypatch.setattr("harness.package_data.FOLDER", harness.root)
    harness.root = tmp_path / "elsewhere"
    (harness.root / "scenarios").mkdir(parents=True)
    (harness.root / "scenarios" / "plain.py").write_text("print('nothing of ours')\n")
    del harness.environ["HARNESS_PROJECT"]
    assert "plain" not in harness.call("scenarios", "list").stdout
    errors = {}
    for line in (
        "scenarios new ways",
        "scenarios new ways --directory .",
        "matrix -e old --dry-run -s plain",
        "scenarios show plain",
        "scenarios check plain",
    ):
        process = harness.call(*line.split())
        errors[line] = f"{process.returncode} {process.stderr.strip()}"
    assert errors == snapshot
    assert [path.name for path in harness.root.rglob("*.py")] == ["plain.py"]


def test_the_matrix_runs_all_but_a_broken_scenario(harness, write_scenario, instant):
    write_scenario("broken", BROKEN)
    options = ("-e", "old", "--rounds", "1", "--backend", "local")
    process = harness.call("matrix", "-s", "broken", "-s", "ways", "-a", "way=fine", *options)
    assert process.returncode == 1, process.stderr
    assert all(place in process.stderr for place in PLACES)
    assert "check them: harness scenarios check scenarios/broken.py" in process.stderr
    assert {job.cell.scenario for _, job in instant.jobs} == {"ways"}
    unselected = harness.call("matrix", "-s", "ways", "-a", "way=fine", "--dry-run")
    assert (unselected.returncode, unselected.stderr) == (0, "")
    write_suites(harness, '[both]\n[[both.select]]\nscenario = "ways"\n[[both.select]]\nscenario = "broken"\n')
    plan = harness.call("matrix", "--suite", "both", "--dry-run", "--json")
    assert (plan.returncode, json.loads(plan.stdout)["refused"]) == (1, ["broken"])


CLAIM = """\
#
# [[tool.harness.claim]]
# issue = "T#40261"
# reported = "predict takes 100 times as long as a call"
# worse = { environment = "new", FLAGS = "1" }
# better = { environment = "od", FLAGS = "" }
# ratio = [50, 300]
# of = "import"
# when = { size = 5 }
# hardware = "Colab"
# fixed = "2.3"
# ///
"""

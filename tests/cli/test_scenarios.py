"""`harness scenarios`: list, show, check and new, and what the matrix does with a file that is wrong."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.model.errors import UsageError
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
LINES = [
    "scenarios/broken.py:6: `titel` is not a known key. Did you mean `title`?",
    "scenarios/broken.py:17: Invalid `needs.when.way` 'sings': expected a value of the axis way. Did you mean",
]


def test_the_list_goes_on_beside_a_broken_file_and_tells_it(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    done = harness("scenarios", "list")
    assert (done.returncode, done.stdout) == (0, "ways: Ways to end\n")
    assert all(line in done.stderr for line in LINES)


def test_check_tells_every_problem_by_file_and_line_and_what_to_write(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    done = harness("scenarios", "check")
    assert (done.returncode, done.stdout) == (2, "")
    told = done.stderr.splitlines()
    assert len(told) == 2
    assert all(line.startswith(begin) for line, begin in zip(told, LINES, strict=True))


def test_check_says_how_many_it_found_right(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    assert harness("scenarios", "check", "ways").stdout == "1 scenario, no problem.\n"
    write_scenario("broken", SWEEP)
    done = harness("scenarios", "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 scenarios, no problem.\n", "")


def test_check_takes_files_from_anywhere(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(BROKEN)
    done = harness("scenarios", "check", str(tmp_path / "outside.py"), "scenarios/ways.py")
    assert done.returncode == 2
    assert f"{tmp_path}/outside.py:6: `titel`" in done.stderr


def test_check_looks_at_the_suites_too(harness: Harness) -> None:
    suites = '[few]\nbudget = "soon"\n[[few.select]]\nscenario = "ways"\nway = ["fin"]\n'
    (harness.root / "scenarios" / "suites.toml").write_text(suites)
    done = harness("scenarios", "check")
    assert done.returncode == 2
    assert "scenarios/suites.toml:2: Invalid budget in the suite few: 'soon': expected a length of time" in done.stderr
    assert "scenarios/suites.toml:5: Unknown value of way: 'fin'. Did you mean fine?" in done.stderr


def test_check_compiles_with_the_oldest_python_that_a_file_claims(harness: Harness, write_scenario: Write) -> None:
    python = "def scenario(bench, size):\n    break\n"
    header = SWEEP.partition("\n\n\n")[0]
    write_scenario("new", f"{header}\n{python}")
    done = harness("scenarios", "check", "new")
    assert done.returncode == 2
    assert "scenarios/new.py:29: This is not valid Python 3.7: 'break' outside loop" in done.stderr


def test_list_as_json_names_scenarios_and_suites(harness: Harness) -> None:
    suites = '[few]\ntitle = "Some"\n[[few.select]]\nscenario = "ways"\n'
    (harness.root / "scenarios" / "suites.toml").write_text(suites)
    path = str(harness.root / "scenarios" / "ways.py")
    assert json.loads(harness("scenarios", "list", "--json").stdout) == {
        "scenarios": [{"name": "ways", "title": "Ways to end", "tags": [], "path": path}],
        "suites": [{"name": "few", "title": "Some"}],
    }


def test_a_name_of_no_scenario_gets_the_nearest(harness: Harness) -> None:
    for command in ("check", "show"):
        done = harness("scenarios", command, "wasy")
        assert done.returncode == 2
        assert "Unknown scenario: 'wasy'. Did you mean ways?" in done.stderr


def test_show_tells_the_header_and_where_the_cells_exist(harness: Harness) -> None:
    told = harness("scenarios", "show", "ways").stdout
    assert "source  https://example.org/question" in told
    assert "speed  fast, slow (fast unless selected)" in told
    assert "new against old: between values of environment" in told
    assert "of the 16 cells with all values" in told
    assert "old          14 of 16  2 [1]" in told
    assert "[1] no release does this. Choose an environment with tensorflow>=99." in told


def test_show_tells_sweeps_process_variables_and_expectations(harness: Harness, write_scenario: Write) -> None:
    write_scenario("sizes", SWEEP)
    told = harness("scenarios", "show", "sizes").stdout
    assert "size   1, 5 values (a sweep)" in told
    assert "FLAGS  unset, 1 (a process variable)" in told
    assert "with flags: between values of FLAGS, positive when 1 is faster than another" in told
    assert "size  '5'  size=5" in told


def test_show_as_json_is_the_header_and_the_environments(harness: Harness, write_scenario: Write) -> None:
    write_scenario("sizes", SWEEP)
    done = harness("scenarios", "show", "*", "--json")
    sizes, ways = json.loads(done.stdout)
    assert sizes["sweeps"] == {"size": {"unit": "values"}}
    assert sizes["cells"] == 3
    assert [(way["name"], way["cells"]) for way in ways["environments"]] == [("old", 14), ("new", 14)]
    assert ways["environments"][0]["not_available"][0]["reason"] == "no release does this"


def test_show_of_a_broken_file_tells_what_is_wrong(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    done = harness("scenarios", "show", "broken")
    assert (done.returncode, done.stdout) == (2, "")
    assert LINES[0] in done.stderr
    assert "ways: Ways to end" in harness("scenarios", "show", "*").stdout


def test_new_writes_what_passes_the_check_and_can_be_selected(harness: Harness) -> None:
    done = harness("scenarios", "new", "matrix_product", "--title", 'A "product" of \\ matrices')
    assert done.returncode == 0, done.stderr
    assert "Created scenarios/matrix_product.py." in done.stdout
    assert harness("scenarios", "check").stdout == "2 scenarios, no problem.\n"
    assert 'matrix_product: A "product" of \\ matrices' in harness("scenarios", "list").stdout
    assert "8 cells are not available" in harness("matrix", "-s", "matrix_product", "--dry-run").stdout


def test_new_writes_what_runs_by_hand(harness: Harness) -> None:
    harness("scenarios", "new", "matrix_product")
    script = harness.root / "scenarios" / "matrix_product.py"
    (harness.root / "scenarios" / "tensorflow.py").write_text(TENSORFLOW)
    done = subprocess.run(
        [sys.executable, str(script), "--seconds", "0.05", "--mode", "function"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "result 42.0" in done.stdout


#: As much of TensorFlow as the skeleton calls.
TENSORFLOW = """
__version__ = "2.0.0"
ones, matmul, reduce_sum = list, lambda one, other: one, lambda values: 42.0
function, executing_eagerly = lambda work: work, lambda: True
class constant:
    __init__ = numpy = lambda *given: None
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ways", "ways.py already exists. Give the scenario another name"),
        ("2fast", "'2fast' is not a valid name for a scenario."),
        ("my-issue", "'my-issue' is not a valid name for a scenario. Call it my_issue."),
        ("My Issue.py", "'My Issue.py' is not a valid name for a scenario. Call it my_issue."),
        ("scenarios", "'scenarios' is a folder or a path, not the name of a scenario. To write it there: harness"),
        ("images/mine.py", "scenarios new mine --directory images"),
        ("class", "'class' is not a valid name for a scenario."),
        ("_hidden", "'_hidden' is not a valid name for a scenario."),
        ("numpy", "A scenario named 'numpy' would hide the module with this name."),
        ("random", "A scenario named 'random' would hide the module with this name."),
    ],
)
def test_new_refuses_what_cannot_be_one(harness: Harness, name: str, told: str) -> None:
    before = (harness.root / "scenarios" / "ways.py").read_text()
    done = harness("scenarios", "new", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr.replace("\n", " ")
    assert (harness.root / "scenarios" / "ways.py").read_text() == before


@pytest.fixture
def elsewhere(harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user, for whom the project is what came with the harness."""
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)
    monkeypatch.setattr("harness.package_data.FOLDER", harness.root)
    folder = tmp_path / "elsewhere"
    (folder / "scenarios").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_new_without_a_name_asks_for_one() -> None:
    with pytest.raises(UsageError, match="The name of the scenario is missing"):
        CliRunner().invoke(app, ["scenarios", "new"], catch_exceptions=False)


@pytest.mark.parametrize("where", [(), ("--directory", ".")])
def test_new_refuses_the_name_of_a_scenario_that_came_with_the_harness(elsewhere: Path, where: tuple[str]) -> None:
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(app, ["scenarios", "new", "ways", *where], catch_exceptions=False)
    assert str(refused.value) == (
        "'ways' is the name of a scenario that comes with harness.\n"
        "Choose another name. Example: harness scenarios new my_ways"
    )
    assert not list(elsewhere.rglob("*.py"))


@pytest.mark.parametrize(
    "command",
    [
        ("matrix", "-e", "old", "--dry-run", "-s", "plain"),
        ("scenarios", "show", "plain"),
        ("scenarios", "check", "plain"),
    ],
)
def test_a_file_without_a_header_is_told_as_that(elsewhere: Path, command: tuple[str]) -> None:
    (elsewhere / "scenarios" / "plain.py").write_text("print('nothing of ours')\n")
    assert "plain" not in CliRunner().invoke(app, ["scenarios", "list"]).output
    ended = CliRunner().invoke(app, command)
    told = f"{ended.output}{ended.exception}"
    assert "plain.py:1: This file has no `# /// script` header (PEP 723)." in told
    assert ended.exit_code == 2 or isinstance(ended.exception, UsageError)


def test_new_writes_into_another_folder_and_says_how_it_is_run_there(harness: Harness, tmp_path: Path) -> None:
    done = harness("scenarios", "new", "mine", "--directory", str(tmp_path))
    assert f"PYTHONPATH={harness.root}/scenarios python {tmp_path}/mine.py" in done.stdout
    assert harness("scenarios", "check", str(tmp_path / "mine.py")).returncode == 0
    assert harness("scenarios", "new", "mine", "--directory", str(tmp_path / "none")).returncode == 4


def test_the_matrix_refuses_a_broken_scenario_alone(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    done = harness.matrix("-s", "broken", "-s", "ways", "-a", "way=fine", "-e", "old", "--rounds", "1")
    assert done.returncode == 1, done.stderr
    assert all(line in done.stderr for line in LINES)
    assert "because their files have problems: broken. The other scenarios are run." in done.stderr
    assert {(launch["cell"]["scenario"], launch["status"]) for launch in harness.launches} == {("ways", "ok")}


def test_where_only_a_broken_scenario_was_selected_nothing_runs(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    done = harness.matrix("-s", "broken")
    assert (done.returncode, done.stdout) == (2, "")
    assert LINES[0] in done.stderr
    assert not (harness.root / "results").exists()


def test_a_broken_scenario_that_was_not_selected_is_not_told(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    done = harness("matrix", "-s", "ways", "-a", "way=fine", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_plan_names_what_it_refuses(harness: Harness, write_scenario: Write) -> None:
    write_scenario("broken", BROKEN)
    suites = '[both]\n[[both.select]]\nscenario = "ways"\n[[both.select]]\nscenario = "broken"\n'
    (harness.root / "scenarios" / "suites.toml").write_text(suites)
    done = harness("matrix", "--suite", "both", "--dry-run", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["refused"] == ["broken"]


def test_a_sweep_is_selected_by_its_values(harness: Harness, write_scenario: Write) -> None:
    write_scenario("sizes", SWEEP)
    done = harness("matrix", "-s", "sizes", "-a", "size=5", "--dry-run", "--json")
    assert len(json.loads(done.stdout)["cells"]) == 4
    done = harness("matrix", "-s", "sizes", "-a", "size=999", "--dry-run")
    assert done.returncode == 2
    assert "Unknown value of the axis size: '999'" in done.stderr


def test_a_suite_says_how_long_it_runs_unless_it_is_typed(harness: Harness) -> None:
    suites = '[short]\nrounds = 3\nbudget = "20m"\n[[short.select]]\nscenario = "ways"\n'
    (harness.root / "scenarios" / "suites.toml").write_text(suites)

    def planned(*typed: str) -> tuple[int, float | None]:
        plan = json.loads(harness("matrix", "--suite", "short", *typed, "--dry-run", "--json").stdout)
        return plan["rounds"], plan["budget_seconds"]

    assert planned() == (3, 1200.0)
    assert planned("--rounds", "2") == (2, None)
    assert planned("--budget", "1m") == (100, 60.0)


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


def test_a_claim_is_shown_and_its_environments_are_checked(harness: Harness, write_scenario: Write) -> None:
    write_scenario("sizes", SWEEP.replace("# ///\n\n", CLAIM + "\n"))
    done = harness("scenarios", "check", "sizes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "scenarios/sizes.py:32: Unknown environment: 'od'. Did you mean old? Valid names: old, new.\n"
    )
    told = harness("scenarios", "show", "sizes").stdout.split("claims of upstream issues\n")[1].splitlines()
    assert told[:2] == [
        "  T#40261: predict takes 100 times as long as a call",
        "    import of new FLAGS=1 vs od FLAGS=, with size=5: 50 to 300 times (Colab); reported as fixed in 2.3",
    ]
    (described,) = json.loads(harness("scenarios", "show", "sizes", "--json").stdout)
    assert described["claims"][0]["issue"] == {"repository": "tensorflow/tensorflow", "number": 40261}


def test_a_skeleton_is_written_from_a_plain_script_and_is_named_after_it(harness):
    (harness.root / "my-script.py").write_text("import math\n# harness: step\nx = math.sqrt(2.0)\n")
    made = harness("scenarios", "new", "--from", "my-script.py")
    assert made.returncode == 0, made.stderr
    assert "Created scenarios/my_script.py." in made.stdout
    assert harness("scenarios", "check", "my_script").returncode == 0
    wrong = harness("scenarios", "new", "other", "--from", "absent.py")
    assert (wrong.returncode, "absent.py cannot be read" in wrong.stderr) == (2, True)

"""The settings of a project: `[tool.harness]` in pyproject.toml, or harness.toml."""

import json

import pytest

from tests.cli.conftest import SHORT, Harness

FILE = """
[project]
name = "mine"

[tool.harness]
environments = ["old", "new"]
scenarios = ["ways"]
budget = "5m"
"""


@pytest.mark.slow
def test_a_value_comes_from_the_command_line_a_variable_or_the_file_and_the_run_is_recorded(harness: Harness):
    (harness.root / "pyproject.toml").write_text(FILE)
    plan = ("matrix", "--backend", "local", "--dry-run", "--json")

    def read_plan(*arguments: str, **environ: str) -> tuple[set[str], float | None, str]:
        process = harness(*plan, *arguments, **environ)
        document = json.loads(process.stdout)
        return ({cell["cell"].split()[1] for cell in document["cells"]}, document["budget_seconds"], process.stderr)

    environments, budget, messages = read_plan()
    assert (environments, budget) == ({"old", "new"}, 300)
    assert "From pyproject.toml: environments old and new; scenarios ways; budget 5m." in messages
    environments, budget, messages = read_plan("--rounds", "2", HARNESS_ENVIRONMENTS="new")
    assert (environments, budget) == ({"new"}, None)
    assert "From environment variables: environments new." in messages
    assert read_plan("-e", "old", HARNESS_ENVIRONMENTS="new")[0] == {"old"}
    # a baseline is one of the file's environments, so it doesn't apply to others
    assert "baseline new" in read_plan(HARNESS_BASELINE="new")[2]
    assert read_plan("-e", "old", HARNESS_BASELINE="new")[0] == {"old"}
    for selection in ("old,new", "*w"):
        assert "baseline new" in read_plan("-e", selection, HARNESS_BASELINE="new")[2]
    assert harness("matrix", *SHORT, "-a", "way=fine", "--rounds", "1").returncode == 0
    assert harness("history", "list").stdout.count("2 points") == 1
    assert list((harness.root / "results" / "history").rglob("*.json"))


@pytest.mark.parametrize("text", ["[tool.harness-other]\nx = 1\n", '# [tool.harness]\n[project]\nname = "mine"\n'])
def test_a_file_without_the_table_has_no_settings(harness: Harness, text: str):
    (harness.root / "pyproject.toml").write_text(text)
    process = harness.call("scenarios", "list")
    assert (process.returncode, process.stderr) == (0, "")


def test_a_wrong_value_is_a_sentence_with_the_line_the_key_and_the_nearest_key(harness: Harness):
    (harness.root / "harness.toml").write_text(
        'enviroments = ["old"]\nbudget = "soon"\ncache_dir = "here"\nrecord = 1\n'
    )
    process = harness("history", "list")
    assert process.returncode == 2
    lines = process.stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"harness.toml:{number}" for number in range(1, 5)]
    assert "Did you mean `environments`?" in lines[0]
    assert "such as 90s" in lines[1]
    assert "Set the environment variable." in lines[2]

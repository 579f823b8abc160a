from dataclasses import replace
from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.catalog.scenarios import (
    find_files_of,
    find_scenario_files,
    find_scenarios,
    load_scenario,
    load_suites,
    read_kit_files,
)
from harness.files import hash_files
from harness.model.environment import Device
from harness.model.errors import FileError, UsageError
from harness.model.scenario import SuitePart
from harness.plan.selection import Catalog, Selection, select
from harness.plan.settings import add_setting_axes


def test_part_a_is_there_whole(project: Project) -> None:
    scenario = find_scenarios(project).scenarios["keras_step"]
    points = scenario.combinations(scenario.axes)
    assert len({(axes["model"], axes["data"]) for axes in points}) == 8
    assert {axes["call"] for axes in points} == {"fit", "fit_epoch", "train_on_batch"}
    assert {axes["api"] for axes in points} == {"keras", "tf.keras"}
    assert {axes["mode"] for axes in points} == {"graph", "eager", "op_by_op"}
    assert {axes["inputs"] for axes in points} == {"numpy", "dataset"}


def test_every_suite_selects_cells_that_exist(project: Project) -> None:
    environments = list(load_environments(project))
    found = find_scenarios(project)
    assert not found.broken
    catalog = Catalog(environments=environments, scenarios=found.scenarios, suites=load_suites(project))
    assert {"headline", "releases"} <= set(catalog.suites)
    for suite in catalog.suites:
        selection = Selection(suite=suite)
        assert select(selection, add_setting_axes(selection, catalog), Device.CPU)[0]


def test_the_kit_goes_in_beside_the_script(project: Project) -> None:
    assert {"kit/__init__.py", "kit/__main__.py"} <= set(read_kit_files(project))


def test_files_keep_their_folders(project: Project, tmp_path: Path) -> None:
    for name in ("mine.py", "base/mine.py", "head/mine.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    scenario = next(iter(find_scenarios(project).scenarios.values()))
    scenario = replace(scenario, path=tmp_path / "mine.py", files=["base/mine.py", "head/mine.py"])
    assert find_files_of(scenario, {"kit/a.py": b""}) == {
        "mine.py": b"mine.py",
        "base/mine.py": b"base/mine.py",
        "head/mine.py": b"head/mine.py",
        "kit/a.py": b"",
    }


@pytest.mark.parametrize("name", ["kit/job.json", "kit/__init__.py", "./kit/data.csv", "kit"])
def test_a_file_in_the_kits_folder_is_refused(project: Project, tmp_path: Path, name: str) -> None:
    scenario = replace(next(iter(find_scenarios(project).scenarios.values())), path=tmp_path / "mine.py", files=[name])
    with pytest.raises(UsageError, match=f"can't get the file '{name}', because harness has its own folder kit"):
        find_files_of(scenario, {})


def test_a_fingerprint_tells_names_and_contents_apart() -> None:
    assert hash_files({"a": b"b"}) != hash_files({"ab": b""})
    assert hash_files({"a": b"1", "b": b"2"}) == hash_files({"b": b"2", "a": b"1"})


def test_a_scenario_that_cannot_be_read_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_scenario(tmp_path / "none.py")


def test_a_users_scenarios_stand_beside_those_of_the_harness(project: Project, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("# /// script\n# ///\n")
    (tmp_path / "another_tools.py").write_text("print('nothing of ours')\n")
    both = find_scenario_files(replace(project, own=tmp_path))
    assert set(both) - set(find_scenario_files(project)) == {tmp_path / "mine.py"}
    assert both == sorted(both, key=lambda path: path.stem)
    assert find_scenario_files(replace(project, own=tmp_path / "none")) == find_scenario_files(project)


def test_a_users_scenario_with_the_name_of_one_of_ours_is_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "keras_step.py").write_text("# /// script\n# ///\n")
    with pytest.raises(UsageError, match="already has a scenario keras_step"):
        find_scenario_files(replace(project, own=tmp_path))


def test_scenarios_of_upstream_issues_lie_a_folder_below_and_are_found_like_the_others(tmp_path: Path) -> None:
    upstream = tmp_path / "scenarios" / "upstream"
    upstream.mkdir(parents=True)
    for path in (upstream / "leaks.py", tmp_path / "scenarios" / "steps.py"):
        path.write_text("# /// script\n# [tool.harness]\n# ///\ndef scenario(bench): pass\n")
    found = find_scenarios(Project(tmp_path))
    assert list(found.scenarios) == ["leaks", "steps"]
    assert found.scenarios["leaks"].path == upstream / "leaks.py"


def test_two_of_ours_may_not_have_one_name(tmp_path: Path) -> None:
    upstream = tmp_path / "scenarios" / "upstream"
    upstream.mkdir(parents=True)
    for path in (upstream / "steps.py", tmp_path / "scenarios" / "steps.py"):
        path.write_text("")
    with pytest.raises(FileError, match=r"upstream/steps.py: .*scenarios/steps.py has the same name"):
        find_scenario_files(Project(tmp_path))


SUITES = """\
[quick]
title = "One cell"
environments = ["tf1.14", "tf2.*"]
rounds = 3
budget = "20m"
measure = "400ms"

[quick.instead]
"tf1.14" = ["tf1.15-ngc", "tf2.*"]

[[quick.select]]
scenario = "step"
mode = ["graph"]
size = [1, 32.0]
environment = ["tf1.14"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scenarios").mkdir()
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "scenarios" / "suites.toml"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        load_suites(Project(folder))
    assert all(problem.path == path for problem in caught.value.problems)
    return [f"{problem.line}: {problem.text} {problem.fix}" for problem in caught.value.problems]


def test_a_suite_is_what_is_selected_where_and_for_how_long(folder: Path) -> None:
    (folder / "scenarios" / "suites.toml").write_text(SUITES)
    (suite,) = load_suites(Project(folder)).values()
    assert suite.parts == [SuitePart("step", {"mode": ["graph"], "size": ["1", "32"]}, ["tf1.14"])]
    assert (suite.title, suite.rounds, suite.budget) == ("One cell", 3, "20m")
    assert (suite.warmup, suite.measure) == ("", "400ms")
    assert suite.instead == {"tf1.14": ["tf1.15-ngc", "tf2.*"]}


def test_a_project_may_have_no_suites(folder: Path) -> None:
    assert load_suites(Project(folder)) == {}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[quick]", "[quick", "1: This is not valid TOML:"),
        ("title", "titel", "2: `quick.titel` is not a known key. Did you mean `title`?"),
        ('"One cell"', "1", '2: Invalid `quick.title` 1: expected a valid string. Example: title = "1"'),
        (
            "rounds = 3",
            "rounds = true",
            "4: Invalid `quick.rounds` true: expected a valid integer. Example: rounds = 3",
        ),
        ("rounds = 3", "rounds = 0", "4: Invalid `quick.rounds` 0: expected a number above 0. Example: rounds = 3"),
        ('"20m"', "20", '5: Invalid `quick.budget` 20: expected a valid string. Example: budget = "20"'),
        (
            '["tf1.14", "tf2.*"]',
            '"tf1.14"',
            "3: Invalid `quick.environments` 'tf1.14': expected a valid list. Example: environments = [\"one\",",
        ),
        (
            '["tf1.15-ngc", "tf2.*"]',
            '"tf2.*"',
            "9: Invalid `quick.instead.tf1.14` 'tf2.*': expected a valid list. Example: \"tf1.14\" =",
        ),
        (
            '"tf1.14" =',
            "tf1.14 =",
            '9: Invalid `quick.instead.tf1`: expected a valid list. Example: "tf1.14" = ["tf1.15-ngc", "tf2.*"],',
        ),
        (
            '[quick.instead]\n"tf1.14" =',
            "instead =",
            '8: Invalid `quick.instead`: expected a table. Example: "tf1.14" = ["tf1.15-ngc", "tf2.*"], quoted',
        ),
        ('scenario = "step"', "", '11: Missing `quick.select.scenario`. Example: scenario = "keras_step"'),
        (
            '["graph"]',
            '"graph"',
            '13: Invalid `quick.select.mode` \'graph\': expected a valid list. Example: mode = ["one", "other"]',
        ),
        ("[quick]", "other = 1\n[quick]", "1: Invalid `other` 1: expected a table. Example: [other]"),
    ],
)
def test_what_is_wrong_with_a_suite_is_told_with_its_line(folder: Path, old: str, new: str, told: str) -> None:
    assert old in SUITES
    assert problems(folder, SUITES.replace(old, new, 1))[0].startswith(told)


def test_a_suite_of_nothing_is_told(folder: Path) -> None:
    assert problems(folder, SUITES.partition("[[")[0])[0].startswith(
        "1: Missing `quick.select`. Example: [[quick.select]] with"
    )

from dataclasses import replace
from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.catalog.scenarios import find_scenarios, fingerprint, kit_files, load_scenario, load_suites, scenario_files
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.plan.selection import Catalog, Selection, select


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
        assert select(Selection(suite=suite), catalog, Device.CPU)[0]


def test_the_kit_goes_in_beside_the_script(project: Project) -> None:
    assert {"kit/__init__.py", "kit/__main__.py"} <= set(kit_files(project))


def test_a_fingerprint_tells_names_and_contents_apart() -> None:
    assert fingerprint({"a": b"b"}) != fingerprint({"ab": b""})
    assert fingerprint({"a": b"1", "b": b"2"}) == fingerprint({"b": b"2", "a": b"1"})


def test_a_scenario_that_cannot_be_read_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_scenario(tmp_path / "none.py")


def test_a_users_scenarios_stand_beside_those_of_the_harness(project: Project, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("# /// script\n# ///\n")
    (tmp_path / "another_tools.py").write_text("print('nothing of ours')\n")
    both = scenario_files(replace(project, own=tmp_path))
    assert set(both) - set(scenario_files(project)) == {tmp_path / "mine.py"}
    assert both == sorted(both, key=lambda path: path.stem)
    assert scenario_files(replace(project, own=tmp_path / "none")) == scenario_files(project)


def test_a_users_scenario_with_the_name_of_one_of_ours_is_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "keras_step.py").write_text("# /// script\n# ///\n")
    with pytest.raises(UsageError, match="has a scenario keras_step of its own"):
        scenario_files(replace(project, own=tmp_path))

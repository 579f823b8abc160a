from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.catalog.scenarios import fingerprint, kit_files, load_scenario, load_scenarios
from harness.catalog.suites import load_suites
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.plan.selection import Catalog, Selection, select


def test_part_a_is_there_whole(project: Project) -> None:
    scenario = load_scenarios(project)["keras_step"]
    points = scenario.combinations(scenario.axes)
    assert len({(axes["model"], axes["data"]) for axes in points}) == 8
    assert {axes["call"] for axes in points} == {"fit", "fit_epoch", "train_on_batch"}
    assert {axes["api"] for axes in points} == {"keras", "tf.keras"}
    assert {axes["mode"] for axes in points} == {"graph", "eager", "op_by_op"}
    assert {axes["inputs"] for axes in points} == {"numpy", "dataset"}


def test_every_suite_selects_cells_that_exist(project: Project) -> None:
    environments = list(load_environments(project))
    catalog = Catalog(environments=environments, scenarios=load_scenarios(project), suites=load_suites(project))
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

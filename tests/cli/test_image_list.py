import re

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.cli.image_list import rows, table
from harness.model.backend import ImageState, KeptImage
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError


def nothing(requirements):
    """An engine without images."""
    return [KeptImage(ImageState.NOT_BUILT) for _ in requirements]


@pytest.fixture
def environments(project: Project):
    return list(load_environments(project).values())


def test_what_is_listed_of_a_release(project: Project, environments) -> None:
    listed = {row["name"]: row for row in rows(project, environments, nothing)}
    assert list(listed) == [environment.name for environment in environments]
    assert listed["tf2.15"]["runs_on"] == "5.0-8.9, compiled 9.0"
    assert listed["tf2.15"]["gpu_code"] == ["sm_50", "sm_60", "sm_70", "sm_75", "compute_80"]
    assert (listed["tf2.0"]["keras"], listed["tf2.0"]["numpy"], listed["tf2.0"]["cuda"]) == ("2.3.1", "1.17.3", "10.0")
    assert (listed["tf2.3"]["keras"], listed["tf2.6"]["keras"]) == ("its own", "2.6.0")
    assert listed["tf2.0"]["cpu"] == listed["tf2.0"]["gpu"] == {"state": "not built"}
    assert listed["tf1.15-ngc"]["cpu"] is None


def test_an_image_that_is_there_has_its_size_and_its_id(project: Project, environments) -> None:
    def ask(requirements):
        image = KeptImage(ImageState.OUTDATED, "sha256:0", 5)
        return [image if each.device is Device.CPU else KeptImage(ImageState.NOT_BUILT) for each in requirements]

    (row,) = rows(project, [each for each in environments if each.name == "tf2.0"], ask)
    assert row["cpu"] == {"state": "outdated", "size_bytes": 5, "id": "sha256:0"}


def test_without_an_engine_the_reason_goes_to_stderr(project: Project, environments, capsys) -> None:
    def refuse(requirements):
        raise CannotRunHereError("No engine.")

    assert {row["name"]: row["cpu"] for row in rows(project, environments, refuse)}["tf2.0"] == {"state": "no engine"}
    assert capsys.readouterr().err == "No engine.\n"


def test_the_table_of_the_whole_catalogue_fits_a_wide_terminal(project: Project, environments) -> None:
    headings, *lines = table(rows(project, environments, nothing))
    assert headings.startswith("name ")
    assert len(lines) == len(environments)
    assert max(map(len, [headings, *lines])) <= 125


def test_the_table_shows_what_is_built_by_its_size(project: Project, environments) -> None:
    (row,) = rows(project, environments[:1], nothing)
    built = {"state": "built", "size_bytes": 1_856_000_000, "id": "sha256:0"}
    _, line = table([{**row, "cpu": built, "gpu": {**built, "state": "outdated"}}])
    assert re.search(r"  1\.86 GB +1\.86 GB, outdated  ", line)

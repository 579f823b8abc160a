"""`harness images`, for the parts that need no engine; tests/docker has the others."""

import json
import re
from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.locks import list_inputs, lock_file, resolve
from harness.catalog.project import Project
from harness.cli.images import format_table
from harness.model.backend import ImageState, KeptImage
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError
from harness.session.images import list_rows
from tests.cli.conftest import NOWHERE, Harness
from tests.lacking import python


def test_environments_are_listed_also_without_an_engine(harness: Harness) -> None:
    done = harness("images", "list", "--json", **NOWHERE)
    assert done.returncode == 0
    assert [(row["name"], row["cpu"], row["gpu"]) for row in json.loads(done.stdout)] == [
        ("old", {"state": "no engine"}, None),
        ("new", {"state": "no engine"}, None),
    ]
    assert done.stderr.startswith("Docker Engine does not answer")


def test_an_environment_without_a_lock_is_listed(harness: Harness) -> None:
    (harness.root / "images" / "locks" / "old-cpu.txt").unlink()
    done = harness("images", "list", "old", **NOWHERE)
    assert done.stdout.splitlines()[1].split()[:2] == ["old", "1.0.0"]
    assert "no lock" in done.stdout


def test_the_table_has_a_line_for_each_environment(harness: Harness) -> None:
    (harness.root / "images" / "locks" / "new-cpu.txt").write_text("keras==3.14.0\nnumpy==1.26.4\n")
    headings, old, new = harness("images", "list", **NOWHERE).stdout.splitlines()
    assert headings.split("  ")[0] == "name"
    assert old.split() == ["old", "1.0.0", "its", "own", "3.11", "-", "-", "-", "-", "no", "engine", "-", "-"]
    assert new.split()[:5] == ["new", "2.0.0", "3.14.0", "3.11", "1.26.4"]


def test_an_environment_without_an_image_for_the_device_is_nothing_selected(harness: Harness) -> None:
    done = harness("images", "build", "old", "--device", "gpu")
    assert done.returncode == 3
    assert done.stderr == "harness: There is no gpu image of old.\nUse --device cpu.\n"


def test_pushing_without_a_registry_is_told_before_anything_is_built(harness: Harness) -> None:
    done = harness("images", "build", "--push", REGISTRY="", **NOWHERE)
    assert done.returncode == 2
    assert "REGISTRY is not set" in done.stderr


def test_an_unknown_environment_is_a_usage_error(harness: Harness) -> None:
    done = harness("images", "verify", "tf3")
    assert done.returncode == 2
    assert "Valid names: old, new." in done.stderr


def test_building_without_an_engine_is_exit_4(harness: Harness) -> None:
    done = harness("images", "build", **NOWHERE)
    assert done.returncode == 4
    assert "Docker Engine does not answer" in done.stderr


def test_the_cpu_package_is_asked_for_from_its_first_release_on(project: Project) -> None:
    environments = load_environments(project)
    assert list_inputs(environments["tf2.0"], Device.CPU)[:2] == ["tensorflow==2.0.0", "keras==2.3.1"]
    assert list_inputs(environments["tf2.15"], Device.CPU)[0] == "tensorflow-cpu==2.15.1"


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *((name, Device.CPU) for name in ("tf1.14", "tf2.0", "tf2.1", "tf2.8", "tf2.15", "tf2.16", "tf2.21")),
        # CUDA out of an image, out of packages that are younger than the release, and as the release itself names it
        *((name, Device.GPU) for name in ("tf1.15-ngc", "tf2.3", "tf2.5", "tf2.21")),
    ],
)
def test_a_lock_made_again_elsewhere_is_the_same(
    project: Project, name: str, device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = load_environments(project)[name]
    python(environment.python)
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.chdir(tmp_path)
    assert resolve(environment, device) == lock_file(project, environment, device).read_text()


def test_what_does_not_resolve_gets_the_resolvers_own_words(project: Project) -> None:
    from dataclasses import replace

    environment = replace(load_environments(project)["tf2.15"], tensorflow="2.15.99")
    with pytest.raises(CannotRunHereError, match=r"tf2\.15 can't be resolved:(.|\n)*tensorflow-cpu==2\.15\.99"):
        resolve(environment, Device.CPU)


def nothing(requirements):
    """An engine without images."""
    return [KeptImage(ImageState.NOT_BUILT) for _ in requirements]


@pytest.fixture
def environments(project: Project):
    return list(load_environments(project).values())


def test_what_is_listed_of_a_release(project: Project, environments) -> None:
    listed = {row["name"]: row for row in list_rows(project, environments, nothing, print)}
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
        return [
            image if requirement.device is Device.CPU else KeptImage(ImageState.NOT_BUILT)
            for requirement in requirements
        ]

    (row,) = list_rows(
        project, [environment for environment in environments if environment.name == "tf2.0"], ask, print
    )
    assert row["cpu"] == {"state": "outdated", "size_bytes": 5, "id": "sha256:0"}


def test_the_table_of_the_whole_catalogue_fits_a_wide_terminal(project: Project, environments) -> None:
    headings, *lines = format_table(list_rows(project, environments, nothing, print))
    assert headings.startswith("name ")
    assert len(lines) == len(environments)
    assert max(map(len, [headings, *lines])) <= 130


def test_the_table_shows_what_is_built_by_its_size(project: Project, environments) -> None:
    (row,) = list_rows(project, environments[:1], nothing, print)
    built = {"state": "built", "size_bytes": 1_856_000_000, "id": "sha256:0"}
    _, line = format_table([{**row, "cpu": built, "gpu": {**built, "state": "outdated"}}])
    assert re.search(r"  1\.86 GB +1\.86 GB, outdated  ", line)

"""`harness images`, for the parts that need no engine; tests/docker has the others."""

import json
import re
from collections.abc import Sequence

import pytest

from harness.cli.images import format_table
from harness.environments.catalog import load_environments
from harness.environments.locks import lock_file, resolve
from harness.model.backend import ImageState, KeptImage
from harness.model.environment import Device, Environment, Requirement
from harness.project import Project
from harness.session.images import list_rows
from tests.cli.conftest import NOWHERE
from tests.lacking import for_a_campaign, python


def test_environments_are_listed_also_without_an_engine_and_without_a_lock(harness):
    process = harness("images", "list", "--json", **NOWHERE)
    assert process.returncode == 0
    assert [(row["name"], row["cpu"], row["gpu"]) for row in json.loads(process.stdout)] == [
        ("old", {"state": "no engine"}, None),
        ("new", {"state": "no engine"}, None),
    ]
    assert process.stderr
    locks = harness.root / "images" / "locks"
    (locks / "new-cpu.txt").write_text("keras==3.14.0\nnumpy==1.26.4\n")
    headings, old, new = harness.call("images", "list", **NOWHERE).stdout.splitlines()
    assert headings.split("  ")[0] == "name"
    assert old.split() == ["old", "1.0.0", "its", "own", "3.11", "-", "-", "no", "engine", "-", "-", "-", "-"]
    assert new.split()[:5] == ["new", "2.0.0", "3.14.0", "3.11", "1.26.4"]
    (locks / "old-cpu.txt").unlink()
    line = harness.call("images", "list", "old", **NOWHERE).stdout.splitlines()[1]
    assert (line.split()[:2], "no lock" in line) == (["old", "1.0.0"], True)


def resolve_again(project: Project, names: Sequence[tuple[str, Device]]) -> None:
    for name, device in names:
        environment = load_environments(project)[name]
        python(environment.python)
        assert resolve(project, environment, device) == lock_file(project, environment, device).read_text(), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        # CUDA as the release itself names it
        [("tf2.15", Device.CPU), ("tf2.21", Device.GPU)],
        *for_a_campaign(
            [
                *((name, Device.CPU) for name in ("tf1.14", "tf2.0", "tf2.1", "tf2.8", "tf2.16", "tf2.21")),
                # CUDA out of an image, and out of packages that are younger than the release
                *((name, Device.GPU) for name in ("tf1.15-ngc", "tf2.3", "tf2.5")),
            ]
        ),
    ],
    ids=["some", "others"],
)
def test_a_lock_made_again_elsewhere_is_the_same(project, names, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.chdir(tmp_path)
    resolve_again(project, names)


def find_none(requirements: Sequence[Requirement]) -> list[KeptImage]:
    """An engine without images."""
    return [KeptImage(ImageState.NOT_BUILT) for _ in requirements]


@pytest.fixture
def environments(project: Project) -> list[Environment]:
    return list(load_environments(project).values())


def test_what_is_listed_of_a_release(project, environments):
    rows = {row["name"]: row for row in list_rows(project, environments, find_none, print)}
    assert list(rows) == [environment.name for environment in environments]
    assert rows["tf2.15"]["runs_on"] == "5.0-8.9, compiled 9.0"
    assert rows["tf2.15"]["gpu_code"] == ["sm_50", "sm_60", "sm_70", "sm_75", "compute_80"]
    assert (rows["tf2.0"]["keras"], rows["tf2.0"]["numpy"], rows["tf2.0"]["cuda"]) == ("2.3.1", "1.17.3", "10.0")
    assert (rows["tf2.3"]["keras"], rows["tf2.6"]["keras"]) == ("its own", "2.6.0")
    assert rows["tf2.0"]["cpu"] == rows["tf2.0"]["gpu"] == {"state": "not built"}
    assert rows["tf1.15-ngc"]["cpu"] is None
    headings, *lines = format_table(list(rows.values()))
    assert headings.startswith("name ")
    assert len(lines) == len(environments)
    assert max(map(len, [headings, *lines])) <= 130, "it fits a wide terminal"


def test_an_image_that_is_there_has_its_size_and_its_id(project, environments):
    def find(requirements: Sequence[Requirement]) -> list[KeptImage]:
        states = {Device.CPU: ImageState.BUILT, Device.GPU: ImageState.OUTDATED}
        return [KeptImage(states[requirement.device], "sha256:0", 1_856_000_000) for requirement in requirements]

    (row,) = list_rows(project, [entry for entry in environments if entry.name == "tf2.0"], find, print)
    assert row["gpu"] == {"state": "outdated", "size_bytes": 1_856_000_000, "id": "sha256:0"}
    _, line = format_table([row])
    assert re.search(r"  1\.86 GB +1\.86 GB, outdated  ", line)

"""A run whose images lack, in real containers: it begins with what is there."""

import secrets
import shutil
from pathlib import Path

import pytest

from harness import session
from harness.backends.docker.backend import DockerBackend
from harness.model.launch import BESIDE_BUILDS, Status
from tests.cli.conftest import SCENARIO

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.docker


def test_the_image_that_is_there_is_piloted_while_the_other_is_built(project, monkeypatch):
    there = project.add(f"test-{secrets.token_hex(4)}", "3.11").environment.name
    DockerBackend(project.root, "test").prepare(project.requirements, lambda _: None)
    lacking = project.add(f"test-{secrets.token_hex(4)}", "3.11", lock="# nothing: built in the run\n").environment.name
    shutil.copytree(ROOT / "scenarios" / "kit", project.root / "scenarios" / "kit")
    (project.root / "scenarios" / "ways.py").write_text(SCENARIO)
    monkeypatch.setenv("HARNESS_PROJECT", str(project.root))
    monkeypatch.chdir(project.root)
    asked = session.Request(
        scenarios=["ways"],
        axes={"way": ["fine"]},
        environments=[there, lacking],
        backend="docker",
        rounds=2,
        warmup=0.0,
        measure=0.01,
    )
    ended = session.run(session.plan(asked))
    launches = session.read(ended.folder).launches
    assert {launch.status for launch in launches} == {Status.OK}
    early = [launch.cell.environment for launch in launches if launch.resources.get(BESIDE_BUILDS)]
    assert early == [there]
    assert {launch.cell.environment for launch in launches if launch.round} == {there, lacking}
    assert launches[0].image == ended.results.run.images[there]

"""A pack of a real package and of real base images, and a build from it that has no network."""

import json
import re
import secrets

import pytest
from typer.testing import CliRunner

from harness.backends.docker.backend import DockerBackend
from harness.cli import app
from harness.model.errors import CannotRunHereError

pytestmark = pytest.mark.docker

#: A small one without dependencies, and with a wheel.
LOCK = """\
termcolor==2.0.1 \\
    --hash=sha256:7e597f9de8e001a3208c4132938597413b9da45382b6f1d150cff8d062b7aaa3
"""


@pytest.fixture
def packed(project, tmp_path_factory, monkeypatch):
    """A project whose builds have no network, its environment, and a pack for that."""
    requirement = project.add(f"test-{secrets.token_hex(4)}", "3.11", LOCK)
    (project.root / "scenarios").mkdir()
    recipe = project.root / "images" / "cpu.Dockerfile"
    text = recipe.read_text()
    assert "RUN --mount" in text
    recipe.write_text(text.replace("RUN --mount", "RUN --network=none --mount"))
    monkeypatch.setenv("HARNESS_PROJECT", str(project.root))
    folder = tmp_path_factory.mktemp("pack")
    done = CliRunner().invoke(app, ["images", "pack", str(folder), requirement.environment.name])
    assert done.exit_code == 0, done.output
    return project, requirement, folder


def test_an_image_is_built_from_a_pack_without_a_network(packed, monkeypatch):
    project, requirement, folder = packed
    backend = DockerBackend(project.root, "test")
    monkeypatch.delenv("HARNESS_WHEELS", raising=False)
    with pytest.raises(CannotRunHereError, match="could not be built"):
        backend.prepare([requirement], lambda _: None)

    done = CliRunner().invoke(app, ["images", "unpack", str(folder)])
    assert done.exit_code == 0, done.output
    (wheels,) = re.findall(r"export HARNESS_WHEELS=(\S+)", done.output)
    monkeypatch.setenv("HARNESS_WHEELS", wheels)
    prepared = backend.prepare([requirement], lambda _: None)
    assert prepared.images[requirement.environment.name].startswith("sha256:")
    found = backend.verify(requirement)
    assert not found.missing
    assert found.extra == {"termcolor": "2.0.1"}


def test_the_base_images_are_in_the_pack_and_are_not_saved_twice(packed):
    _, requirement, folder = packed
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    (base,) = manifest["images"].values()
    assert base["reference"] == "python:3.11-slim-bookworm"
    again = CliRunner().invoke(app, ["images", "pack", str(folder), requirement.environment.name])
    assert again.exit_code == 0
    assert "saved" not in again.output
    assert json.loads((folder / "MANIFEST.json").read_text()) == manifest

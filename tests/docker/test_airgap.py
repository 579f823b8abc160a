"""A pack of a real package and of real base images, and a build from it that has no network."""

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


def run_harness(*arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_an_image_is_built_from_a_pack_without_a_network_and_bases_are_saved_once(
    project, tmp_path_factory, monkeypatch
):
    requirement = project.add(f"test-{secrets.token_hex(4)}", "3.11", LOCK)
    name, folder = requirement.environment.name, tmp_path_factory.mktemp("pack")
    (project.root / "scenarios").mkdir()
    recipe = project.root / "images" / "cpu.Dockerfile"
    text = recipe.read_text()
    assert "RUN --mount" in text
    recipe.write_text(text.replace("RUN --mount", "RUN --network=none --mount"))
    monkeypatch.setenv("HARNESS_PROJECT", str(project.root))
    monkeypatch.delenv("HARNESS_WHEELS", raising=False)
    run_harness("images", "pack", str(folder), name)
    (image,) = (folder / "images").iterdir()
    assert image.name == "python-3.11-slim-bookworm.tar"
    assert "saved" not in run_harness("images", "pack", str(folder), name)

    backend = DockerBackend(project.root, "test")
    with pytest.raises(CannotRunHereError):
        backend.prepare([requirement], lambda _: None)
    printed = run_harness("images", "unpack", str(folder))
    assert "loaded python:3.11-slim-bookworm" in printed
    (wheels,) = re.findall(r"export HARNESS_WHEELS=(\S+)", printed)
    monkeypatch.setenv("HARNESS_WHEELS", wheels)
    assert backend.prepare([requirement], lambda _: None).images[name].startswith("sha256:")
    verification = backend.verify(requirement)
    assert (verification.missing, verification.extra) == ({}, {"termcolor": "2.0.1"})

"""What a report is told of the engine, and by which of its ways; launches need a real one (tests/docker)."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.gpus import GpuAccess, GpuWay
from harness.model.backend import BackendFacts


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> DockerBackend:
    monkeypatch.delenv("REGISTRY", raising=False)
    made: Any = DockerBackend(Path(), "run")
    made.engine = SimpleNamespace(facts=BackendFacts("docker", engine="Docker Engine 28"))
    made.access = GpuAccess(GpuWay.CDI, ("0",))
    return made  # type: ignore[no-any-return]


def test_the_registry_that_images_have_in_their_names_is_told(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"name": "docker", "engine": "Docker Engine 28"}
    assert backend.facts().told() == told
    monkeypatch.setenv("REGISTRY", "ghcr.io/x/")
    assert backend.facts().told() == {**told, "registry": "ghcr.io/x/"}


def test_how_launches_got_their_gpus_is_told(backend: DockerBackend) -> None:
    assert backend.check_gpus(["0"]) == "CDI"
    assert backend.facts().gpus_by == "CDI"

"""What a report is told of the engine, and by which of its ways; launches need a real one (tests/docker)."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends.docker import DockerBackend
from harness.backends.gpus import Access, Way


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> DockerBackend:
    monkeypatch.delenv("REGISTRY", raising=False)
    made: Any = DockerBackend(Path(), "run")
    made.engine = SimpleNamespace(facts={"engine": "Docker Engine 28"})
    made.access = Access(Way.CDI, ("0",))
    return made  # type: ignore[no-any-return]


def test_the_registry_that_images_have_in_their_names_is_told(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert backend.facts() == {"engine": "Docker Engine 28"}
    monkeypatch.setenv("REGISTRY", "ghcr.io/x/")
    assert backend.facts() == {"engine": "Docker Engine 28", "registry": "ghcr.io/x/"}


def test_how_launches_got_their_gpus_is_told(backend: DockerBackend) -> None:
    backend.check_gpus(["0"])
    assert backend.facts()["gpus_by"] == "CDI"

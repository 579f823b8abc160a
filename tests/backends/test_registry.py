"""The registry: what every entry keeps, and which backend is chosen."""

from pathlib import Path
from typing import Any

import pytest

from harness.backends import registry
from harness.backends.protocol import RegisteredBackend
from harness.backends.registry import ENTRIES, BackendEntry
from harness.model.backend import GpuWay
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import GpuHost


class Fake:
    """A backend that is there, or not, and has GPUs, or not."""

    there, has_gpus, has_tools = True, True, True
    via: Any = None

    def __init__(self, root: Path, run: str) -> None:
        pass

    def check(self) -> str:
        if not self.there:
            raise CannotRunHereError("No engine answers at all.\nTwo lines.", "Start it.")
        return f"the {type(self).__name__.lower()}"

    def check_tools(self) -> None:
        if not self.has_tools:
            raise CannotRunHereError("It has no tool.")

    def check_gpus(self, wanted: Any, via: Any = None) -> None:
        self.check()
        if not self.has_gpus:
            raise CannotRunHereError("It has no GPU.", "Buy one.")
        type(self).via = via


class Ship(Fake):
    gpu_host = GpuHost(absent="ship")


class Raft(Fake):
    gpu_host = GpuHost(absent="raft")


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that chooses of two backends, the first in containers, and gives the class that was taken and why."""
    here = f"{__name__}:"
    entries = (
        BackendEntry("ship", "Ship", f"{here}Ship", in_containers=True),
        BackendEntry("raft", "Raft", f"{here}Raft"),
    )
    monkeypatch.setattr(registry, "ENTRIES", entries)

    def choose(name: str = registry.AUTO, **options: Any) -> tuple[type, str]:
        backend, why = registry.choose(name, Path(), "run", **options)
        return type(backend), why

    return choose


def test_a_backend_is_chosen_by_what_answers_and_what_was_requested(choose, monkeypatch, snapshot):
    """An untrusted script runs in containers alone, and images may be there where none can be made."""
    cases: dict[str, dict[str, Any]] = {
        "auto": {},
        "with GPUs": {"gpus": ["0", "1"]},
        "untrusted": {"untrusted": {"script": "a file from the web"}},
        "ship": {"name": "ship"},
        "raft": {"name": "raft"},
        "raft of a run": {"name": "raft", "is_resumed": True},
        "ship of a run": {"name": "ship", "is_resumed": True},
        "raft, untrusted": {"name": "raft", "untrusted": {"one": "a file from the web", "two": "a pull request"}},
        "unknown": {"name": "submarine"},
    }
    choices: dict[str, str] = {}

    def choose_each(state: str) -> None:
        for case, options in cases.items():
            try:
                backend, why = choose(**options)
                choices[f"{state}: {case}"] = f"{backend.__name__}: {why}"
            except (CannotRunHereError, UsageError) as error:
                choices[f"{state}: {case}"] = f"{type(error).__name__}: {error}"

    choose_each("all")
    for attribute in ("has_tools", "has_gpus", "there"):
        with monkeypatch.context() as patch:
            patch.setattr(Ship, attribute, False)
            choose_each(f"no {attribute}")
    assert choices == snapshot


def test_the_way_of_gpus_that_was_requested_is_handed_on(choose):
    choose(gpus=["0"])
    assert Ship.via is None
    choose(gpus=["0"], via=GpuWay.CDI)
    assert Ship.via is GpuWay.CDI


@pytest.mark.usefixtures("choose")
def test_a_plan_knows_the_gpus_of_the_backend_that_will_be_chosen(monkeypatch):
    def find(name: str) -> str:
        return registry.find_gpu_host(name, Path()).absent

    assert (find("auto"), find("raft")) == ("ship", "raft")
    for attribute in ("there", "has_tools"):
        with monkeypatch.context() as patch:
            patch.setattr(Ship, attribute, False)
            assert find("auto") == "raft"


def test_every_entry_keeps_the_protocol_and_is_a_choice(tmp_path, monkeypatch):
    """Nothing is asked of an engine to make one."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    for entry in ENTRIES:
        backend = entry.open(tmp_path, "run")
        assert RegisteredBackend in type(backend).__mro__
        assert backend.name == entry.name
        assert backend.leftovers
    assert ("auto", *(entry.name for entry in ENTRIES)) == registry.CHOICES
    assert registry.check_backend("local") == "local"
    with pytest.raises(UsageError, match="auto, docker, "):
        registry.check_backend("dokcer")
    with pytest.raises(UsageError):
        registry.choose_backend("dokcer", tmp_path)

"""The registry: what every entry keeps, and which backend is chosen."""

from pathlib import Path
from typing import Any

import pytest

from harness.backends import registry
from harness.backends.protocol import ImageBackend, RegisteredBackend
from harness.backends.registry import ENTRIES, BackendEntry, UntrustedError
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
    made = (
        BackendEntry("ship", "Ship", f"{here}Ship", in_containers=True),
        BackendEntry("raft", "Raft", f"{here}Raft"),
    )
    monkeypatch.setattr(registry, "ENTRIES", made)

    def choose(name: str = registry.AUTO, **asked: Any) -> tuple[type, str]:
        backend, why = registry.choose(name, Path(), "run", **asked)
        return type(backend), why

    return choose


@pytest.fixture
def no_ship(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ship, "there", False)


def test_auto_takes_the_first_that_answers(choose: Any) -> None:
    assert choose() == (Ship, "the ship, because it is running")


@pytest.mark.usefixtures("no_ship")
def test_auto_takes_the_next_where_the_first_does_not_answer_and_says_why(choose: Any) -> None:
    assert choose() == (Raft, "the raft, because no engine answers at all")


def test_auto_takes_the_next_if_the_first_makes_no_environments_here(
    choose: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ship, "has_tools", False)
    assert choose() == (Raft, "the raft, because it has no tool")
    assert registry.find_gpu_host(registry.AUTO, Path()).absent == "raft"
    # images may be there, and nothing else runs other people's code
    assert choose(untrusted=["script"])[0] is Ship
    assert choose("ship")[0] is Ship


def test_what_was_typed_is_taken(choose: Any) -> None:
    assert choose("raft") == (Raft, "the raft, because of --backend raft")
    assert choose("raft", is_resumed=True) == (Raft, "the raft, because the run started with it")


@pytest.mark.usefixtures("no_ship")
def test_what_was_typed_and_does_not_answer_ends_it(choose: Any) -> None:
    with pytest.raises(CannotRunHereError) as refused:
        choose("ship")
    assert refused.value.message.startswith("No engine answers at all")
    assert refused.value.advice == "Start it.\nOr measure without containers: --backend raft"
    # a run that is resumed has no choice
    with pytest.raises(CannotRunHereError) as refused:
        choose("ship", is_resumed=True)
    assert refused.value.advice == "Start it."


def test_a_name_that_is_not_registered_is_a_usage_error(choose: Any) -> None:
    with pytest.raises(UsageError, match=r"Unknown backend: 'submarine'\.\nUse one of auto, ship, raft\."):
        choose("submarine")


@pytest.mark.usefixtures("no_ship")
def test_an_untrusted_script_never_goes_without_a_container(choose: Any) -> None:
    with pytest.raises(CannotRunHereError) as refused:
        choose(untrusted=["mine"])
    assert "mine is from outside the project" in refused.value.message
    assert refused.value.advice == "Start Ship, or, if you trust the file, pass --trust."


def test_a_backend_without_containers_that_was_typed_says_what_a_script_could_do_and_which_flag_allows_it(
    choose: Any,
) -> None:
    with pytest.raises(UntrustedError, match=r"mine and yours are from outside .* with your rights") as refused:
        choose("raft", untrusted=["mine", "yours"])
    assert "--trust" in refused.value.advice
    assert choose("ship", untrusted=["mine"])[0] is Ship


def test_the_gpus_of_launches_are_told_and_the_way_that_was_typed_is_handed_on(choose: Any) -> None:
    assert choose(gpus=["0", "1"]) == (Ship, "the ship with GPU 0, 1, because it is running")
    assert Ship.via is None
    choose(gpus=["0"], via=GpuWay.CDI)
    assert Ship.via is GpuWay.CDI


@pytest.mark.usefixtures("no_ship")
def test_gpus_are_given_without_containers_where_no_engine_answers(choose: Any) -> None:
    assert choose(gpus=["0"]) == (Raft, "the raft with GPU 0, because no engine answers at all")


@pytest.mark.parametrize(
    ("name", "there", "machine"), [("auto", True, "ship"), ("auto", False, "raft"), ("raft", True, "raft")]
)
@pytest.mark.usefixtures("choose")
def test_a_plan_knows_the_gpus_of_the_backend_that_will_be_chosen(
    monkeypatch: pytest.MonkeyPatch, name: str, there: bool, machine: str
) -> None:
    monkeypatch.setattr(Ship, "there", there)
    assert registry.find_gpu_host(name, Path()).absent == machine


def test_an_engine_that_answers_and_has_no_gpu_is_not_passed_over(choose: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ship, "has_gpus", False)
    with pytest.raises(CannotRunHereError, match=r"It has no GPU\.\nBuy one\."):
        choose(gpus=["0"])


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_keeps_the_protocol(entry: BackendEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of an engine to make one."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    backend = entry.open(tmp_path, "run")
    assert (ImageBackend if entry.in_containers else RegisteredBackend) in type(backend).__mro__
    assert backend.name == entry.name
    assert backend.leftovers


def test_the_choices_are_the_names_and_auto() -> None:
    assert ("auto", *(entry.name for entry in registry.ENTRIES)) == registry.CHOICES
    assert registry.check_backend("local") == "local"
    with pytest.raises(UsageError, match="Use one of auto, docker, "):
        registry.check_backend("dokcer")

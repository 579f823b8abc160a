import json
import os
from pathlib import Path

import pytest

from harness.machine.identity import load_machine, name_machine
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from harness.model.run import Machine


@pytest.fixture
def kept() -> Path:
    """The file that has the machine's id."""
    return Path(os.environ["HARNESS_DATA_DIR"]) / "machine.json"


def test_an_id_is_made_once_and_kept(kept: Path) -> None:
    first = load_machine()
    assert load_machine() == first
    assert first.id.startswith("m-")
    assert len(first.id) == 10
    assert [path.name for path in kept.parent.iterdir()] == ["machine.json"]


def test_two_machines_have_two_ids(kept: Path) -> None:
    first = load_machine()
    kept.unlink()
    assert load_machine().id != first.id


def test_a_name_is_kept_beside_the_id_and_can_be_taken_away() -> None:
    identity = load_machine().id
    assert name_machine("lab 3") == Machine(identity, "lab 3") == load_machine()
    assert name_machine("").shown == identity


def test_of_two_that_make_an_id_at_once_the_first_is_believed(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_machine()
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert load_machine() == first


def test_variables_name_a_machine_that_keeps_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_MACHINE_ID", "runner-7")
    monkeypatch.setenv("HARNESS_MACHINE", "the seventh")
    assert load_machine() == Machine("runner-7", "the seventh")
    assert not kept.exists()


@pytest.mark.parametrize(("variable", "value"), [("HARNESS_MACHINE_ID", "a/b"), ("HARNESS_MACHINE", "a\nb")])
def test_variables_that_are_none_are_refused(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=variable):
        load_machine()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", json.dumps({"id": "../x"}), json.dumps({"id": "a", "name": 1}), "[" * 100_000]
)
def test_a_damaged_file_is_named(text: str, kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text(text)
    with pytest.raises(DamagedError, match=r"machine\.json is damaged"):
        load_machine()


def test_a_folder_that_cannot_be_made_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_DATA_DIR", "/proc/none")
    with pytest.raises(CannotRunHereError, match="HARNESS_MACHINE_ID"):
        load_machine()

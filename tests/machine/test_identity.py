import json
import os
from pathlib import Path

import pytest

from harness.machine.identity import load_machine, name_machine
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from harness.model.run import Machine
from tests.errors import catch_text


@pytest.fixture
def file():
    """The file that has the machine's id."""
    return Path(os.environ["HARNESS_DATA_DIR"]) / "machine.json"


def test_an_id_is_made_once_and_kept_and_a_name_can_be_taken_away(file, monkeypatch):
    first = load_machine()
    assert load_machine() == first
    # of two that make one at once, the first is believed
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda path: False)
        assert load_machine() == first
    assert first.id.startswith("m-")
    assert len(first.id) == 10
    assert name_machine("lab 3") == Machine(first.id, "lab 3") == load_machine()
    assert name_machine("").shown == first.id
    assert [path.name for path in file.parent.iterdir()] == ["machine.json"]
    file.unlink()
    assert load_machine().id != first.id


def test_variables_name_a_machine_that_keeps_nothing(file, monkeypatch):
    monkeypatch.setenv("HARNESS_MACHINE_ID", "runner-7")
    monkeypatch.setenv("HARNESS_MACHINE", "the seventh")
    assert load_machine() == Machine("runner-7", "the seventh")
    assert not file.exists()


def test_what_names_no_machine_is_refused(file, monkeypatch, snapshot):
    errors = {}
    for variable, value in (("HARNESS_MACHINE_ID", "a/b"), ("HARNESS_MACHINE", "a\nb")):
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            errors[variable] = catch_text(UsageError, load_machine)
    file.parent.mkdir(parents=True, exist_ok=True)
    texts = ("", "[]", "{}", json.dumps({"id": "../x"}), json.dumps({"id": "a", "name": 1}), "[" * 100_000)
    for text in texts:
        file.write_text(text)
        errors[text[:50]] = catch_text(DamagedError, load_machine).replace(str(file), file.name)
    monkeypatch.setenv("HARNESS_DATA_DIR", "/proc/none")
    errors["no folder"] = catch_text(CannotRunHereError, load_machine)
    assert errors == snapshot

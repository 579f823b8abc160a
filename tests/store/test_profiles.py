"""Profiles read from a launch's artifacts, which an untrusted script wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.model.errors import UsageError
from harness.model.profile import Caller, Part
from harness.store.folder import RunFolder
from tests.runs import launch

DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "part": "steady",
    "calls": 50,
    "steps": 1,
    "seconds": 0.5,
    "plain_seconds": 0.45,
    "functions": [
        ["/x/training.py", 7, "fit", 50, 50, 0.1, 0.4, []],
        ["~", 0, "<built-in method x>", 100, 100, 0.3, 0.3, [[0, 100, 0.3, 0.3]]],
    ],
    "stacks": [[0.4, [0]]],
}


def read(folder: Path, text: str) -> Any:
    (folder / "artifacts" / "a").mkdir(parents=True)
    (folder / "artifacts" / "a" / "steady.json").write_text(text)
    kept = ["artifacts/a/steady.json", "artifacts/a/steady.pstats"]
    return RunFolder(folder).read_profiles(launch(artifacts=kept))


def test_a_profile_is_read_with_its_functions_callers_and_stacks(tmp_path: Path) -> None:
    (profile,) = read(tmp_path, json.dumps(DOCUMENT)).values()
    assert (profile.part, profile.calls, profile.own) == (Part.STEADY, 50, pytest.approx(0.4))
    assert profile.functions[1].callers == [Caller(0, 100, 0.3, 0.3)]
    assert profile.stacks[0][1] == [0]


def test_a_launch_without_profiles_has_none(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).read_profiles(launch()) == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 9}, "reads only schemas up to 1"),
        ({"part": "other"}, "damaged"),
        ({"calls": 0}, "aren't a valid number"),
        ({"steps": -1}, "aren't a valid number"),
        ({"seconds": -1.0}, "aren't a valid duration"),
        ({"functions": [["x.py", 1, "f", 1, 1, 0.1, 0.1, [[4, 1, 0.1, 0.1]]]]}, "caller"),
        ({"functions": [["x.py", 1, "f", 1, 1, -0.1, 0.1, []]], "stacks": []}, "time"),
        ({"stacks": [[0.1, [2]]]}, "stack"),
        ({"stacks": [[0.1, [-1]]]}, "stack"),
    ],
)
def test_what_cannot_be_is_refused_with_the_file_s_name(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        read(tmp_path, json.dumps({**DOCUMENT, **changes}))
    assert "steady.json" in str(error.value)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"calls": 1e999}', "\x00"])
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="damaged"):
        read(tmp_path, text)


def test_a_file_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        RunFolder(tmp_path).read_profiles(launch(artifacts=["artifacts/a/steady.json"]))

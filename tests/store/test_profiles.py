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
    (folder / "artifacts" / "a").mkdir(parents=True, exist_ok=True)
    (folder / "artifacts" / "a" / "steady.json").write_text(text)
    artifacts = ["artifacts/a/steady.json", "artifacts/a/steady.pstats"]
    return RunFolder(folder).read_profiles(launch(artifacts=artifacts))


def test_a_profile_is_read_with_its_functions_callers_and_stacks(tmp_path):
    (profile,) = read(tmp_path, json.dumps(DOCUMENT)).values()
    assert (profile.part, profile.calls, profile.own) == (Part.STEADY, 50, pytest.approx(0.4))
    assert profile.functions[1].callers == [Caller(0, 100, 0.3, 0.3)]
    assert profile.stacks[0][1] == [0]


WRONG: dict[str, dict[str, Any]] = {
    "newer schema": {"schema": 9},
    "unknown part": {"part": "other"},
    "no calls": {"calls": 0},
    "no steps": {"steps": 0},
    "endless calls": {"calls": 10**400},
    "endless calls of a function": {"functions": [["x.py", 1, "f", 10**400, 1, 0.1, 0.1, []]]},
    "empty stack": {"stacks": [[0.1, []]]},
    "negative seconds": {"seconds": -1.0},
    "endless plain seconds": {"plain_seconds": 1e999},
    "missing caller": {"functions": [["x.py", 1, "f", 1, 1, 0.1, 0.1, [[1, 1, 0.1, 0.1]]]], "stacks": []},
    "negative time": {"functions": [["x.py", 1, "f", 1, 1, -0.1, 0.1, []]], "stacks": []},
    "negative time of a caller": {"functions": [["x.py", 1, "f", 1, 1, 0.1, 0.1, [[0, 1, 0.1, -0.1]]]], "stacks": []},
    "missing function of a stack": {"stacks": [[0.1, [2]]]},
    "negative function of a stack": {"stacks": [[0.1, [-1]]]},
    "negative time of a stack": {"stacks": [[-0.1, [0]]]},
}


def test_what_cannot_be_is_refused_with_the_files_name(tmp_path, snapshot):
    texts = {case: json.dumps({**DOCUMENT, **changes}) for case, changes in WRONG.items()}
    texts |= {"empty": "", "no fields": "{}", "list": "[]", "endless": '{"calls": 1e999}', "null byte": "\x00"}
    problems = {}
    for case, text in texts.items():
        with pytest.raises(UsageError) as raised:
            read(tmp_path, text)
        problems[case] = raised.value.message.replace(str(tmp_path), "FOLDER")
    with pytest.raises(UsageError) as raised:
        RunFolder(tmp_path / "empty").read_profiles(launch(artifacts=["artifacts/a/steady.json"]))
    problems["missing file"] = raised.value.message.replace(str(tmp_path), "FOLDER")
    assert problems == snapshot


def test_a_profile_may_take_no_time_and_have_one_call(tmp_path):
    least = {"calls": 1, "seconds": 0.0, "plain_seconds": None, "stacks": [[0.0, [1]]]}
    (profile,) = read(tmp_path, json.dumps({**DOCUMENT, **least})).values()
    assert (profile.calls, profile.seconds, profile.stacks[0][1]) == (1, 0.0, [1])

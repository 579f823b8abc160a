"""Each script of scripts/ on both backends. Its first lines say what the record of its launch must say."""

import re
from pathlib import Path

from harness.model.backend import Backend
from harness.model.environment import Requirement
from harness.model.launch import Status
from tests.backends.workers import job

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))


def check(backend: Backend, requirement: Requirement, script: Path) -> None:
    text = script.read_text()
    stated = dict(re.findall(r"^# (status|error|seconds|kept|not kept): (.*)$", text, re.MULTILINE))
    outcome = backend.launch(requirement, job(text, float(stated.get("seconds", 60.0))))
    assert outcome.status is Status(stated["status"]), outcome.error
    assert outcome.error.startswith(stated.get("error", "")), script.stem
    assert stated.get("not kept", "") in "".join(outcome.not_kept), script.stem
    assert bool(outcome.not_kept) == ("not kept" in stated) or script.stem == "artifacts_are_a_link"
    if "kept" in stated:
        assert sorted(outcome.artifacts) == stated["kept"].split()
    assert not any("passwd" in name for name in outcome.artifacts)

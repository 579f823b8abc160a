"""The plan of a nightly run, and the job that waits for its machines."""

import json
import os
import runpy
import sys

import pytest

from tests.github import ENVIRON
from tests.nightly.conftest import NIGHTLY, NIGHTS, SHORT
from tests.workflow import run_script


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys):
    """Return a function that runs the plan of a file in this process, and returns its error or 0, text and outputs."""
    output = tmp_path / "output"
    monkeypatch.setenv("NIGHTLY_FILE", str(tmp_path / "nightly.toml"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", os.devnull)
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run_plan(text, night=""):
        (tmp_path / "nightly.toml").write_text(text)
        monkeypatch.setenv("NIGHT", night)
        output.write_text("")
        error = 0
        try:
            runpy.run_path(str(NIGHTLY / "plan"), run_name="__main__")
        except SystemExit as exit_:
            error = str(exit_.code).replace(str(tmp_path), "FOLDER")
        text = capsys.readouterr().out.replace(str(tmp_path), "FOLDER")
        return error, text, dict(line.split("=", 1) for line in output.read_text().splitlines())

    return run_plan


def nights_of(machines):
    return f"{NIGHTS[: NIGHTS.index('machines')]}machines = [{machines}]\n"


def test_machines_of_one_night_share_a_plan_and_have_labels_that_github_accepts(plan):
    labels = {
        '"ubuntu-24.04"': "ubuntu-24.04",
        '["self-hosted", "gpu"]': ["self-hosted", "gpu"],
        '"runs-on=${{ github.run_id }}/family=g6"': "runs-on=77/family=g6",
        '{ group = "g-${{github.run_id}}", labels = ["a"] }': {"group": "g-77", "labels": ["a"]},
    }
    machines = [f'{{ name = "m{number}", runs-on = {label} }}' for number, label in enumerate(labels, 1)]
    jobs = json.loads(plan(nights_of(", ".join(machines)))[2]["jobs"])
    assert [job["runs-on"] for job in jobs] == list(labels.values())
    assert [job["arguments"] for job in jobs] == [f"{SHORT} --seed 77 --shard {number}/4" for number in (1, 2, 3, 4)]
    (job,) = json.loads(plan(NIGHTS)[2]["jobs"])
    assert job["arguments"] == SHORT


def test_messages_of_the_plan(plan, snapshot):
    slow, quick = (f"{{ name = 'rack', runs-on = 'x', minutes = {minutes} }}" for minutes in (351, 350))
    other = "{ name = 'lab', runs-on = 'x' }"
    rule = "[[mute]]\nseries = 'step *'\nreason = 'bug 5'\nuntil = 2026-10-31\n"
    nights = {
        "expression": NIGHTS.replace('["ubuntu-24.04"]', '"${{ secrets.x }}"'),
        "unknown night": NIGHTS,
        "longer than the job that waits": nights_of(f"{slow}, {other}"),
        "not longer": nights_of(f"{quick}, {other}"),
        "nobody waits": nights_of(slow),
        "a rule that ended": NIGHTS + rule,
        "too many jobs": nights_of(", ".join(f"{{ name = 'm{number}', runs-on = 'x' }}" for number in range(257))),
    }
    messages = {case: plan(text, "gpu" if "unknown" in case else "")[:2] for case, text in nights.items()}
    assert messages == snapshot


@pytest.mark.slow
def test_a_machine_that_does_not_start_in_time_is_named_and_cancelled(tmp_path, github):
    names = ["gpu on rack", "cpu on hosted"]
    jobs = [{"night": "gpu", "machine": "rack"}, {"night": "cpu", "machine": "hosted"}]
    for looks, minutes, is_late in (
        # all started: the script doesn't wait for their end
        ([["in_progress", "in_progress"]], "60", False),
        ([["queued", "in_progress"], ["in_progress", "completed"]], "60", False),
        # a job that GitHub doesn't list yet is queued
        ([[None, "completed"], ["in_progress", "completed"]], "60", False),
        # too late, but the other machine still measures: cancelled when it has ended
        ([["queued", "in_progress"], ["queued", "in_progress"], ["queued", "completed"]], "0", True),
        ([["pending", "completed"]], "0", True),
    ):
        github.states = [{name: state for name, state in zip(names, look, strict=True) if state} for look in looks]
        github.writes = []
        github.save()
        (tmp_path / "page").write_text("")
        process = run_script(
            NIGHTLY / "wait", programs=tmp_path / "bin", JOBS=json.dumps(jobs), WAIT_MINUTES=minutes, POLL_SECONDS="0",
            GITHUB_RUN_ID="77", GITHUB_STEP_SUMMARY=tmp_path / "page", **ENVIRON,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        after = github.load()
        assert after.writes == (["run cancel 77"] if is_late else [])
        assert after.states == github.states[-1:]
        assert (tmp_path / "page").read_text().startswith("- **rack ") is is_late

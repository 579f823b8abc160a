"""`harness repro`, from the command line to the report."""

import fcntl
import json
import os
import struct
import subprocess
import termios

import pytest

from harness.model.launch import Job, Outcome, Sample, Status
from tests.cli.conftest import CLAIMS, SHORT, Harness

OPTIONS = (*SHORT, "--no-nightly")


@pytest.fixture
def claims(harness: Harness) -> Harness:
    """Return a project with claims of two issues."""
    (harness.root / "scenarios" / "upstream").mkdir()
    (harness.root / "scenarios" / "upstream" / "sums.py").write_text(CLAIMS)
    return harness


def test_claims_are_listed_searched_and_answered_from_what_is_stored(claims):
    process = claims("repro", "list")
    assert process.returncode == 0
    heads, *rows = process.stdout.splitlines()
    assert heads.split() == ["issue", "outcome", "measured", "claim"]
    assert [row.split(maxsplit=3)[::3] for row in rows] == [
        ["K#7", "a long sum takes a minute"],
        ["T#1001", "a long sum takes ten times as long"],
    ]
    documents = json.loads(claims.call("repro", "list", "ten", "times", "--json").stdout)
    assert [document["issue"] for document in documents] == ["T#1001"]
    assert "harness repro list predict" in claims.call("repro", "predict").stderr
    (answer,) = json.loads(claims.call("ask", "long sum", "--json").stdout)[:1]
    assert (answer["kind"], answer["command"]) == ("claim", f"harness repro {answer['name']}")
    process = claims.call("ask", "keras", "step", "2.17")
    assert "releases/keras_step: " in process.stdout
    assert "× (" in process.stdout
    assert claims.call("ask", "tfdbg").returncode == 3


@pytest.mark.slow
def test_a_terminal_gets_the_start_of_long_lines(claims):
    keyboard, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with subprocess.Popen(
        claims.command("repro", "list"), cwd=claims.root, env=claims.environ, stdout=terminal
    ) as process:
        os.close(terminal)
    assert process.returncode == 0
    lines = os.read(keyboard, 65536).decode().splitlines()
    os.close(keyboard)
    assert [len(line) for line in lines if line.endswith("…")] == [40, 40]


@pytest.mark.slow
def test_a_claim_is_measured_until_it_is_clear_and_fails_on_what_was_asked(claims):
    url = "https://github.com/tensorflow/tensorflow/issues/1001"
    # with the usual margin, other work on the machine can take a run's outcomes
    process = claims("repro", url, *OPTIONS, "--margin", "50%", "--fail-on", "confirmed")
    assert process.returncode == 5, process.stderr
    # ten times is seen in two rounds; launches of a pilot would tell nothing
    assert {launch["round"] for launch in claims.launches} >= {1, 2}
    run = json.loads((claims.run / "run.json").read_text())
    assert (run["plan"]["claims"], run["plan"]["groups"][0]["piloted"]) == (["T#1001"], False)
    assert run["command"][:3] == ["harness", "repro", url]
    path = process.stderr.partition("The text for the issue is in ")[2].splitlines()[0]
    assert (claims.root / path).read_text()


@pytest.mark.slow
def test_claims_are_measured_in_slots_and_go_on_in_slots(claims, instant):
    def answer(job: Job) -> Outcome:
        step = 0.02 if job.cell.axes["length"] == "long" else 0.002
        noise = 1.0 + 0.001 * (len(instant.jobs) % 3)
        return Outcome(Status.OK, samples=[Sample(100 * step * noise, 100)], calls_per_sample=100)

    instant.answer = answer
    refused = claims.call("repro", "T#1001", *OPTIONS, "--slots", "2")
    assert (refused.returncode, "harness fleet check --slots 2" in refused.stderr) == (4, True)
    process = claims.call("repro", "T#1001", *OPTIONS, "--slots", "1")
    assert process.returncode == 0, process.stderr
    assert {launch["resources"].get("slots") for launch in claims.launches} <= {None, 1}
    assert json.loads((claims.run / "run.json").read_text())["command"][-2:] == ["--slots", "1"]
    resumed = claims.call("matrix", "--resume", str(claims.run), "--slots", "1")
    assert resumed.returncode == 0, resumed.stderr

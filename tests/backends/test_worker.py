import json

import pytest

from harness.backends.artifacts import Artifacts
from harness.backends.events import Events
from harness.backends.untrusted_text import Tail
from harness.backends.worker import Ending, collect_files, make_outcome
from harness.model.errors import UsageError
from harness.model.gpu import Gpu
from harness.model.launch import Status
from tests.backends.workers import job


def test_the_job_goes_in_beside_the_files():
    contents = collect_files(job("pass"), die_with_parent=True)
    assert set(contents) == {"kit/job.json", "kit/__main__.py", "fake.py"}
    seconds = job("pass").limits.seconds
    assert json.loads(contents["kit/job.json"])["limits"] == {"die_with_parent": True, "seconds": seconds}


def test_a_file_outside_is_refused():
    bad = job("pass")
    bad.files["../x"] = b""  # type: ignore[index]
    with pytest.raises(UsageError):
        collect_files(bad, die_with_parent=True)


def judged(stream=b"", ending=None, requested_at=None, artifacts=None, cards=()):
    events = Events()
    events.feed(stream)
    ending = ending or Ending()
    artifacts = artifacts or Artifacts()
    return make_outcome(
        events, ending, Tail(), image="sha256:1", artifacts=artifacts, requested_at=requested_at, cards=cards
    )


def said(event, **keys):
    return json.dumps({"event": event, **keys}).encode() + b"\n"


OK = said("end", status="ok")
GARBAGE = b"garbage\n"


@pytest.mark.parametrize(
    ("stream", "ending", "status", "error"),
    [
        (OK, Ending(), Status.OK, ""),
        (b"", Ending(), Status.FAILED, "it ended without reporting an outcome: exit code 0"),
        (b"", Ending(3), Status.FAILED, "it ended without reporting an outcome: exit code 3"),
        (b"", Ending(signal=9), Status.FAILED, "it ended without reporting an outcome: killed by signal 9 (SIGKILL)"),
        (b"", Ending(signal=63), Status.FAILED, "it ended without reporting an outcome: killed by signal 63"),
        (b'{"ev', Ending(signal=9), Status.FAILED, "it ended in the middle of a line without reporting an"),
        (OK + b"rest", Ending(), Status.FAILED, "it wrote another result after the last event"),
        (OK, Ending(3), Status.FAILED, "its work was finished, but the process ended with exit code 3"),
        (GARBAGE, Ending(signal=9), Status.FAILED, "in its results, a line is not JSON: garbage"),
        (OK + GARBAGE, Ending(), Status.FAILED, "in its results, a line is not JSON: garbage"),
        (b"", Ending(signal=9, oom=True), Status.OOM, "it was killed: out of memory"),
        (b"", Ending(seconds=2.5), Status.TIMEOUT, "it was still running after 2.5 s"),
        (OK, Ending(seconds=2.0), Status.TIMEOUT, "its work was finished, but the process was still running after 2 s"),
        (said("end", status="failed", reason="a\nb"), Ending(1), Status.FAILED, "a b"),
        (said("end", status="not available", reason="no keras"), Ending(), Status.NOT_AVAILABLE, "no keras"),
        (said("end", status="cpu fallback", reason="no GPU"), Ending(1), Status.CPU_FALLBACK, "no GPU"),
    ],
)
def test_a_launch_is_finished_by_its_word_and_its_exit(stream, ending, status, error):
    result = judged(stream, ending)
    assert result.status is status
    assert result.error.startswith(error)
    assert bool(result.error) == bool(error)


def test_phases_before_the_worker_come_first():
    stream = said("hello", time=12.5, started=12.0) + said("phase", name="import", seconds=3) + OK
    assert judged(stream, requested_at=11.75).phases == {
        "container start": 0.25,
        "interpreter start": 0.5,
        "import": 3.0,
    }
    assert list(judged(stream, requested_at=11.75).phases) == ["container start", "interpreter start", "import"]
    assert judged(stream).phases == {"interpreter start": 0.5, "import": 3.0}


def test_what_was_used_of_the_cpus_stands_beside_the_phases():
    stream = said("phase", name="import", seconds=3, cpu_seconds=2.5) + said("phase", name="device", seconds=1)
    stream += said("resources", steady_seconds=1.5, steady_own_cpus=1) + OK
    result = judged(stream)
    assert result.phases == {"import": 3.0, "device": 1.0}
    assert result.phases_cpu == {"import": 2.5}
    assert result.resources == {"steady_seconds": 1.5, "steady_own_cpus": 1.0}


def test_a_clock_that_went_back_gives_no_phase():
    assert judged(said("hello", time=12.0, started=12.5) + OK, requested_at=13.0).phases == {}
    assert judged(said("hello", time=12.0, started=None) + OK, requested_at=11.0).phases == {}


def test_the_traceback_stands_at_the_end_of_stderr():
    stream = said("end", status="failed", reason="r", traceback="Traceback\n  boom\n")
    assert judged(stream, Ending(1)).stderr == "Traceback\n  boom"


def test_what_was_refused_of_its_artifacts_is_told_however_it_ended():
    refused = Artifacts(refused=["link: not a regular file"])
    assert judged(OK, artifacts=refused).not_kept == ("link: not a regular file",)


def card(index, pci="", **changes):
    return Gpu(index, f"GPU-{index}", "NVIDIA A100", changes.pop("capability", (8, 0)), 2**35, pci=pci, **changes)


def on(*pcis, capability="8.0"):
    return said("gpus", gpus=[{"name": "A100", "capability": capability, "pci": pci} for pci in pcis])


FIRST, SECOND = "0000:3b:00.0", "0001:3b:00.0"


@pytest.mark.parametrize(
    ("stream", "cards"),
    [
        (on(FIRST), [card(0, FIRST)]),
        (on(FIRST), [card(1, SECOND), card(0, FIRST)]),
        (on(FIRST), [card(0, FIRST, is_partitioned=True)]),
        (on(FIRST), []),  # nothing is known of the machine's
        (b"", [card(0, FIRST)]),  # the launch could not tell
        (on(""), [card(0, FIRST)]),
        (on(FIRST), [card(0)]),
    ],
)
def test_a_launch_on_the_gpu_that_was_asked_for_is_ok(stream, cards):
    assert judged(stream + OK, cards=cards).status is Status.OK


@pytest.mark.parametrize(
    ("stream", "cards"),
    [
        (on(FIRST), [card(1, SECOND)]),
        (on(FIRST, SECOND), [card(1, SECOND)]),
        (on("", capability="8.6"), [card(1, SECOND)]),
        (on(FIRST, capability="8.6"), [card(1)]),
    ],
)
def test_a_launch_on_another_gpu_has_a_status_of_its_own(stream, cards):
    result = judged(stream + OK, cards=cards)
    assert result.status is Status.OTHER_GPU
    assert result.error.startswith("it ran on A100 (compute capability 8.")
    assert " instead of GPU 1: NVIDIA A100 (compute capability 8.0" in result.error
    assert result.gpus


def test_what_else_went_wrong_comes_before_the_gpu_that_it_was_on():
    assert judged(on(FIRST) + GARBAGE, cards=[card(1, SECOND)]).status is Status.FAILED

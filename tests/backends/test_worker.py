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


def test_the_job_goes_in_beside_the_files_and_none_from_outside():
    contents = collect_files(job("pass"), die_with_parent=True)
    assert set(contents) == {"kit/job.json", "kit/__main__.py", "fake.py"}
    seconds = job("pass").limits.seconds
    assert json.loads(contents["kit/job.json"])["limits"] == {"die_with_parent": True, "seconds": seconds}
    bad = job("pass")
    bad.files["../x"] = b""  # type: ignore[index]
    with pytest.raises(UsageError):
        collect_files(bad, die_with_parent=True)


def judge(stream=b"", ending=None, requested_at=None, artifacts=None, gpus=()):
    events = Events()
    events.feed(stream)
    ending = ending or Ending()
    artifacts = artifacts or Artifacts()
    return make_outcome(
        events, ending, Tail(), image="sha256:1", artifacts=artifacts, requested_at=requested_at, gpus=gpus
    )


def emit(event, **keys):
    return json.dumps({"event": event, **keys}).encode() + b"\n"


OK = emit("end", status="ok")
GARBAGE = b"garbage\n"


def test_a_launch_is_finished_by_its_word_and_its_exit(snapshot):
    outcomes = []
    for stream, ending in (
        (OK, Ending()),
        (b"", Ending()),
        (b"", Ending(3)),
        (b"", Ending(signal=9)),
        (b"", Ending(signal=63)),
        (b'{"ev', Ending(signal=9)),
        (OK + b"rest", Ending()),
        (OK, Ending(3)),
        (GARBAGE, Ending(signal=9)),
        (OK + GARBAGE, Ending()),
        (b"", Ending(signal=9, oom=True)),
        (b"", Ending(seconds=2.5)),
        (OK, Ending(seconds=2.0)),
        (emit("end", status="failed", reason="a\nb"), Ending(1)),
        (emit("end", status="not available", reason="no keras"), Ending()),
        (emit("end", status="cpu fallback", reason="no GPU"), Ending(1)),
    ):
        outcome = judge(stream, ending)
        outcomes.append(f"{stream.decode().strip()} {ending}: {outcome.status.value}, {outcome.error}")
    assert outcomes == snapshot


def test_the_outcome_has_what_was_told_and_phases_before_the_worker_first():
    stream = emit("hello", time=12.5, started=12.0) + emit("phase", name="import", seconds=3) + OK
    phases = {"interpreter start": 0.5, "import": 3.0}
    assert judge(stream).phases == phases
    assert list(judge(stream, requested_at=11.75).phases.items()) == [("container start", 0.25), *phases.items()]
    assert judge(emit("hello", time=12.0, started=12.5) + OK, requested_at=13.0).phases == {}
    assert judge(emit("hello", time=12.0, started=None) + OK, requested_at=11.0).phases == {}
    # a run with such a phase could not be read
    for time, started in ((1e15, 0.0), (1e-300, 0.0), (1e15, 1e16)):
        assert judge(emit("hello", time=time, started=started) + OK, requested_at=1.0).phases == {}
    stream = emit("phase", name="import", seconds=3, cpu_seconds=2.5) + emit("phase", name="device", seconds=1)
    stream += emit("resources", steady_seconds=1.5, steady_own_cpus=1)
    stream += emit("end", status="failed", reason="r", traceback="Traceback\n  boom\n")
    result = judge(stream, Ending(1), artifacts=Artifacts(refused=["link: not a regular file"]))
    assert result.phases == {"import": 3.0, "device": 1.0}
    assert result.phases_cpu == {"import": 2.5}
    assert result.resources == {"steady_seconds": 1.5, "steady_own_cpus": 1.0}
    assert result.stderr == "Traceback\n  boom"
    assert result.not_kept == ("link: not a regular file",)


def card(index, pci="", **changes):
    return Gpu(index, f"GPU-{index}", "NVIDIA A100", changes.pop("capability", (8, 0)), 2**35, pci=pci, **changes)


def on(*pcis, capability="8.0"):
    return emit("gpus", gpus=[{"name": "A100", "capability": capability, "pci": pci} for pci in pcis])


FIRST, SECOND = "0000:3b:00.0", "0001:3b:00.0"


def test_a_launch_on_another_gpu_than_was_requested_has_a_status_of_its_own():
    for stream, cards in (
        (on(FIRST), [card(0, FIRST)]),
        (on(FIRST), [card(1, SECOND), card(0, FIRST)]),
        (on(FIRST), [card(0, FIRST, is_partitioned=True)]),
        (on(FIRST), []),  # nothing is known of the machine's
        (b"", [card(0, FIRST)]),  # the launch could not tell
        (on(""), [card(0, FIRST)]),
        (on(FIRST), [card(0)]),
    ):
        assert judge(stream + OK, gpus=cards).status is Status.OK, (stream, cards)
    for stream, cards in (
        (on(FIRST), [card(1, SECOND)]),
        (on(FIRST, SECOND), [card(1, SECOND)]),
        (on("", capability="8.6"), [card(1, SECOND)]),
        (on(FIRST, capability="8.6"), [card(1)]),
    ):
        outcome = judge(stream + OK, gpus=cards)
        assert outcome.status is Status.OTHER_GPU, (stream, cards)
        assert outcome.error.startswith("it ran on A100 (compute capability 8.")
        assert " instead of GPU 1: NVIDIA A100 (compute capability 8.0" in outcome.error
        assert outcome.gpus
    # what else went wrong comes first
    assert judge(on(FIRST) + GARBAGE, gpus=[card(1, SECOND)]).status is Status.FAILED

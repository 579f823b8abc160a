"""`make gpu-check`, on substitutes for GPUs and without a GPU."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.gpu_check import __main__ as check
from bench.gpu_check.__main__ import FAILED, LEFT_OUT, PASSED, Outcome, run_steps, summary, write
from bench.gpu_check.masking import Mask, here
from bench.gpu_check.plan import Plan, Step, find_compiled, find_newest
from bench.gpu_check.recording import Replay
from harness.machine.gpu import host
from harness.model.gpu import Gpu, GpuHost
from harness.store.folder import RunFolder
from tests.conftest import ROOT
from tests.stand_in.gpus import H100, Machine

CARD = Gpu(0, "GPU-90", "NVIDIA H100", (9, 0), 80 * 2**30)
HOST = GpuHost(gpus=[CARD], driver="550.54.15")


def gpu_check(machine: Machine, results: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **machine.environ(), "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    command = [sys.executable, "-m", "bench.gpu_check", "--results", str(results), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def contents(bundle: Path) -> dict[str, str]:
    with zipfile.ZipFile(bundle) as archive:
        return {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}


def outcome_rows(bundle: Path) -> list[tuple[str, str]]:
    rows = [line.split(" | ") for line in contents(bundle)["summary.md"].splitlines() if line.startswith("| ")][2:]
    return [(row[0].removeprefix("| "), row[-1]) for row in rows]


@pytest.mark.slow
def test_without_the_gpu_nothing_is_checked_or_left_behind(stand_ins, tmp_path, snapshot):
    processes = {
        "no GPU": gpu_check(Machine(stand_ins), tmp_path / "results"),
        "another GPU": gpu_check(Machine(stand_ins, [H100]), tmp_path / "results", "--gpus", "3"),
    }
    assert {case: process.returncode for case, process in processes.items()} == dict.fromkeys(processes, 4)
    assert list(tmp_path.iterdir()) == []
    assert {case: process.stderr for case, process in processes.items()} == snapshot


@pytest.mark.slow
def test_with_a_gpu_and_without_an_engine_the_other_checks_pass(stand_ins, tmp_path):
    process = gpu_check(Machine(stand_ins, [H100]), tmp_path, "--seconds", "0.3", "--only", "version,nvml,cdi")
    assert process.returncode == 1, process.stderr
    (bundle,) = tmp_path.iterdir()
    assert bundle.name.startswith("gpu-check-nvidia-h100-80gb-hbm3-")
    files = contents(bundle)
    outcomes = outcome_rows(bundle)
    assert [(name, text.partition(":")[0]) for name, text in outcomes] == [
        ("version", PASSED),
        ("nvml", PASSED),
        ("cdi", FAILED),
    ]
    assert "this backend runs launches without containers" in outcomes[2][1]
    # the recording is test data as it is
    assert [gpu.name for gpu in host.read(Replay(files["nvml.jsonl"].splitlines())).gpus] == [H100.name]
    assert set(files) == {"summary.md", "version.txt", "nvml.txt", "nvml.jsonl", "cdi.txt"}
    for name in here():
        assert not any(name in text for text in files.values()), name


def python(name: str, code: str, limit: float = 60.0, **fields: object) -> Step:
    return Step(name, (sys.executable, "-c", code), about=1, limit=limit, **fields)  # type: ignore[arg-type]


def outcomes_of(steps: Sequence[Step], scratch: Path) -> list[tuple[str, str]]:
    # how long one took is this machine's
    return [
        (step.status, "" if step.status == PASSED else step.how.partition(",")[0]) for step in run_steps(steps, scratch)
    ]


def test_a_check_reports_its_result_or_why_it_has_none(tmp_path):
    statuses = {0: PASSED, 1: FAILED, 4: LEFT_OUT}
    code = "print('gpu-check: The GPU is fast.'); raise SystemExit(%d)"
    results = run_steps([python(f"exit {status}", code % status) for status in statuses], tmp_path)
    assert [(result.status, result.how.rpartition(" s. ")[2]) for result in results] == [
        (status, "The GPU is fast.") for status in statuses.values()
    ]


ENDLESS = "import time; print('begun', flush=True); time.sleep(1000)"


def test_each_step_has_its_outcome_whatever_becomes_of_the_others(tmp_path):
    steps = [
        python("raises", "raise SystemExit(4)"),
        python("endless", ENDLESS, limit=0.5),
        python("fine", "pass"),
        python("second", "pass", after="raises"),
        Step("none", (), left_out="only root may"),
    ]
    assert outcomes_of(steps, tmp_path) == [
        (FAILED, "exit code 4"),
        (FAILED, "stopped after 0 s"),
        (PASSED, ""),
        (LEFT_OUT, "raises didn't pass: fix what it reports first"),
        (LEFT_OUT, "only root may"),
    ]


def test_what_does_not_fit_any_more_is_left_out_and_images_are_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "BUDGET", 5.0)
    steps = [python("long", "pass"), python("images", "pass", download="9 GB")]
    assert [status for status, _ in outcomes_of(steps, tmp_path)] == [LEFT_OUT, PASSED]


def test_the_bundle_is_small_and_tells_of_no_person_and_no_machine(tmp_path):
    uuid, place = "GPU-8a7ab9d1-4a7c-1111-2222-333344445555", "0000:65:00.0"
    secrets = ["/home/somebody", "somebody", "box17.example.org", uuid, "65:00.0", "train.py"]
    text = f"box17.example.org: somebody's /home/somebody/work: {uuid} at {place}, used by train.py (process 41)\n"
    run = tmp_path / "quick" / "20261122-1"
    run.mkdir(parents=True)
    facts = {"host": {"gpus": [{"pci": place}]}, "path": "/home/somebody/work", "somebody": 1}
    (run / "run.json").write_text(json.dumps(facts))
    (run / "launches.jsonl").write_text(json.dumps({"gpus": [{"pci": f"0000{place}".upper()}]}) + "\n")
    (run / "report.md").write_text(text * 100_000)
    mask = Mask({"somebody": "user", "box17.example.org": "host"})
    outcomes = [Outcome(Step("quick", ("x",)), PASSED, "3 s", text)]
    bundle = tmp_path / "bundle.zip"
    write(bundle, mask.text(summary(outcomes, CARD, HOST)), outcomes, tmp_path, mask)
    assert bundle.stat().st_size < 10_000_000
    files = contents(bundle)
    # what a run's file is called, and its keys, stay; what is too large is named
    assert json.loads(files["quick/run.json"]) == {
        "host": {"gpus": [{"pci": "0000:01:00.0"}]},
        "path": "~/work",
        "somebody": 1,
    }
    assert json.loads(files["quick/launches.jsonl"]) == {"gpus": [{"pci": "0000:01:00.0"}]}
    assert files["quick/report.md"].startswith("left out: ")
    assert files["quick.txt"] == (
        "host: user's ~/work: GPU-00000000-0000-0000-0000-000000000000 at 0000:01:00.0, used by program (process 1)\n"
    )
    del files["quick/run.json"]
    for secret in secrets:
        assert not any(secret in text for text in files.values()), secret


def test_what_identifies_a_machine_is_masked_and_versions_stay(monkeypatch):
    monkeypatch.setenv("HARNESS_MACHINE", "Alice's box")
    monkeypatch.setenv("HARNESS_MACHINE_ID", "lab-7.example")
    mask = Mask()
    facts = {"machine": {"id": "lab-7.example", "name": "Alice's box"}, "serial": "1320220012345"}
    assert mask.value(facts) == {"machine": {"id": "machine-id", "name": "machine"}, "serial": "0"}
    masked = {
        "the engine at tcp://10.1.2.3:2375 ended": "the engine at tcp://host ended",
        "mail alice@example.org": "mail user@host",
        "from 192.168.1.17:8080, fe80::1c2:3ff or 2001:db8::7": "from ADDRESS:8080, ADDRESS or ADDRESS",
        "ether aa:bb:cc:dd:ee:0f": "ether 00:00:00:00:00:00",
        "'/data/alice/x.py', /data/alice": "'/FOLDER/x.py', /FOLDER",
        "Serial Number : 1320220012345": "Serial Number : 0",
        "8a7ab9d1-4a7c-1111-2222-333344445555": "00000000-0000-0000-0000-000000000000",
    }
    kept = [
        "cuDNN 8.9.2.26, nvidia-curand-cu12==10.3.2.106, | nvidia-cudnn-cu12 | 8.9.2.26 |",
        "/usr/lib/x.so /job:localhost/replica:0/task:0/device:GPU:0 12:30:45 std::add tf2.15@py3.9 https://a.org/b/c",
        "1/2 </td></tr> 127.0.0.1 2.15.0 and/or /tmp/x/y /harness/kit/a",
    ]
    assert {text: mask.text(text) for text in (*masked, *kept)} == {**masked, **{text: text for text in kept}}
    assert mask.value({"nvidia-cudnn-cu12": "8.9.2.26"}) == {"nvidia-cudnn-cu12": "8.9.2.26"}


def test_two_gpus_stay_two_and_half_a_line_is_masked_as_text(tmp_path):
    mask = Mask({})
    one, other = (mask.text(text) for text in ("00000001:00:00.0 and 0001:00:00.0", "0002:00:00.0"))
    assert one == "0000:01:00.0 and 0000:01:00.0"
    assert other == "0000:02:00.0"
    path = tmp_path / "launches.jsonl"
    path.write_text('{"cell": 1}\n{"path": "/home/somebody/w')
    assert Mask({}).file(path) == '{"cell": 1}\n{"path": "~/w'


def steps_on(card: Gpu, driver: str, folder: Path, **changes: Any) -> dict[str, Step]:
    """Return the steps by name, as `make gpu-check` plans them on this GPU."""
    host = GpuHost(gpus=[card], driver=driver, needs_packages=bool(changes.get("without_engine")))
    plan = Plan(find_newest([card], host), "0", 5.0, folder, **changes)
    return {step.name: step for step in plan.steps()}


def seconds(steps: Mapping[str, Step]) -> float:
    return sum(step.about for step in steps.values() if step.counted)


def test_what_is_planned_is_what_the_card_runs_with_and_without_an_engine(tmp_path):
    lazy = find_compiled([CARD], HOST)
    steps = steps_on(CARD, HOST.driver, tmp_path, of_quick=["tf1.15-ngc", "tf2.16"], lazy=lazy, has_tf32=True)
    commands = {name: step.typed for name, step in steps.items()}
    assert commands["images"] == f"harness images build tf2.21 tf1.15-ngc tf2.16 {lazy} --device gpu"
    # nobody read the GPU code in NVIDIA's image, although the catalog has that of its cuDNN from elsewhere
    assert commands["verify"] == "python -m bench.gpu_image tf2.21 tf1.15-ngc"
    assert commands["cdi"].startswith("harness matrix --gpus 0 --gpu-via cdi -e tf2.21 ")
    assert " -a calls=1,10,100 -a tf32=on,off " in commands["products"]
    # the driver compiles its code for this GPU
    assert f" -e {lazy} " in commands["lazy"]
    assert " -a cuda_loading=lazy " in commands["lazy"]
    assert seconds(steps) < check.BUDGET
    t4 = Gpu(0, "GPU-1", "Tesla T4", (7, 5), 15 * 2**30)
    steps = steps_on(t4, "550.54.15", tmp_path, without_engine=True)
    assert steps["local"].typed.startswith("harness matrix --gpus 0 --backend local --trust -e tf2.21 ")
    # installing the environment isn't part of the ten minutes
    assert not steps["local"].counted
    assert steps["products"].after == "local"
    assert " --backend local " in steps["products"].typed
    assert steps["ways"].typed.endswith(" --no-engine")
    assert {"images", "verify", "cdi", "runtime", "driver", "quick"} <= {
        name for name, step in steps.items() if step.left_out
    }
    assert seconds(steps) < check.BUDGET


@pytest.mark.slow
def test_a_check_that_is_ended_leaves_a_bundle_and_no_process(stand_ins, tmp_path):
    environ = {**os.environ, **Machine(stand_ins, [H100]).environ()}
    command = [sys.executable, "-m", "bench.gpu_check", "--results", str(tmp_path)]
    command += ["--only", "version,nvml", "--seconds", "300"]  # NVML is watched until the end
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        lines = iter(process.stdout.readline, "")
        assert any("nvml: python -m bench" in line for line in lines if "[2/2]" in line)
        (bundle,) = tmp_path.glob("*.zip")
        assert "version" in contents(bundle)["summary.md"]
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not (step := children.read_text().strip()):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 1, rest
    assert "nvml | NVIDIA H100" in contents(bundle)["summary.md"]
    assert "stopped by Ctrl-C" in contents(bundle)["summary.md"]
    assert not Path(f"/proc/{step}").exists()


def test_a_run_in_a_bundle_can_be_read_as_any_other(tmp_path):
    run = tmp_path / "quick" / "run"
    run.mkdir(parents=True)
    with tarfile.open(ROOT / "docs" / "examples" / "headline" / "launches.tar.xz") as archive:
        archive.extractall(run, filter="data")
    bundle = tmp_path / "bundle.zip"
    write(bundle, "", [], tmp_path, Mask())
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    before, after = RunFolder.open(run), RunFolder.open(tmp_path / "bundle" / "quick")
    assert after.read_run() == before.read_run()
    assert after.read_launches() == before.read_launches() != []

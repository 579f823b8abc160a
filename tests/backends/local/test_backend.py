import dataclasses
import json
import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.backends.local import backend, cuda
from harness.machine import niceness
from harness.model.backend import GpuWay
from harness.model.environment import Device, Environment
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.model.launch import Limits, Status
from tests.backends.workers import (
    BEHAVIOURS,
    IN_TURNS,
    TAKES_TURNS,
    check_behaviours,
    check_misbehaviour,
    check_start,
    check_turns,
    in_turns,
    interrupt_between_turns,
    interrupt_the_start,
    job,
    kill_between_turns,
)
from tests.fatbinaries import library
from tests.lacking import ALL, lacking


@pytest.mark.slow
def test_whatever_a_worker_does_its_launch_gets_a_status(local, requirement, prepared):
    outcomes = check_behaviours(local, requirement, BEHAVIOURS)
    assert {outcome.image for outcome in outcomes} == {requirement.lock.sha256}
    assert any("ValueError: boom" in outcome.stderr for outcome in outcomes)
    assert not (prepared[0] / "scratch" / "test-run").exists()


def test_a_launch_is_pinned_and_sees_nothing_of_the_shell(local, requirement, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    before = os.sched_getaffinity(0)
    source = "say('observation', name='v', value=[dict(os.environ), sorted(os.sched_getaffinity(0))])"
    outcome = local.launch(requirement, job(f"{source}; say('end', status='ok')", TF_XLA_FLAGS="--axis"))
    environ, cpus = outcome.observations["v"]
    assert environ["HOME"] == environ["TMPDIR"]
    assert "scratch" in environ["HOME"]
    assert environ["CUDA_VISIBLE_DEVICES"] == "-1"
    assert environ["TF_XLA_FLAGS"] == "--axis"
    assert "SECRET" not in environ
    assert cpus == [0]
    assert os.sched_getaffinity(0) == before


def test_a_cpu_that_is_not_there_is_told_at_the_start_and_at_a_move(local, requirement):
    missing = dataclasses.replace(job("pass"), limits=Limits(cpus=(1000,)))
    with pytest.raises(CannotRunHereError, match="CPUs 1000"):
        local.launch(requirement, missing)
    with local.hold(requirement, in_turns(job(TAKES_TURNS))) as launch:
        assert launch.resume()
        with pytest.raises(CannotRunHereError, match="CPUs 100000"):
            launch.move([100_000])


def test_a_script_s_own_artifacts_and_job_json_are_its_own(local, requirement):
    source = "say('observation', name='v', value=[open(name).read() for name in ('job.json', 'artifacts/a.csv')]);"
    launch = job(f"{source} open('artifacts/new', 'w'); say('end', status='ok')")
    files = {**launch.files, "job.json": b"mine", "artifacts/a.csv": b"1"}
    outcome = local.launch(requirement, replace(launch, files=files))
    assert (outcome.error, outcome.observations, outcome.artifacts) == ("", {"v": ["mine", "1"]}, {})
    outcome = local.launch(requirement, job("os.mkdir('artifacts'); say('end', status='ok')"))
    assert (outcome.error, outcome.status) == ("", Status.OK)


def test_a_child_in_a_session_of_its_own_ends_with_the_launch_or_its_deadline(
    local, requirement, tmp_path, monkeypatch
):
    # the clock is set meanwhile
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600.0)
    for last, seconds, status in (
        ("say('end', status='ok')", 60.0, Status.OK),
        ("signal.pause()", 1.0, Status.TIMEOUT),
    ):
        note = tmp_path / status.value
        source = (
            "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
            f"    os.close(1); os.close(2); open({str(note)!r}, 'w').write(str(os.getpid()))\n"
            "    signal.pause()\n  os._exit(0)\n"
            f"os.wait()\nwhile not os.path.exists({str(note)!r}) or not open({str(note)!r}).read(): time.sleep(0.01)\n"
        )
        assert local.launch(requirement, job(source + last, seconds)).status is status
        with pytest.raises(ProcessLookupError):
            os.kill(int(note.read_text()), 0)


@pytest.mark.slow
def test_what_a_script_leaves_in_its_environment_reaches_no_later_launch(local, requirement):
    source = (
        "import sysconfig; open(sysconfig.get_path('purelib') + '/sitecustomize.py', 'w').write('print(1)')\n"
        "say('end', status='ok')"
    )
    assert local.launch(requirement, job(source)).status is Status.OK
    with pytest.raises(CannotRunHereError, match="was changed"):
        local.launch(requirement, job("say('end', status='ok')"))
    local.prepare([requirement], lambda step: None)
    assert local.launch(requirement, job("say('end', status='ok')")).status is Status.OK


def test_an_interrupted_launch_leaves_nothing(local, requirement, prepared, tmp_path):
    # the worker itself interrupts, so that nothing has to be waited for
    source = (
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"os.kill({os.getpid()}, signal.SIGINT)\nsignal.pause()"
    )
    assert threading.current_thread() is threading.main_thread()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        local.launch(requirement, job(source))
    assert not _runs(int((tmp_path / "pid").read_text()))
    assert not (prepared[0] / "scratch" / "test-run").exists()


def test_launches_that_are_held_take_turns(local, requirement):
    check_turns(local, requirement)


@pytest.mark.slow
def test_a_launch_that_misbehaves_in_its_turns_loses_itself_alone(local, requirement):
    for behaviour in IN_TURNS.values():
        check_misbehaviour(local, requirement, behaviour)


def test_launches_start_on_cpus_of_their_own_and_are_moved_to_one(local, requirement):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        lacking("this machine has one CPU", ALL)
    assert local.can_move()
    check_start(local, requirement, cpus)


def test_an_interruption_while_several_start_or_between_turns_leaves_nothing(local, requirement, prepared):
    with pytest.raises(KeyboardInterrupt):
        interrupt_the_start(local, requirement)
    assert not (prepared[0] / "scratch" / "test-run").exists()
    with pytest.raises(KeyboardInterrupt), local.hold(requirement, in_turns(job(TAKES_TURNS))) as launch:
        interrupt_between_turns(launch)
    assert not _runs(launch._process._started_process.pid)
    assert not (prepared[0] / "scratch" / "test-run").exists()


@pytest.mark.slow
def test_the_worker_of_a_killed_harness_ends(local, requirement, tmp_path):
    os.mkfifo(tmp_path / "last")
    source = (
        f"last = open({str(tmp_path / 'last')!r}, 'w')\nsay('turn', samples=[])\nlast.write(sys.stdin.read() + '.')"
    )
    reader = threading.Thread(target=lambda: texts.append((tmp_path / "last").read_text()))
    texts: list[str] = []
    reader.start()
    kill_between_turns(local, requirement, source)
    reader.join()
    assert texts == ["."]
    assert local.clean("test-run") == 1


def test_cleaning_removes_what_a_killed_harness_left(local, prepared):
    for run in ("one", "two"):
        (prepared[0] / "scratch" / run / "launch").mkdir(parents=True)
    assert local.clean("one") == 1
    assert not (prepared[0] / "scratch" / "one").exists()
    assert local.clean("") == 1
    assert local.clean("") == 0


def test_facts_name_what_is_not_controlled(local, monkeypatch):
    monkeypatch.setattr("harness.machine.host.detect_container", lambda: "Kubernetes")
    monkeypatch.setattr("harness.machine.cpus.can_pin", lambda: False)
    facts = local.facts()
    assert "Kubernetes container" in facts.engine
    uncontrolled = json.dumps(facts.to_dict()["uncontrolled"])
    assert [word for word in ("CPU pinning", "network access", "--memory", "glibc") if word not in uncontrolled] == []


def test_launches_have_priority_if_that_is_allowed_and_leaves_cpus_to_others(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for cpus, is_allowed, priority in (1, True, "nice value -20"), (1, False, ""), (4, True, ""):
        monkeypatch.setattr(niceness, "can_lower", lambda value=is_allowed: value)
        local = backend.LocalBackend(tmp_path, "run")
        assert local.give_priority(range(cpus)) == []
        assert local.facts().priority == priority


def test_a_gpu_needs_the_driver_and_no_method_of_containers(local, monkeypatch):
    monkeypatch.setattr(backend, "find_driver_error", lambda: "libcuda.so.1: no such file")
    for container, advice in ("", "nvidia-smi"), ("Docker", "--gpus all"):
        monkeypatch.setattr("harness.machine.host.detect_container", lambda value=container: value)
        with pytest.raises(CannotRunHereError, match=r"libcuda\.so\.1: no such file") as error:
            local.check_gpus(["0"])
        assert advice in error.value.advice
    with pytest.raises(UsageError, match="--gpu-via cdi"):
        local.check_gpus(["0"], GpuWay.CDI)


def test_a_disk_without_space_for_environments_is_a_sentence(local, requirement, monkeypatch, cache):
    monkeypatch.setitem(backend.ENVIRONMENT_BYTES, Device.CPU, 10**18)
    with pytest.raises(CannotRunHereError, match="HARNESS_CACHE_DIR"):
        local.check_room([requirement])


T4 = Gpu(0, "GPU-0a", "Tesla T4", (7, 5), 2**34, pci="0000:3b:00.0")
ON_A_GPU = {"limits": Limits(cpus=(0,), gpus=("0",))}
#: A launch that reports its variables.
REPORTS = "say('observation', name='v', value=dict(os.environ)); say('end', status='ok')"


@pytest.fixture
def with_t4(local, monkeypatch):
    """Return the backend on a machine with a T4, without the check that its environment is unchanged."""
    monkeypatch.setattr(local, "gpu_host", GpuHost(gpus=[T4]))
    monkeypatch.setattr(backend.Environments, "check", lambda self, requirement: None)
    return local


def test_a_launch_on_a_gpu_finds_cuda_in_the_packages_of_its_environment(with_t4, requirement, monkeypatch, tmp_path):
    (tmp_path / "libcuda.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path}")
    packages = with_t4.environments.packages(requirement)
    (packages / "cublas" / "lib").mkdir(parents=True)
    try:
        outcome = with_t4.launch(requirement, replace(job(REPORTS, XLA_FLAGS="--own"), **ON_A_GPU))
    finally:
        shutil.rmtree(packages)
    environ = outcome.observations["v"]
    assert environ["LD_LIBRARY_PATH"].split(":") == [str(packages / "cublas" / "lib"), str(tmp_path)]
    assert environ["XLA_FLAGS"] == f"--xla_gpu_cuda_data_dir={packages}/cuda_nvcc --own"
    assert environ["PATH"].startswith(f"{packages}/cuda_nvcc/bin:")
    assert environ["CUDA_VISIBLE_DEVICES"] == "GPU-0a"
    assert "FIRST_START_CACHE_PATH" not in environ
    # compiled code outlives the launch
    assert with_t4.caches() == [Path(environ["CUDA_CACHE_PATH"]).name]
    assert with_t4.clean_caches() == 1
    assert with_t4.caches() == []


def test_assumed_gpu_code_is_replaced_by_the_code_in_the_libraries(tmp_path):
    nightly = Environment(
        "tf-nightly-2.23.0", "2.23.0", "3.13", "", cuda="12.5", gpu_code="sm_90", gpu_code_of="2.21.0"
    )
    packages = tmp_path / "nvidia"
    assert cuda.read_gpu_code(nightly, packages) is None
    for path, code in {
        "tensorflow/libtensorflow_cc.so.2": ["sm_80", "ptx_120"],
        "nvidia/cudnn/lib/libcudnn_ops.so.9": ["sm_80"],
        "nvidia/cublas/lib/libcublas.so.12": ["sm_120"],
    }.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(library([code]))
    read = cuda.read_gpu_code(nightly, packages)
    assert (read.gpu_code, read.cudnn_code, read.is_unread) == ("sm_80", "sm_80", False)


def test_a_launch_gets_the_code_of_the_first_start_after_one_has_succeeded(with_t4, requirement):
    launch = replace(job(REPORTS), **ON_A_GPU)
    kit = {name: data for name, data in launch.files.items() if name.startswith("kit/")}
    first = with_t4.launch(requirement, replace(launch, files=kit)).observations["v"]
    assert "FIRST_START_CACHE_PATH" not in first
    second = with_t4.launch(requirement, launch).observations["v"]
    assert second["FIRST_START_CACHE_PATH"] == first["CUDA_CACHE_PATH"] != second["CUDA_CACHE_PATH"]
    assert with_t4.clean_caches() == 2


def test_a_launch_on_another_gpu_has_a_status_of_its_own(with_t4, requirement):
    source = (
        "say('gpus', gpus=[{'name': 'Tesla T4', 'capability': '7.5', 'pci': '0000:00:1E.0'}]); say('end', status='ok')"
    )
    assert with_t4.launch(requirement, replace(job(source), **ON_A_GPU)).status is Status.OTHER_GPU


def test_an_environment_that_was_not_made_is_unavailable(local, requirement, cache):
    with pytest.raises(CannotRunHereError, match="is missing"):
        local.launch(requirement, job("pass"))


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

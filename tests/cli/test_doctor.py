"""`harness doctor`: what is printed, and nothing about how fast or quiet this machine is."""

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pynvml
import pytest
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.cli.doctor import worded, words
from harness.machine.gpu.host import read
from harness.machine.lock import machine_to_itself
from harness.machine.probes.finding import Finding, Level
from harness.model.errors import CannotRunHereError, Exit, UsageError
from tests.cli.conftest import Harness
from tests.machine.gpu.library import H100, K80, NEW, OLD, Library

CHECKS = [
    "noise",
    "drift",
    "interruptions",
    "timer",
    "steal",
    "other load",
    "SMT",
    "governor",
    "turbo",
    "throttling",
    "power",
    "CPU quota",
    "memory",
    "virtual machine",
]

#: Those that follow, whatever this machine has; others may come between and after them.
SURROUNDINGS = ["Docker", "buildx"]

NOISE = {"score_percent": 12.0, "blocks": 150, "median_seconds": 0.05, "p99": 1.2, "longest": 3.0}
BUSY = {"others": 1.0, "here": 0.5, "cpus": 2, "average": 1.25, "busiest": [], "mostly_unseen": False}
SMT = {"where": "CPU 1", "known": True, "virtual": False, "shared_with": [], "kept_idle": [], "cores": 1, "cpus": 1}
MEMORY = {"total": 2**33, "available": 2**28, "swap_used": 2**30, "swapped_pages": 12, "short": True}
TIMER = {"source": "hpet", "cost_seconds": 1e-6, "resolution_seconds": 7e-8, "slow": True}
DOCKER = {"version": "", "api": "1.45", "where": "remote", "error": "", "old": False}
ROOM = {"free": 9 * 10**9, "needed": 16 * 10**9, "images": 2, "where": "/docker"}
GPU = {"index": 1, "model": "A100", "capability": "8.0", "memory": 40 * 2**30, "processes": [], "partitioned": False}
GPU_PROCESS = {"pid": 7, "name": "", "memory_bytes": None}
NAMED = {"pid": 7, "name": "\x1b[31mred\n`x`", "percent": 99.6}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "--seconds", "200ms", *arguments])


def test_the_document_has_the_score_and_every_check() -> None:
    done = run("--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["score_percent"] >= 0
    assert document["grade"] in {"quiet", "usable", "noisy"}
    assert document["sentence"].startswith(document["grade"].capitalize())
    assert len(document["cpus"]) == 1
    assert document["seconds"] > 0
    assert [check["name"] for check in document["checks"]][: len(CHECKS) + 2] == [*CHECKS, *SURROUNDINGS]
    for check in document["checks"]:
        assert check["level"] in set(Level)
        assert check["value"]
        if check["level"] == "good":
            assert not check["advice"] + check["command"]
    assert "Timing the same work" in done.stderr


def test_the_first_line_is_the_score_and_every_check_has_a_line() -> None:
    done = run("--cpus", "all")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith(("Quiet: a 50 ms", "Usable: a 50 ms", "Noisy: a 50 ms"))
    known = [*CHECKS, *SURROUNDINGS]
    assert [name for line in lines if (name := line.split("  ")[0]) in known] == known
    assert not any(line.endswith(" ") for line in lines)


def test_it_is_refused_while_a_run_measures() -> None:
    with machine_to_itself():
        done = run()
        looked = run("--no-listen")
    assert isinstance(done.exception, CannotRunHereError)
    assert "Another run is measuring" in str(done.exception)
    assert looked.exit_code == 0


def test_without_listening_there_is_no_score() -> None:
    document = json.loads(run("--no-listen", "--json").stdout)
    assert "score_percent" not in document
    assert [check["name"] for check in document["checks"]][:2] == SURROUNDINGS


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")


@pytest.fixture
def has_gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[Library], None]:
    """Give this machine the GPUs that a library tells of."""

    def give(library: Library) -> None:
        monkeypatch.setattr("harness.backends.docker.gpus.host", lambda: read(library))

    return give


def checks(done: Result) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.usefixtures("no_engine")
def test_without_an_engine_that_is_said_and_a_run_on_a_gpu_cannot_be(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([H100], **NEW))
    on_cpu, on_gpu = run("--no-listen", "--json"), run("--no-listen", "--json", "--gpu")
    assert checks(on_cpu)["Docker"]["level"] == "warn"
    assert "No Docker Engine answers" in checks(on_cpu)["Docker"]["value"]
    assert checks(on_gpu)["Docker"]["level"] == "bad"
    assert (on_cpu.exit_code, on_gpu.exit_code) == (0, Exit.CANNOT_RUN_HERE)


@pytest.mark.usefixtures("no_engine")
def test_without_a_gpu_that_is_one_line_and_exit_4_where_one_is_wanted(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([], starts=pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)))
    done = run("--no-listen")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("GPU")]
    assert line.split(maxsplit=2) == ["GPU", "unknown", "none seen (the NVIDIA driver is not loaded)"]
    assert "Environments on" not in done.stdout
    wanted = run("--no-listen", "--gpu")
    assert "GPU     bad" in wanted.stdout
    assert wanted.exit_code == Exit.CANNOT_RUN_HERE


@pytest.mark.usefixtures("no_engine")
def test_each_environment_says_how_it_runs_on_an_old_gpu(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([K80], **OLD))
    done = run("--no-listen", "--json", "-e", "tf2.1[45]", "-e", "tf1.15-ngc")
    document = json.loads(done.stdout)
    assert document["gpus"] == [{"index": 0, "name": "Tesla K80"}]
    assert [(each["name"], each["way"]) for each in document["environments"]] == [
        ("tf2.14", "native"),
        ("tf2.15", "cannot run here"),
        ("tf1.15-ngc", "cannot run here"),
    ]
    assert document["environments"][1]["advice"] == "Use tf2.14."
    assert checks(done)["NVIDIA driver"]["value"] == "470.256.02, knows CUDA 11.4"
    assert checks(done)["GPU 0"]["value"].endswith("used by python (process 41) 1 MiB")


@pytest.mark.usefixtures("no_engine")
def test_environments_of_one_kind_share_a_line(
    has_gpus: Callable[[Library], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    has_gpus(Library([H100], **NEW))
    lines = run("--no-listen").stdout.splitlines()
    at = lines.index("Environments on GPU 0 (NVIDIA H100 80GB HBM3):")
    assert lines[at + 1].split("  ")[0] == "tf1.14, tf1.15"
    assert "Use tf1.15-ngc." in " ".join(lines[at + 1 : at + 3])
    assert any("compiled at first start" in line for line in lines[at:])


@pytest.mark.usefixtures("no_engine")
def test_a_gpu_that_the_machine_does_not_have_is_exit_4(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([H100], **NEW))
    done = run("--no-listen", "--gpus", "1")
    assert isinstance(done.exception, CannotRunHereError)
    assert "NVIDIA H100" in str(done.exception)


def test_an_unknown_environment_is_told_before_listening() -> None:
    done = run("-e", "tf9.9")
    assert isinstance(done.exception, UsageError)
    assert "Timing the same work" not in done.stderr


@pytest.mark.parametrize("arguments", [("--seconds", "soon"), ("--cpus", "0")])
def test_a_wrong_option_gets_a_sentence(arguments: tuple[str, str]) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, UsageError)
    assert arguments[0] in str(done.exception)


def test_an_interrupted_doctor_ends_as_every_command_does(harness: Harness) -> None:
    started = harness.start("doctor", "--seconds", "100s")
    assert started.stderr
    started.stderr.readline()
    started.send_signal(signal.SIGINT)
    output, _ = started.communicate(timeout=60)
    assert started.returncode == Exit.INTERRUPTED
    assert output == ""


@pytest.mark.parametrize(
    ("name", "facts", "value", "advice", "command"),
    [
        ("noise", NOISE, "12 % over 150 blocks of 50 ms", "Change what", "--rounds"),
        ("drift", {"percent": 4.0, "shown": True}, "4 % slower", "changed its frequency", ""),
        ("drift", {"percent": -4.0, "shown": True}, "4 % faster", "changed its frequency", ""),
        (
            "interruptions",
            {"per_second": 130.0, "lost_percent": 2.5, "longest_seconds": 0.004},
            "130 a second of at least 0.1 ms, 2.5 % of the time lost, the longest 4 ms",
            "Something else",
            "",
        ),
        ("timer", TIMER, "hpet;", "does not", "dmesg"),
        ("steal", {"percent": 2.0, "reported": True}, "2 % of the time", "Other virtual machines", ""),
        ("other load", BUSY, "1.00 of 2 CPUs busy with other work, 0.50 of it where", "what else runs", "top"),
        ("other load", {**BUSY, "busiest": [NAMED]}, "red `x` (process 7) 100 %", "what is named", "top"),
        ("SMT", {**SMT, "shared_with": [0]}, "CPU 1", "Work on the other CPU", "echo off"),
        ("SMT", {**SMT, "cpus": 2}, "CPU 1", "ask for 1 at most", "echo off"),
        ("SMT", {**SMT, "cpus": 2, "virtual": True}, "CPU 1", "ask for 1 at most", ""),
        ("governor", {"governor": "powersave", "driver": "intel_pstate"}, "powersave (driver", "follows", "cpupower"),
        ("turbo", {"on": True, "switch": "intel_pstate/no_turbo"}, "on", "heat", "echo 1 |"),
        ("turbo", {"on": True, "switch": "cpufreq/boost"}, "on", "heat", "echo 0 |"),
        ("throttling", {"times": 2, "since_start": 9}, "2 times while listening, 9 since", "too hot", ""),
        ("power", {"source": "battery"}, "on the battery", "Plug", ""),
        ("CPU quota", {"found": True, "quota": 0.5, "cpus": 1}, "0.5 CPUs for", "docker run", ""),
        ("memory", MEMORY, "0.2 GiB of 8.0 GiB available, 1.0 GiB swapped out; 12 pages", "The machine swaps", "ps"),
        ("virtual machine", {"virtual": True}, "yes", "not seen from here", ""),
        ("Docker", {**DOCKER, "error": "No Docker Engine answers"}, "No Docker Engine answers", "Start it", ""),
        ("Docker", {**DOCKER, "version": "19.03.1", "old": True}, "19.03.1, API 1.45, remote", "update it", ""),
        ("buildx", {"version": "", "found": False, "old": False}, "none", "install it", ""),
        ("buildx", {"version": "0.9.1", "found": True, "old": True}, "0.9.1", "update it", ""),
        ("disk room", {**ROOM, "images": 1}, "9.0 GB free in /docker; about 16.0 GB for one image", "Remove", "docker"),
        ("disk room", ROOM, "about 16.0 GB for 2 images to be built", "Remove", "docker"),
        ("no GPU", {"absent": "no driver", "wanted": True}, "none seen (no driver)", "nvidia-smi", ""),
        ("GPU access", {"way": "", "error": "it has none"}, "it has none", "nvidia-container-toolkit", "nvidia-ctk"),
        (
            "GPU",
            {**GPU, "processes": [GPU_PROCESS]},
            "used by a process (process 7)",
            "marked as disturbed",
            "nvidia-smi",
        ),
        ("GPU", {**GPU, "partitioned": True}, "divided into instances (MIG)", "whole GPUs", "-i 1 -mig 0"),
    ],
)
def test_what_is_not_good_says_what_to_change(
    name: str, facts: Mapping[str, Any], value: str, advice: str, command: str
) -> None:
    check = worded(Finding(name, Level.BAD, facts), words())
    assert value in check["value"]
    assert advice in check["advice"]
    assert command in check["command"]
    assert bool(command) == bool(check["command"])


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("timer", {**TIMER, "source": None, "slow": False}),
        ("steal", {"percent": None, "reported": None}),
        ("steal", {"percent": 0.0, "reported": False}),
        ("other load", {**BUSY, "others": None, "here": None, "average": None}),
        ("SMT", {**SMT, "known": False}),
        ("SMT", {**SMT, "virtual": None}),
        ("governor", {"governor": None, "driver": None}),
        ("turbo", {"on": None, "switch": ""}),
        ("throttling", {"times": None, "since_start": None}),
        ("power", {"source": None}),
        ("CPU quota", {"found": False, "quota": None, "cpus": 1}),
        ("memory", {"total": None}),
        ("memory", {**MEMORY, "swapped_pages": None, "short": False}),
        ("other load", {**BUSY, "here": None}),
        ("virtual machine", {"virtual": None}),
        ("buildx", {"version": "", "found": True, "old": False}),
        ("disk room", {**ROOM, "free": None}),
        ("no GPU", {"absent": "no driver", "wanted": False}),
    ],
)
def test_what_is_unknown_is_said_without_advice(name: str, facts: Mapping[str, Any]) -> None:
    check = worded(Finding(name, Level.UNKNOWN, facts), words())
    assert check["value"]
    assert "None" not in check["value"]
    assert (check["advice"], check["command"]) == ("", "")


@pytest.mark.parametrize(
    ("score", "grade", "pinned", "words_of_it"),
    [
        (0.42, "quiet", True, "Quiet: a 50 ms sample of work that does not change scatters by 0.42 % on CPU 1."),
        (1.5, "usable", False, "Usable: a 50 ms sample of work that does not change scatters by 1.5 % on any of"),
        (31.0, "noisy", True, "Noisy: a 50 ms sample of work that does not change scatters by 31 % on CPU 1."),
    ],
)
def test_the_headline_is_the_score_in_words(score: float, grade: str, pinned: bool, words_of_it: str) -> None:
    assert str(words().headline(score, grade, "CPU 1", 2, pinned)).startswith(words_of_it)


def test_several_gpus_are_named_one_after_the_other() -> None:
    from harness.cli.doctor import words

    gpus = [{"index": 0, "name": "Tesla K80"}, {"index": 1, "name": "NVIDIA H100"}]
    assert str(words().environments(gpus)) == "Environments on GPU 0 (Tesla K80) and GPU 1 (NVIDIA H100):"

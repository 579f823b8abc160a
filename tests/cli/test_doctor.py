"""`harness doctor`: what is printed, and nothing about how fast or quiet this machine is."""

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml
import pytest
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.machine.doctor import system
from harness.machine.doctor.check import CheckResult, Level
from harness.machine.doctor.counters import Period
from harness.machine.gpu.host import read
from harness.machine.lock import hold_machine
from harness.model.errors import CannotRunHereError, Exit, UsageError
from tests.cli.conftest import Harness
from tests.machine.gpu.library import DIVIDED, H100, K80, NEW, OLD, Answers, Library

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
    assert lines[0].startswith(("Quiet: the same 50 ms", "Usable: the same 50 ms", "Noisy: the same 50 ms"))
    known = [*CHECKS, *SURROUNDINGS]
    assert [name for line in lines if (name := line.split("  ")[0]) in known] == known
    assert not any(line.endswith(" ") for line in lines)


def test_it_is_refused_while_a_run_measures() -> None:
    with hold_machine():
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
        monkeypatch.setattr("harness.backends.docker.gpus.find_host", lambda: read(library))

    return give


def checks(done: Result) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.usefixtures("no_engine")
def test_without_an_engine_that_is_said_and_a_run_on_a_gpu_cannot_be(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([H100], **NEW))
    on_cpu, on_gpu = run("--no-listen", "--json"), run("--no-listen", "--json", "--gpu")
    assert checks(on_cpu)["Docker"]["level"] == "warn"
    assert "Docker Engine does not answer" in checks(on_cpu)["Docker"]["value"]
    assert checks(on_gpu)["Docker"]["level"] == "bad"
    assert (on_cpu.exit_code, on_gpu.exit_code) == (0, Exit.CANNOT_RUN_HERE)


@pytest.mark.usefixtures("no_engine")
def test_without_a_gpu_that_is_one_line_and_exit_4_where_one_is_wanted(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([], starts=pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)))
    done = run("--no-listen")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("GPU")]
    assert line.split(maxsplit=2) == ["GPU", "unknown", "none found (the NVIDIA driver is not loaded)"]
    assert "Environments on" not in done.stdout
    wanted = run("--no-listen", "--gpu")
    assert "GPU     bad" in wanted.stdout
    assert wanted.exit_code == Exit.CANNOT_RUN_HERE


@pytest.mark.usefixtures("no_engine")
def test_each_environment_says_how_it_runs_on_an_old_gpu(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([K80], **OLD))
    done = run("--no-listen", "--json", "-e", "tf2.1[01]", "-e", "tf1.15-ngc")
    document = json.loads(done.stdout)
    assert document["gpus"] == [{"index": 0, "name": "Tesla K80"}]
    assert [(entry["name"], entry["way"]) for entry in document["environments"]] == [
        ("tf2.10", "native"),
        ("tf2.11", "cannot run here"),
        ("tf1.15-ngc", "cannot run here"),
    ]
    assert document["environments"][1]["advice"] == "Use tf2.10."
    assert checks(done)["NVIDIA driver"]["value"] == "470.256.02, supports CUDA up to 11.4"
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
@pytest.mark.parametrize(
    ("gpu", "environments", "sentence"),
    [
        (H100, ["tf2.1[56]", "tf1.14"], "NVIDIA H100 80GB HBM3: 2 of 3 environments run here: tf2.16 and tf2.15"),
        (H100, ["*"], "NVIDIA H100 80GB HBM3: "),
        (K80, ["tf2.2[01]"], "Tesla K80: no environment runs here."),
    ],
)
def test_the_first_line_is_whether_any_release_runs_on_the_gpu(
    has_gpus: Callable[[Library], None],
    monkeypatch: pytest.MonkeyPatch,
    gpu: Answers,
    environments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    has_gpus(Library([gpu], **NEW))
    typed = [word for name in environments for word in ("-e", name)]
    first, *_ = run("--no-listen", "--gpu", *typed).stdout.splitlines()
    told = json.loads(run("--no-listen", "--gpu", "--json", *typed).stdout)["gpu_sentence"]
    assert told.startswith(sentence)
    assert first == told


@pytest.mark.usefixtures("no_engine")
def test_a_gpu_that_the_machine_does_not_have_is_exit_4(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([H100], **NEW))
    done = run("--no-listen", "--json", "--gpus", "1")
    assert done.exit_code == Exit.CANNOT_RUN_HERE
    asked = checks(done)["requested GPUs"]
    assert asked["level"] == "bad"
    assert "GPU 1 isn't on this machine. The machine has the GPUs 0: NVIDIA H100" in asked["value"]


@pytest.mark.usefixtures("no_engine")
def test_a_divided_gpu_is_told_with_its_instances_and_what_to_type(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([DIVIDED], **NEW))
    told = checks(run("--no-listen", "--json", "--gpu"))
    assert "0:2 1g.5gb (MIG-00000000-0000-0000-0000-000000000001)" in told["GPU 0"]["value"]
    assert told["requested GPUs"]["level"] == "bad"
    assert "--gpus 0:2, or its UUID" in told["requested GPUs"]["advice"]


@pytest.mark.usefixtures("no_engine")
def test_how_the_gpus_that_are_wanted_are_set_is_told_with_commands(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([K80, H100], **NEW))
    told = checks(run("--no-listen", "--json", "--gpus", "1"))
    assert told["GPU 1 power limit"]["command"] == "sudo nvidia-smi -i 1 -pl 700"
    assert {"GPU 1 clocks", "GPU 1 compute mode", "GPU 1 ECC", "GPU 1 PCIe link"} <= set(told)
    assert not [name for name in told if name.startswith("GPU 0 ")]
    # nobody asked for a GPU: what they are is told, and not how they are set
    assert "GPU 1 clocks" not in checks(run("--no-listen", "--json"))


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


def test_what_processes_call_themselves_cannot_change_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = system.check_other_load

    def named(period: Period) -> CheckResult:
        return replace(busy(period), value="\x1b[31mred\u202e (process 7) 100 %\nnoise  good")

    monkeypatch.setattr(system, "CHECKS", [named])
    text, document = run().stdout, json.loads(run("--json").stdout)
    assert "red (process 7) 100 % noise good" in " ".join(text.split())
    assert document["checks"][4]["value"] == "red (process 7) 100 % noise good"


@pytest.mark.usefixtures("no_engine")
def test_several_gpus_are_named_one_after_the_other(has_gpus: Callable[[Library], None]) -> None:
    has_gpus(Library([K80, H100], **NEW))
    lines = run("--no-listen", "--gpus", "0,1").stdout.splitlines()
    assert "Environments on GPU 0 (Tesla K80) and GPU 1 (NVIDIA H100 80GB HBM3):" in lines

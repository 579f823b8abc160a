"""`harness doctor`: what is printed, and nothing about how fast or quiet this machine is."""

import json
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
from harness.model.errors import CannotRunHereError
from tests.machine.gpu.library import DIVIDED, H100, K80, NEW, OLD, Library

#: Those that follow, whatever this machine has; others may come between and after them.
SURROUNDINGS = ["architecture", "Docker", "buildx"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "--seconds", "50ms", *arguments])


@pytest.mark.slow
def test_listening_has_a_score_and_every_check_has_a_line():
    result = run("--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["score_percent"] >= 0
    assert document["grade"] in {"quiet", "usable", "noisy"}
    assert document["sentence"].startswith(document["grade"].capitalize())
    assert len(document["cpus"]) == 1
    names = [check["name"] for check in document["checks"]]
    checks = names[: names.index("architecture")]
    assert len(set(checks)) == len(checks) == len(system.CHECKS)
    assert names[len(checks) : len(checks) + 3] == SURROUNDINGS
    for check in document["checks"]:
        assert check["level"] in set(Level)
        assert check["value"]
        if check["level"] == "good":
            assert not check["advice"] + check["command"]
    lines = run().stdout.splitlines()
    assert lines[0].startswith(("Quiet: ", "Usable: ", "Noisy: "))
    expected = [*checks, *SURROUNDINGS]
    assert [name for line in lines if (name := line.split("  ")[0]) in expected] == expected
    assert not any(line.endswith(" ") for line in lines)


def test_it_does_not_listen_while_a_run_measures():
    with hold_machine():
        refused = run()
        result = run("--no-listen", "--json")
    assert isinstance(refused.exception, CannotRunHereError)
    document = json.loads(result.stdout)
    assert "score_percent" not in document
    assert [check["name"] for check in document["checks"]][:4] == ["measuring now", *SURROUNDINGS]


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")


@pytest.fixture
def has_gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[Library], None]:
    """Give this machine the GPUs that a library tells of."""

    def give(library: Library) -> None:
        monkeypatch.setattr("harness.backends.docker.gpus.find_host", lambda: read(library))

    return give


def checks(result: Result) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(result.stdout)["checks"]}


@pytest.mark.slow
@pytest.mark.usefixtures("no_engine")
def test_what_is_wanted_and_missing_is_exit_4(has_gpus, snapshot):
    absent = Library([], starts=pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
    entries = {}
    for case, library, options, check, code in (
        ("no engine", Library([H100], **NEW), [], "Docker", 0),
        ("no engine for a GPU", Library([H100], **NEW), ["--gpu"], "Docker", 4),
        ("no GPU", absent, [], "GPU", 0),
        ("no GPU where one is wanted", absent, ["--gpu"], "GPU", 4),
        ("another GPU", Library([H100], **NEW), ["--gpus", "1"], "requested GPUs", 4),
        ("a divided GPU", Library([DIVIDED], **NEW), ["--gpu"], "requested GPUs", 4),
    ):
        has_gpus(library)
        result = run("--no-listen", "--json", *options)
        assert result.exit_code == code, case
        entry = checks(result)[check]
        entries[case] = [entry[key].split("unix:")[0] for key in ("level", "value", "advice")]
    assert entries == snapshot


@pytest.mark.usefixtures("no_engine")
def test_each_environment_says_how_it_runs_on_an_old_gpu(has_gpus):
    has_gpus(Library([K80], **OLD))
    result = run("--no-listen", "--json", "-e", "tf2.1[01]", "-e", "tf1.15-ngc")
    document = json.loads(result.stdout)
    assert document["gpus"] == [{"index": 0, "name": "Tesla K80"}]
    assert [(entry["name"], entry["way"]) for entry in document["environments"]] == [
        ("tf2.10", "native"),
        ("tf2.11", "cannot run here"),
        ("tf1.15-ngc", "cannot run here"),
    ]
    assert "tf2.10" in document["environments"][1]["advice"]
    assert checks(result)["NVIDIA driver"]["value"].startswith("470.256.02, ")
    assert checks(result)["GPU 0"]["value"].endswith(" python (process 41) 1 MiB")


@pytest.mark.slow
@pytest.mark.usefixtures("no_engine")
def test_the_first_line_is_whether_any_release_runs_on_the_gpu_and_environments_of_one_kind_share_a_line(
    has_gpus, monkeypatch, snapshot
):
    monkeypatch.setenv("COLUMNS", "400")
    texts = {}
    for case, cards, options in (
        ("some", [H100], ["--gpu", "-e", "tf2.1[56]", "-e", "tf1.14"]),
        ("none", [K80], ["--gpu", "-e", "tf2.2[01]"]),
        ("of one kind", [H100], ["-e", "tf1.1[45]", "-e", "tf2.[567]"]),
        ("two GPUs", [K80, H100], ["--gpus", "0,1", "-e", "tf2.5"]),
    ):
        has_gpus(Library(cards, **NEW))
        first, *lines = run("--no-listen", *options).stdout.splitlines()
        start = next(place for place, line in enumerate(lines) if line.startswith("Environments on"))
        texts[case] = [first, *lines[start:]] if "--gpu" in options else lines[start:]
    assert texts == snapshot
    has_gpus(Library([H100], **NEW))
    result = run("--no-listen", "--gpu", "--json", "-e", "tf2.1[56]", "-e", "tf1.14")
    assert json.loads(result.stdout)["gpu_sentence"] == texts["some"][0]


@pytest.mark.usefixtures("no_engine")
def test_how_the_gpus_that_are_wanted_are_set_is_told_with_commands(has_gpus):
    has_gpus(Library([K80, H100], **NEW))
    wanted = checks(run("--no-listen", "--json", "--gpus", "1"))
    assert wanted["GPU 1 power limit"]["command"] == "sudo nvidia-smi -i 1 -pl 700"
    assert {"GPU 1 clocks", "GPU 1 compute mode"} <= set(wanted)
    assert not [name for name in wanted if name.startswith("GPU 0 ")]
    # nobody asked for a GPU: what they are is told, and not how they are set
    assert "GPU 1 clocks" not in checks(run("--no-listen", "--json"))


@pytest.mark.slow
def test_what_processes_call_themselves_cannot_change_the_terminal(monkeypatch):
    check = system.check_other_load

    def check_named(period: Period) -> CheckResult:
        return replace(check(period), value="\x1b[31mred\u202e (process 7) 100 %\nnoise  good")

    monkeypatch.setattr(system, "CHECKS", [check_named])
    text, document = run().stdout, json.loads(run("--json").stdout)
    assert "red (process 7) 100 % noise good" in " ".join(text.split())
    assert document["checks"][0]["value"] == "red (process 7) 100 % noise good"

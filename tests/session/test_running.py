"""A run by the API: what its listener hears, how it is interrupted, and how two share a machine."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import package_data, session
from harness.analysis.results import Results
from harness.analysis.run_differences import Aspect
from harness.backends import registry
from harness.backends.local.backend import LocalBackend
from harness.backends.verification import Verification
from harness.catalog import adhoc
from harness.catalog.environments import load_environments
from harness.catalog.locks import lock_file
from harness.catalog.project import Project
from harness.cli.running import choose_exit_code
from harness.history.summary import summarize
from harness.machine.gpu import selection as gpus
from harness.machine.lock import hold_machine
from harness.machine.slots import Slot
from harness.model.backend import BackendFacts, LaunchHandle, Preparation
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import CannotRunHereError, Exit, UnavailableError, UsageError
from harness.model.gpu import Gpu, GpuHost, Settings
from harness.model.launch import ON_DEVICE, UNDER_WAY, Job, Launch, Outcome, Role, Status
from harness.model.run import Shard, Stop, StopReason
from harness.report.comparisons import list_lines
from harness.runner.executor import RunExecutor
from harness.runner.rounds import RoundLog
from harness.session.forecast import CUDA, FIRST_START, LAZY_START, PACKAGES
from harness.session.reporting import Written
from harness.session.resuming import find_slot
from harness.session.running import Ended
from harness.store.codec import dump
from harness.store.folder import RunFolder
from tests import runs
from tests.cli.conftest import Harness


@pytest.fixture(autouse=True)
def _any_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a small disk, because the environments of these tests contain no TensorFlow."""
    monkeypatch.setattr(LocalBackend, "check_room", lambda *_: None)


@pytest.fixture
def request_() -> dict[str, object]:
    """Launches as short as can be."""
    short = {"backend": "local", "warmup": 0.0, "measure": 0.005, "seed": 1}
    return {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "rounds": 1, **short}


@pytest.fixture(autouse=True)
def _here(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)


def _as_killed(folder: Path) -> None:
    """Have the run look as if it had been killed before it wrote how its groups ended."""
    stored = RunFolder.open(folder)
    stored.write_run(replace(stored.read_run(), stops={}), signed=True)


class Ears(session.Listener):
    """Keeps what is said, and interrupts after so many launches."""

    def __init__(self, interrupt_after: int = 0) -> None:
        self.said: list[str] = []
        self.ended: list[Launch] = []
        self._after = interrupt_after

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def end(self, launch: Launch) -> None:
        self.ended.append(launch)
        if len(self.ended) == self._after:
            raise KeyboardInterrupt


def test_a_run_without_a_warm_up_measures(request_: dict, capsys: pytest.CaptureFixture[str]) -> None:
    ears = Ears()
    ended = session.run(session.plan(session.Request(**request_)), ears, command=["harness", "matrix"])
    assert ears.said == ["Backend: local environments, because of --backend local."]
    assert [launch.cell for launch in ears.ended] == [launch.cell for launch in ended.results.launches]
    assert ended.results.run.command == ["harness", "matrix"]
    assert ended.results.tables
    assert not ended.broken
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")


def test_a_disk_without_space_for_the_environments_is_refused_before_any_is_created(
    request_: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: LocalBackend, requirements: Sequence[Requirement]) -> None:
        raise CannotRunHereError(f"no space for {len(requirements)} environments")

    monkeypatch.setattr(LocalBackend, "check_room", refuse)
    monkeypatch.setattr(LocalBackend, "prepare", lambda *_: pytest.fail("the disk wasn't checked"))
    with pytest.raises(CannotRunHereError, match="no space for 2 environments"):
        session.run(session.plan(session.Request(**request_)))
    assert not list(Path("results").glob("*"))


def test_a_run_records_the_commit_of_the_users_scenarios_though_harness_is_installed(
    request_: dict, harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "caller"
    (project / "scenarios").mkdir(parents=True)
    (harness.root / "scenarios" / "ways.py").rename(project / "scenarios" / "ways.py")
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "One"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    monkeypatch.delenv("HARNESS_PROJECT")
    monkeypatch.setattr(package_data, "IS_INSTALLED", True)
    monkeypatch.setattr(package_data, "FOLDER", harness.root)
    monkeypatch.chdir(project)
    assert session.run(session.plan(session.Request(**request_, trust=True))).results.run.commit == commit[:12]


def test_pinned_launches_are_given_priority_as_long_as_the_run_goes_on(
    request_: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[int]] = []
    told = BackendFacts("local", priority="magic")

    def give_priority(_: LocalBackend, cpus: Sequence[int]) -> list[str]:
        asked.append(cpus)
        return ["They have it."]

    monkeypatch.setattr(LocalBackend, "give_priority", give_priority)
    session.run(session.plan(session.Request(**request_, cpus="all")))
    assert not asked
    for facts, times in ((told, 2), (replace(told, priority=""), 1)):
        monkeypatch.setattr(LocalBackend, "facts", lambda _, facts=facts: facts)
        ears = Ears(interrupt_after=1)
        ended = session.run(session.plan(session.Request(**request_)), ears)
        session.resume(ended.folder, ears)
        assert ears.said.count("They have it.") == times
        assert ended.results.run.backend.priority == facts.priority


def test_an_interrupted_run_has_what_was_finished_and_goes_on(request_: dict) -> None:
    request_["rounds"] = 2
    ended = session.run(session.plan(session.Request(**request_)), Ears(interrupt_after=2))
    assert ended.interrupted
    assert len(ended.results.launches) == 2
    assert (ended.folder / "report.md").exists()
    ears = Ears()
    again = session.resume(ended.folder, ears)
    assert ears.said == ["Backend: local environments, because the run started with it."]
    assert not again.interrupted
    assert {launch.round for launch in again.results.launches} == {0, 1, 2}


def test_a_run_is_continued_to_more_rounds_and_what_it_had_is_recorded(request_: dict) -> None:
    request_["rounds"] = 3
    folder = session.run(session.plan(session.Request(**request_))).folder
    (group,) = session.read(folder).run.plan.groups
    again = session.resume(folder, rounds=5)
    assert again.results.run.looks == [{group.name: 3}]
    assert again.results.run.stops == {group.name: Stop(StopReason.ROUNDS, 5)}
    assert {launch.round for launch in again.results.launches} == set(range(6))
    assert [value.compared.level for row in again.results.tables[0].rows for value in row.values if value.compared] == (
        pytest.approx([1.0 - 0.05 * 2.0 / 5.0])
    )
    assert "This run was reported after 3 rounds, and then continued." in (folder / "report.md").read_text()
    assert session.resume(folder, rounds=6).results.run.looks == [{group.name: 3}, {group.name: 5}]


def test_a_budget_of_a_run_that_is_continued_is_what_may_be_spent_from_now_on(request_: dict) -> None:
    folder = session.run(session.plan(session.Request(**request_))).folder
    before = session.read(folder)
    spent = sum(launch.seconds for launch in before.launches)
    found = session.load_earlier(folder, budget=600.0)
    assert found.run.plan.budget_seconds == pytest.approx(spent + 600.0)
    assert (found.run.plan.rounds, found.is_longer, found.over) == (100, True, "")
    assert session.load_earlier(folder, budget=600.0, rounds=7).run.plan.rounds == 7
    # a requested budget is strict, also after the budget of a suite
    stored = RunFolder.open(folder)
    wish = replace(found.run.plan, rounds=9, budget_seconds=spent, budget_is_wish=True)
    stored.write_run(replace(stored.read_run(), plan=wish, suite="quick"), signed=True)
    assert not session.load_earlier(folder, budget=600.0).run.plan.budget_is_wish
    assert session.load_earlier(folder).run.plan.budget_is_wish
    again = session.resume(folder, budget=0.001)
    assert (again.results.launches, again.interrupted) == (before.launches, False)
    assert {stop.reason for stop in again.results.run.stops.values()} == {StopReason.BUDGET}
    # one round is too few for a verdict
    assert session.load_earlier(folder).over == (
        f"The budget of {folder} is spent: it has 1 round. To continue it: harness matrix --resume {folder} --rounds 3"
    )


def test_a_run_that_is_complete_is_reported_again_and_says_what_continues_it(request_: dict) -> None:
    request_["rounds"] = 2
    folder = session.run(session.plan(session.Request(**request_))).folder
    (folder / "report.md").unlink()
    for more in ({}, {"rounds": 2}):
        ears = Ears()
        again = session.resume(folder, ears, **more)
        told = f"{folder} is complete: it has 2 rounds. To continue it: harness matrix --resume {folder} --rounds 3"
        assert (ears.said, ears.ended) == ([told], [])
        assert again.written.files
        assert (folder / "report.md").exists()
        assert again.results.run.looks == []


def test_a_run_has_no_fewer_rounds_than_it_has(request_: dict) -> None:
    request_["rounds"] = 2
    folder = session.run(session.plan(session.Request(**request_))).folder
    with pytest.raises(UsageError, match="has 2 rounds, and --rounds 1 adds none"):
        session.resume(folder, rounds=1)


def test_an_interruption_is_no_look_until_the_plan_is_another_one(request_: dict) -> None:
    request_["rounds"] = 3
    # a pilot and two rounds of two cells and the control
    folder = session.run(session.plan(session.Request(**request_)), Ears(interrupt_after=9)).folder
    (group,) = session.read(folder).run.plan.groups
    made = RoundLog(session.read(folder).run.plan, session.read(folder).launches).rounds(group)
    assert session.load_earlier(folder, rounds=2).run.looks == [{group.name: made}]
    assert session.load_earlier(folder, rounds=3).run.looks == []
    assert session.resume(folder).results.run.looks == []


@pytest.mark.parametrize("reason", [StopReason.PRECISION, StopReason.NO_NUMBERS])
def test_a_run_whose_groups_ended_for_good_has_nothing_to_continue(request_: dict, reason: StopReason) -> None:
    folder = session.run(session.plan(session.Request(**request_))).folder
    stored = RunFolder.open(folder)
    run = stored.read_run()
    stored.write_run(replace(run, stops={name: Stop(reason, 1) for name in run.stops}), signed=True)
    for more in ({}, {"rounds": 9}, {"budget": 60.0}):
        found = session.load_earlier(folder, **more)
        assert found.over == (
            f"{folder} is complete: none of its groups needs another round. To measure more, start a new run."
        )


def test_a_run_that_was_killed_while_it_was_continued_goes_on_to_the_longer_plan(request_: dict) -> None:
    request_["rounds"] = 2
    folder = session.run(session.plan(session.Request(**request_))).folder
    assert session.resume(folder, Ears(interrupt_after=1), rounds=3).interrupted
    again = session.resume(folder)
    assert [stop.rounds for stop in again.results.run.stops.values()] == [3]
    assert len(again.results.run.looks) == 1


def test_a_received_run_is_not_gone_on_with(request_: dict, tmp_path: Path) -> None:
    ended = session.run(session.plan(session.Request(**request_)), Ears(interrupt_after=2))
    stored = ended.folder / "run.json"
    text = stored.read_text()
    for other in (text.replace('"rounds": 1', '"rounds": 2'), dump(ended.results.run, indent=2).decode() + "\n"):
        assert other != text
        stored.write_text(other)
        ears = Ears()
        with pytest.raises(UsageError, match="wasn't started by this user on this machine"):
            session.resume(ended.folder, ears)
        assert (ears.said, ears.ended) == ([], [])
    stored.write_text(text)
    assert not session.resume(ended.folder).interrupted


GPUS = """
variable "ENVIRONMENTS" {
  default = [
    { name = "gone", tensorflow = "2.0.0", python = "3.11", as_of = "2019-09-01T00:00:00Z", cuda = "10.0", cudnn = "7.4", gpu_code = "sm_70" },
    { name = "there", tensorflow = "2.4.0", python = "3.11", as_of = "2019-11-01T00:00:00Z", cuda = "11.0", cudnn = "8.0", gpu_code = "sm_80" },
  ]
}
"""  # noqa: E501
SUITES = """
[headline]
environments = ["gone"]
[headline.instead]
gone = ["there"]
[[headline.select]]
scenario = "ways"
way = ["fine"]
"""


def test_what_stands_in_is_said_stored_reported_and_kept(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By local environments, in which no launch finds a GPU: that run has no result, and has failed."""
    (harness.root / "docker-bake.hcl").write_text(GPUS)
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES)
    for name in ("gone", "there"):
        (harness.root / "images" / "locks" / f"{name}-gpu.txt").write_text("# nothing\n")
    card = Gpu(0, "GPU-86", "NVIDIA GeForce RTX 3090", (8, 6), 24 * 2**30)
    host = GpuHost([card], "550.54.15", (12, 4))
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: "nothing")
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)
    told = "there replaces gone, which the NVIDIA GeForce RTX 3090 cannot run (CUDA 10.0 is older than GPUs of"
    ears = Ears()
    ended = session.run(session.plan(session.Request(**request_, gpu=True)), ears)
    _as_killed(ended.folder)
    assert [sentence for sentence in ears.said if sentence.startswith(told)]
    again = Ears()
    session.resume(ended.folder, again)
    assert [sentence for sentence in again.said if sentence.startswith(told)]
    found = session.read(ended.folder)
    assert [(entry.environment, entry.role) for entry in found.run.plan.stand_ins] == [("there", "gone")]
    for name in ("report.md", "report.html"):
        assert told in (ended.folder / name).read_text()
    assert told in (ended.folder / "report.md").read_text()
    assert choose_exit_code(ended, None) is Exit.CELLS_FAILED


def test_the_driver_compiles_once_per_environment_before_any_scenario_runs(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launches of the scenario itself fail: they find no GPU."""
    (harness.root / "docker-bake.hcl").write_text(GPUS.replace('"sm_80"', '"sm_70 compute_80"'))
    for name in ("gone", "there"):
        (harness.root / "images" / "locks" / f"{name}-gpu.txt").write_text("# not installed\n")  # not another test's
    host = GpuHost([Gpu(0, "GPU-90", "NVIDIA H100", (9, 0), 80 * 2**30)], "550.54.15", (12, 4))
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: "nothing")
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)
    jobs: list[Job] = []

    def launch(self: LocalBackend, requirement: Requirement, job: Job) -> Outcome:
        jobs.append(job)
        return Outcome(Status.TIMEOUT, error="it was still running after 7200 s")

    monkeypatch.setattr(LocalBackend, "launch", launch)
    planned = session.plan(session.Request(**request_, environments=["there"], gpu=True))
    outlook = session.estimate_duration(planned)
    assert (outlook.first_starts, outlook.seconds > FIRST_START) == (1, True)
    # TensorFlow's packages, and NVIDIA's libraries once
    assert outlook.download_bytes == PACKAGES[Device.GPU] + CUDA
    ears = Ears()
    session.run(planned, ears)
    assert [(job.cell.environment, {name.partition("/")[0] for name in job.files}) for job in jobs] == [
        ("there", {"kit"})
    ]
    assert jobs[0].script in jobs[0].files
    assert any("The first start of there failed (timeout): it was still running" in sentence for sentence in ears.said)


def test_an_environment_whose_interpreter_is_missing_is_replaced_and_a_named_one_is_not(
    request_: dict, harness: Harness
) -> None:
    (harness.root / "docker-bake.hcl").write_text(GPUS.replace("3.11", "3.60", 1))
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES)
    for name in ("gone", "there"):
        (harness.root / "images" / "locks" / f"{name}-cpu.txt").write_text("# nothing\n")
    told = "there replaces gone, which this machine cannot run (Python 3.60 is missing"
    ears = Ears()
    ended = session.run(session.plan(session.Request(**request_)), ears)
    assert [sentence for sentence in ears.said if sentence.startswith(told)]
    assert "This machine can create there. Example: harness matrix -e there -s ways" in " ".join(ears.said)
    assert told in (ended.folder / "report.md").read_text()
    assert {launch.cell.environment for launch in session.read(ended.folder).launches} == {"there"}
    # every shard of a run has the same environments
    assert not session.plan(session.Request(**request_, shard=Shard(1, 2))).plan.stand_ins
    assert not session.plan(session.Request(**request_, slots="2")).plan.stand_ins
    with pytest.raises(CannotRunHereError, match=r"Python 3\.60 isn't installed on this machine") as refused:
        session.run(session.plan(session.Request(**request_, environments=["gone"])))
    assert "Example: harness matrix -e there -s ways" in refused.value.advice


@pytest.mark.parametrize(("inside", "advice"), [("Docker", "such as python:3.60-slim, for gone and gone2."), ("", "")])
def test_a_container_that_can_make_nothing_is_told_which_image_can(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch, inside: str, advice: str
) -> None:
    (harness.root / "docker-bake.hcl").write_text(GPUS.replace("3.11", "3.60").replace('"there"', '"gone2"'))
    monkeypatch.setattr("harness.machine.host.detect_container", lambda: inside)
    for name in ("gone", "gone2"):
        (harness.root / "images" / "locks" / f"{name}-cpu.txt").write_text("# nothing\n")
    with pytest.raises(CannotRunHereError, match=r"Python 3\.60 isn't installed on this machine") as refused:
        session.run(session.plan(session.Request(**request_, environments=["gone"])))
    assert refused.value.advice.endswith(advice or "--backend docker")


def test_what_comes_next_stands_in_for_what_this_machine_cannot_have(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = GPUS.replace('"there"', '"next"').partition("[")[2].splitlines()[2]
    (harness.root / "docker-bake.hcl").write_text(GPUS.replace("  ]\n", f"{third}\n  ]\n"))
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES.replace('["there"]', '["there", "next"]'))
    for name in ("gone", "there", "next"):
        (harness.root / "images" / "locks" / f"{name}-gpu.txt").write_text("# nothing\n")
    card = Gpu(0, "GPU-86", "NVIDIA GeForce RTX 3090", (8, 6), 24 * 2**30)
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: GpuHost([card], "550.54.15", (12, 4)))
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: "nothing")
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)
    made = LocalBackend.prepare

    def prepare(backend: LocalBackend, requirements: Sequence[Requirement], *more: Any) -> Preparation:
        found = made(
            backend, [requirement for requirement in requirements if requirement.environment.name != "there"], *more
        )
        error = UnavailableError("The image harness/there:gpu could not be built:\nno such host", "Pull it.")
        missing = (
            {"there": error} if any(requirement.environment.name == "there" for requirement in requirements) else {}
        )
        return replace(found, unavailable=missing)

    monkeypatch.setattr(LocalBackend, "prepare", prepare)
    ears = Ears()
    ended = session.run(session.plan(session.Request(**request_, gpu=True)), ears)
    found = session.read(ended.folder).run
    assert [(entry.environment, entry.role) for entry in found.plan.stand_ins] == [("next", "gone")]
    assert {launch.cell.environment for launch in session.read(ended.folder).launches} == {"next"}
    told = (
        "The suite prefers there as a substitute for gone, but there is not available: The image harness/there:gpu "
        "could not be built."
    )
    assert [sentence for sentence in ears.said if sentence.startswith("there is not available here: ")]
    assert told in ears.said[-1]
    assert told in (ended.folder / "report.md").read_text()


def _use_nightly(harness: Harness, monkeypatch: pytest.MonkeyPatch, verify: Callable[..., Verification]) -> Environment:
    """Return a nightly wheel with assumed GPU code, beside the release "there", on a machine with an RTX 3090."""
    (harness.root / "docker-bake.hcl").write_text(GPUS)
    there = load_environments(Project.find())["there"]
    asked = "tf-nightly==2.23.0.dev1"
    nightly = replace(there, name="tf-nightly-2.23.0.dev1", tensorflow="2.23.0.dev1", gpu_code_of="2.4.0", asked=asked)
    adhoc.keep(nightly)
    for environment in (there, nightly):
        lock_file(Project.find(), environment, Device.GPU).write_text("# nothing\n")
    card = Gpu(0, "GPU-86", "NVIDIA GeForce RTX 3090", (8, 6), 24 * 2**30)
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: GpuHost([card], "550.54.15", (12, 4)))
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: "nothing")
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)
    monkeypatch.setattr(LocalBackend, "verify", verify)
    return nightly


@pytest.mark.parametrize(
    ("code", "anyway", "measured"),
    [
        ("sm_86", False, {"there", "tf-nightly-2.23.0.dev1"}),
        ("sm_90", False, {"there"}),
        ("sm_90", True, {"there", "tf-nightly-2.23.0.dev1"}),
    ],
)
def test_the_gpu_code_of_a_nightly_wheel_is_read_before_it_is_launched(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch, code: str, *, anyway: bool, measured: set[str]
) -> None:
    nightly = _use_nightly(harness, monkeypatch, lambda *_: read)
    read = Verification(1, read=replace(nightly, gpu_code=code, gpu_code_of=""))
    ears = Ears()
    planned = session.plan(
        session.Request(**request_, environments=["there", nightly.name], gpu=True, try_anyway=anyway)
    )
    ended = session.run(planned, ears)
    results = session.read(ended.folder)
    assert {launch.cell.environment for launch in results.launches} == measured
    assert f"GPU code of {nightly.name}: {code}." in ears.said
    # what is stored is what was read
    assert {entry.gpu_code for entry in results.run.environments if entry.name == nightly.name} == {code}
    assert {entry.cell.environment for entry in results.run.plan.unavailable} == {"there", nightly.name} - measured
    assert adhoc.load_saved(nightly.name) == read.read


def test_a_nightly_wheel_whose_gpu_code_cannot_be_read_is_launched(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(*_: object) -> Verification:
        raise CannotRunHereError("It does not start.")

    nightly = _use_nightly(harness, monkeypatch, verify)
    ears = Ears()
    ended = session.run(session.plan(session.Request(**request_, environments=[nightly.name], gpu=True)), ears)
    assert f"The GPU code of {nightly.name} could not be read: It does not start." in ears.said
    assert {launch.cell.environment for launch in session.read(ended.folder).launches} == {nightly.name}


def test_a_run_is_not_resumed_on_a_gpu_that_is_set_otherwise_and_locks_its_clocks_again(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (harness.root / "docker-bake.hcl").write_text(GPUS)
    for name in ("gone", "there"):
        (harness.root / "images" / "locks" / f"{name}-gpu.txt").write_text("# nothing\n")
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: "nothing")
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)

    def limited(watts: float) -> None:
        settings = Settings(power_limit_watts=watts, pcie_width=16)
        card = Gpu(0, "GPU-86", "NVIDIA GeForce RTX 3090", (8, 6), 24 * 2**30, settings=settings)
        host = GpuHost([card], "550.54.15", (12, 4))
        monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)

    around = held(monkeypatch)
    limited(350.0)
    asked = session.Request(**request_, gpu=True, environments=["there"], lock_clocks="1410")
    ended = session.run(session.plan(asked))
    _as_killed(ended.folder)
    (told,) = ended.results.run.host["gpus"]
    assert (told["power_limit_watts"], told["pcie_width"], told["locked_sm_clock_mhz"]) == (350.0, 16, 1410)
    limited(250.0)
    with pytest.raises(CannotRunHereError, match=r"another machine: GPU 0 power limit 350 W → 250 W\."):
        session.resume(ended.folder)
    limited(350.0)
    around.clear()
    assert not session.resume(ended.folder).interrupted
    assert around == ["[0] kept up", "[0] locked to '1410'", "unlocked", "let go"]


def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to the GPUs around a run."""
    around: list[str] = []

    @contextmanager
    def kept_open(cards: Sequence[Gpu]) -> Iterator[None]:
        around.append(f"{[card.index for card in cards]} kept up")
        try:
            yield
        finally:
            around.append("let go")

    @contextmanager
    def locked(cards: Sequence[Gpu], clock: str) -> Iterator[None]:
        around.append(f"{[card.index for card in cards]} locked to {clock!r}")
        try:
            yield
        finally:
            around.append("unlocked")

    monkeypatch.setattr("harness.session.running.keep_driver_loaded", kept_open)
    monkeypatch.setattr("harness.session.running.clocks.lock_clocks", locked)
    return around


def test_clocks_are_locked_before_anything_is_made_and_unlocked_where_a_run_cannot_be(
    request_: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = held(monkeypatch)

    def refuse(*_: object, **__: object) -> None:
        around.append("asked for an engine")
        raise CannotRunHereError("Docker Engine does not answer.")

    monkeypatch.setattr("harness.session.running.registry.choose", refuse)
    planned = session.plan(session.Request(**request_))
    limits = replace(planned.plan.limits, gpus=("0",))
    card = Gpu(0, "GPU-0", "NVIDIA H100", (9, 0), 80 * 2**30)
    planned = replace(planned, plan=replace(planned.plan, limits=limits, lock_clocks="base"), cards=[card])
    ears = Ears()
    with pytest.raises(CannotRunHereError, match="Docker Engine does not answer"):
        session.run(planned, ears)
    assert around == ["[0] kept up", "[0] locked to 'base'", "asked for an engine", "unlocked", "let go"]
    assert ears.said == ["The clocks of the GPUs are locked for this run, to the base clock."]
    assert not Path("results").exists()


def test_a_profile_goes_the_same_way_and_is_no_run_to_go_on_with(request_: dict) -> None:
    asked = {name: request_[name] for name in ("scenarios", "axes", "backend", "seed")}
    ended = session.run(session.plan(session.ProfileRequest(**asked, calls=3)))
    assert {launch.role for launch in ended.results.launches} == {Role.PROFILE}
    assert {"profile.md", "profile.html"} <= {path.name for path in ended.written.files}
    with pytest.raises(UsageError, match="has profiles"):
        session.resume(ended.folder)
    with pytest.raises(UsageError, match="has profiles"):
        session.export(ended.folder, "json")  # type: ignore[arg-type]


def test_a_run_waits_for_another_one_where_it_is_asked_to(request_: dict) -> None:
    planned = session.plan(session.Request(**request_))
    is_free, waits = threading.Event(), threading.Event()

    class Waiting(Ears):
        def say(self, sentence: str) -> None:
            super().say(sentence)
            waits.set()

    ears = Waiting()

    def another() -> None:
        with hold_machine():
            is_free.set()
            waits.wait(60)

    other = threading.Thread(target=another)
    other.start()
    is_free.wait()
    with pytest.raises(CannotRunHereError, match=r"Another run is measuring(.|\n)*--wait"):
        session.run(planned)
    ended = session.run(planned, ears, wait=True)
    other.join()
    assert ears.said[0].startswith("Another run is measuring on this machine. It is held by process ")
    assert ears.said[0].endswith("Waiting for it.")
    assert ended.results.launches


def slots() -> list[Slot]:
    """Return two slots with all CPUs that this process may use, so that a launch uses only a part of its slot."""
    return [Slot(tuple(sorted(os.sched_getaffinity(0))))] * 2


def test_a_run_in_a_slot_has_its_part_of_the_memory_and_is_resumed_with_all_cpus_of_the_slot(
    request_: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory: list[float] = []

    def make_executor(*values: Any, **named: Any) -> RunExecutor:
        made = RunExecutor(*values, **named)
        memory.append(made.memory)
        return made

    monkeypatch.setattr("harness.session.running.RunExecutor", make_executor)
    monkeypatch.setattr("harness.session.running.host.read_free_memory", lambda: 2**34)
    ended = session.run(session.plan(session.Request(**request_)), Ears(interrupt_after=1), slots=slots())
    found = session.read(ended.folder).run
    assert (found.slots, tuple(found.slot_cpus)) == (2, slots()[0].cpus)
    assert len(found.plan.limits.cpus or ()) == 1
    assert find_slot(ended.folder) == slots()[0]
    again = session.resume(ended.folder)
    assert not again.interrupted
    assert len(again.results.launches) > len(ended.results.launches)
    # half of the free memory, in two slots
    assert memory == [2**32, 2**32]


def test_an_environment_that_cannot_be_prepared_is_not_built_beside_other_slots(
    request_: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    made = LocalBackend.prepare

    def prepare(backend: LocalBackend, requirements: Sequence[Requirement], *more: Any) -> Preparation:
        asked.append([requirement.name for requirement in requirements])
        found = made(backend, [requirement for requirement in requirements if requirement.name != "old"], *more)
        missing = {
            requirement.name: UnavailableError("No Python 3.7 is here.")
            for requirement in requirements
            if requirement.name == "old"
        }
        return replace(found, unavailable=missing)

    monkeypatch.setattr(LocalBackend, "prepare", prepare)
    monkeypatch.setattr(LocalBackend, "unprepared", lambda _, requirements: list(requirements))
    ears = Ears()
    planned = session.plan(session.Request(**request_))
    ended = session.run(planned, ears, slots=slots())
    assert asked == [["old", "new"], ["new"]]
    assert ears.said.count("old is not available here: No Python 3.7 is here.") == 1
    assert {entry.cell.environment for entry in ended.results.run.plan.unavailable} == {"old"}
    assert {launch.cell.environment for launch in ended.results.launches} == {"new"}


def test_an_outlook_is_a_guess_before_the_first_run_and_what_it_took_afterwards(request_: dict) -> None:
    planned = session.plan(session.Request(**request_))
    before = session.estimate_duration(planned)
    # a round of two cells and a control
    assert before.seconds == pytest.approx(3 * 3.005)
    assert (before.basis, before.unknown, before.makes) == ("", 2, "local environment")
    ended = session.run(planned)
    after = session.estimate_duration(planned)
    assert (after.basis, after.unknown, after.unprepared) == (ended.folder.name, 0, [])
    took = [launch.seconds for launch in ended.results.launches if launch.role is not Role.PILOT]
    assert min(took) / 2 < after.seconds / 3 < 2 * max(took)


def test_an_outlook_passes_over_damaged_runs_and_keeps_to_the_budget(request_: dict) -> None:
    damaged = Path("results", "9999-01-01T00-00-00Z-0000")
    damaged.mkdir(parents=True)
    (damaged / "run.json").write_text("{")
    planned = session.plan(session.Request(**{**request_, "rounds": 100, "budget": 60.0}))
    assert session.estimate_duration(planned).seconds == 60.0


def test_a_launch_that_ended_under_tensorflow_s_profiler_and_was_made_again_is_no_failure(tmp_path: Path) -> None:
    lost = runs.launch(status=Status.FAILED, role=Role.PILOT, round=0)
    under = replace(lost, observations={ON_DEVICE: UNDER_WAY})
    results = Results(runs.run(), [under, runs.launch(), lost])
    assert Ended(tmp_path, results, Written((), ()), interrupted=False, refused={}).broken == [lost]


@pytest.fixture
def both(request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, tuple[str, ...]]]:
    """Make launches on a GPU run on the CPU, and return a list of each launch's device, lock and GPUs."""
    (harness.root / "docker-bake.hcl").write_text(GPUS)
    for name in ("there-cpu", "there-gpu"):
        (harness.root / "images" / "locks" / f"{name}.txt").write_text(f"# {name}\n")
    card = Gpu(0, "GPU-86", "NVIDIA GeForce RTX 3090", (8, 6), 24 * 2**30)
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: GpuHost([card], "550.54.15", (12, 4)))
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: None)
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)
    hold, launched = LocalBackend.hold, list[tuple[str, str, tuple[str, ...]]]()

    def hold_on_cpu(backend: LocalBackend, requirement: Requirement, job: Job) -> AbstractContextManager[LaunchHandle]:
        launched.append((job.cell.device.value, requirement.lock.path.name, job.limits.gpus))
        cell = replace(job.cell.anywhere, device=Device.CPU)
        environ = {**job.environ, "LAUNCHED_ON": job.cell.device.value}
        limits = replace(job.limits, gpus=())
        return hold(backend, requirement, replace(job, cell=cell, limits=limits, environ=environ))

    monkeypatch.setattr(LocalBackend, "hold", hold_on_cpu)
    request_ |= {"environments": ["there"], "device": [Device.CPU, Device.GPU], "rounds": 3}
    return launched


def test_both_devices_are_measured_one_after_the_other_and_compared(
    request_: dict, both: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    ended = session.run(session.plan(session.Request(**request_)), Ears(interrupt_after=4))
    assert set(both) == {("cpu", "there-cpu.txt", ()), ("gpu", "there-gpu.txt", ("0",))}
    ended = session.resume(ended.folder)
    run, results = ended.results.run, ended.results
    assert set(run.images) == set(run.pins) == {"there", "there:gpu"}
    assert len(set(run.images.values())) == 2
    (table,) = results.tables
    (line,) = list_lines(table)
    compared = line.compared
    assert line.what == "gpu vs cpu, there"
    assert (compared.cell.device, compared.other.device, compared.ratio.rounds) == (Device.GPU, Device.CPU, 3)
    assert {launch.cell for launch in results.launches} == {compared.cell, compared.other}
    assert "there:gpu" in (ended.folder / "details.md").read_text()
    assert choose_exit_code(ended, None) is Exit.OK


@pytest.mark.parametrize(("cuda", "kind"), [("11.0", "first_starts"), ("12.2", "lazy_starts")])
@pytest.mark.usefixtures("both")
def test_a_first_start_is_expected_unless_this_driver_already_compiled_for_this_gpu(
    request_: dict, harness: Harness, monkeypatch: pytest.MonkeyPatch, cuda: str, kind: str
) -> None:
    code = GPUS.replace('"11.0"', f'"{cuda}"').replace('"sm_80"', '"sm_70 compute_80"')
    (harness.root / "docker-bake.hcl").write_text(code.replace('cudnn = "8.0"', 'cudnn = "8.9"'))
    request_ |= {"device": [Device.GPU], "rounds": 1, "axes": {"way": ["fine"], "speed": ["fast"]}}
    seconds = {"first_starts": FIRST_START, "lazy_starts": LAZY_START}[kind]

    def estimate(model: str = "NVIDIA H100", driver: str = "550.54.15") -> tuple[int, bool]:
        host = GpuHost([Gpu(0, "GPU-90", model, (9, 0), 80 * 2**30)], driver, (12, 4))
        monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
        outlook = session.estimate_duration(session.plan(session.Request(**request_)))
        return getattr(outlook, kind), outlook.seconds > seconds

    monkeypatch.setattr(LocalBackend, "caches", lambda _: ["harness-ptx-there"])
    assert estimate() == (1, True)
    session.run(session.plan(session.Request(**request_)))
    assert estimate() == (0, False)
    assert estimate(driver="570.86.10") == (1, True)
    assert estimate("NVIDIA H200") == (1, True)
    monkeypatch.setattr(LocalBackend, "caches", lambda _: [])  # after `harness clean --caches`
    assert estimate() == (1, True)


def test_runs_on_both_devices_are_compared_with_runs_on_one_and_have_the_same_series(
    request_: dict, both: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    folders = [
        session.run(session.plan(session.Request(**{**request_, "device": devices}))).folder
        for devices in ([Device.CPU, Device.GPU], [Device.GPU])
    ]
    pair = session.compare(*folders, any_host=True)
    assert {(change.cell.device, change.cell.environment) for change in pair.changes.cells} == {(Device.GPU, "there")}
    assert not [found for found in pair.differences if found.part is Aspect.ENVIRONMENT]
    both_points, (alone,) = (summarize(session.read(folder)).points for folder in folders)
    on_cpu, on_gpu = both_points
    assert (on_cpu.device, on_gpu.device, on_gpu.axes, on_gpu.against) == (
        "cpu",
        "gpu",
        alone.axes,
        {**alone.axes, "device": "cpu"},
    )


#: A step takes 2 ms per image on the CPU, and 20 ms on the GPU, which is certain in three rounds on any machine.
BATCHES = """\
# /// script
# requires-python = ">=3.6"
#
# [tool.harness]
# title = "Batches"
#
# [tool.harness.axes]
# batch = { sweep = [1, 64] }
# ///
import os, time


def scenario(bench, batch):
    seconds = 0.020 if os.environ["LAUNCHED_ON"] == "gpu" else 0.002 * int(batch)
    bench.measure(lambda: time.sleep(seconds))
"""


def test_a_sweep_on_both_devices_reports_the_size_from_which_on_the_gpu_is_faster(
    request_: dict, write_scenario: Callable[[str, str], Path], both: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    write_scenario("batches", BATCHES)
    request_ |= {"scenarios": ["batches"], "axes": {"batch": ["1", "64"]}, "measure": 0.1}
    ended = session.run(session.plan(session.Request(**request_)))
    assert not ended.broken
    assert {launch.round for launch in ended.results.launches} >= {1, 2, 3}
    assert {(device, gpus) for device, _, gpus in both} == {("cpu", ()), ("gpu", ("0",))}
    sentence = (
        "From batch 64 on, the GPU is faster than the CPU. The crossover is between batch 1 (slower) and batch 64 "
        "(there)."
    )
    assert sentence in (ended.folder / "report.md").read_text()
    assert sentence in (ended.folder / "report.html").read_text()

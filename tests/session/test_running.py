"""Runs by the API: messages to the listener, stored results, and two runs on one machine."""

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import package_data, session
from harness.analysis.results import Results
from harness.backends.local.backend import LocalBackend
from harness.machine.lock import hold_machine
from harness.machine.slots import Slot
from harness.model.backend import BackendFacts, Preparation
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, UnavailableError
from harness.model.launch import ON_DEVICE, UNDER_WAY, Role, Status
from harness.runner.executor import RunExecutor
from harness.session.reporting import Written
from harness.session.resuming import find_slot
from harness.session.running import Ended
from tests import runs
from tests.commands import git
from tests.session.conftest import Ears, make_run

pytestmark = pytest.mark.usefixtures("in_project")


@pytest.mark.slow
def test_a_run_without_a_warm_up_measures_silently_and_tells_how_long_the_next_one_takes(options, capsys):
    ears, planned = Ears(), session.plan(session.Request(**options))
    before = session.estimate_duration(planned)
    # a round of two cells and a control
    assert before.seconds == pytest.approx(3 * 3.005)
    assert (before.basis, before.unknown, before.makes) == ("", 2, "local environment")
    completed = session.run(planned, ears, command=["harness", "matrix"])
    assert [launch.cell for launch in ears.launches] == [launch.cell for launch in completed.results.launches]
    assert completed.results.run.command == ["harness", "matrix"]
    assert completed.results.tables
    assert not completed.broken
    assert capsys.readouterr() == ("", "")
    after = session.estimate_duration(planned)
    assert (after.basis, after.unknown, after.unprepared) == (completed.folder.name, 0, [])
    seconds = [launch.seconds for launch in completed.results.launches if launch.role is not Role.PILOT]
    assert min(seconds) / 2 < after.seconds / 3 < 2 * max(seconds)


def test_a_disk_without_space_for_the_environments_is_refused_before_any_is_created(options, monkeypatch):
    def refuse(_: LocalBackend, requirements: Sequence[Requirement]) -> None:
        raise CannotRunHereError(f"no space for {len(requirements)}")

    monkeypatch.setattr(LocalBackend, "check_room", refuse)
    monkeypatch.setattr(LocalBackend, "prepare", lambda *_: pytest.fail("the disk wasn't checked"))
    with pytest.raises(CannotRunHereError, match="no space for 2"):
        make_run(options)
    assert not list(Path("results").glob("*"))


@pytest.mark.usefixtures("instant")
def test_a_run_records_the_commit_of_the_users_scenarios_though_harness_is_installed(
    options, harness, tmp_path, monkeypatch
):
    project = tmp_path / "caller"
    (project / "scenarios").mkdir(parents=True)
    (harness.root / "scenarios" / "ways.py").rename(project / "scenarios" / "ways.py")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "One"]):
        git(project, *words)
    commit = git(project, "rev-parse", "HEAD")
    monkeypatch.delenv("HARNESS_PROJECT")
    monkeypatch.setattr(package_data, "IS_INSTALLED", True)
    monkeypatch.setattr(package_data, "FOLDER", harness.root)
    monkeypatch.chdir(project)
    assert make_run(options, trust=True).results.run.commit == commit[:12]


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_pinned_launches_are_given_priority_as_long_as_the_run_goes_on(options, monkeypatch):
    pinned: list[Sequence[int]] = []
    with_priority = BackendFacts("local", priority="magic")

    def give_priority(_: LocalBackend, cpus: Sequence[int]) -> list[str]:
        pinned.append(cpus)
        return ["granted"]

    monkeypatch.setattr(LocalBackend, "give_priority", give_priority)
    make_run(options, cpus="all")
    make_run(options, share=True)
    assert not pinned
    for facts, times in ((with_priority, 2), (replace(with_priority, priority=""), 1)):
        monkeypatch.setattr(LocalBackend, "facts", lambda _, facts=facts: facts)
        ears = Ears(interrupt_after=1)
        interrupted = make_run(options, ears)
        session.resume(interrupted.folder, ears)
        assert ears.sentences.count("granted") == times
        assert interrupted.results.run.backend.priority == facts.priority


@pytest.mark.usefixtures("instant")
def test_a_run_waits_for_another_one_where_it_is_asked_to(options):
    planned = session.plan(session.Request(**options))
    is_free, waits = threading.Event(), threading.Event()

    class Waiting(Ears):
        def say(self, sentence: str) -> None:
            super().say(sentence)
            waits.set()

    ears = Waiting()

    def measure() -> None:
        with hold_machine():
            is_free.set()
            waits.wait(60)

    other = threading.Thread(target=measure)
    other.start()
    is_free.wait()
    with pytest.raises(CannotRunHereError, match="--wait"):
        session.run(planned)
    completed = session.run(planned, ears, wait=True)
    other.join()
    assert f" process {os.getpid()}" in ears.sentences[0]
    assert completed.results.launches


def slots() -> list[Slot]:
    """Return two slots with all CPUs that this process may use, so that a launch uses only a part of its slot."""
    return [Slot(tuple(sorted(os.sched_getaffinity(0))))] * 2


@pytest.mark.usefixtures("instant")
def test_a_run_in_a_slot_has_its_part_of_the_memory_and_is_resumed_with_all_cpus_of_the_slot(options, monkeypatch):
    memory: list[float] = []

    def make_executor(*values: Any, **named: Any) -> RunExecutor:
        executor = RunExecutor(*values, **named)
        memory.append(executor.memory)
        return executor

    monkeypatch.setattr("harness.session.running.RunExecutor", make_executor)
    monkeypatch.setattr("harness.session.running.host.read_free_memory", lambda: 2**34)
    planned = session.plan(session.Request(**options))
    interrupted = session.run(planned, Ears(interrupt_after=1), slots=slots())
    run = session.read(interrupted.folder).run
    assert (run.slots, tuple(run.slot_cpus)) == (2, slots()[0].cpus)
    assert len(run.plan.limits.cpus or ()) == 1
    assert find_slot(interrupted.folder) == slots()[0]
    resumed = session.resume(interrupted.folder)
    assert not resumed.interrupted
    assert len(resumed.results.launches) > len(interrupted.results.launches)
    # half of the free memory, in two slots
    assert memory == [2**32, 2**32]


@pytest.mark.usefixtures("instant")
def test_an_environment_that_cannot_be_prepared_is_not_built_beside_other_slots(options, monkeypatch):
    prepare, names = LocalBackend.prepare, list[list[str]]()

    def prepare_new(backend: LocalBackend, requirements: Sequence[Requirement], *more: Any) -> Preparation:
        names.append([requirement.environment.name for requirement in requirements])
        others = [requirement for requirement in requirements if requirement.environment.name == "new"]
        missing = {"old": UnavailableError("It failed:\nno such host", "Pull it.")} if "old" in names[-1] else {}
        return replace(prepare(backend, others, *more), unavailable=missing)

    monkeypatch.setattr(LocalBackend, "prepare", prepare_new)
    monkeypatch.setattr(LocalBackend, "unprepared", lambda _, requirements: list(requirements))
    ears = Ears()
    completed = session.run(session.plan(session.Request(**options)), ears, slots=slots())
    assert names == [["old", "new"], ["new"]]
    assert len([sentence for sentence in ears.sentences if sentence.startswith("old ")]) == 1
    assert {entry.cell.environment for entry in completed.results.run.plan.unavailable} == {"old"}
    assert {launch.cell.environment for launch in completed.results.launches} == {"new"}


def test_an_estimate_passes_over_damaged_runs_and_keeps_to_the_budget(options):
    damaged = Path("results", "9999-01-01T00-00-00Z-0000")
    damaged.mkdir(parents=True)
    (damaged / "run.json").write_text("{")
    planned = session.plan(session.Request(**{**options, "rounds": 100, "budget": 60.0}))
    assert session.estimate_duration(planned).seconds == 60.0


def test_a_launch_that_ended_under_tensorflow_s_profiler_and_was_made_again_is_no_failure(tmp_path):
    lost = runs.launch(status=Status.FAILED, role=Role.PILOT, round=0)
    under = replace(lost, observations={ON_DEVICE: UNDER_WAY})
    results = Results(runs.run(), [under, runs.launch(), lost])
    assert Ended(tmp_path, results, Written((), ()), interrupted=False, refused={}).broken == [lost]

"""Runs by the API: events for the listener, interruption and continuation, and two runs on one machine."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from harness.cli.running import choose_exit_code
from harness.environments import adhoc
from harness.environments.catalog import load_environments
from harness.environments.locks import lock_file
from harness.history.summary import summarize
from harness.machine import interpreters
from harness.machine.gpu import selection as gpus
from harness.machine.lock import hold_machine
from harness.machine.slots import Slot
from harness.model.backend import BackendFacts, Preparation
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import CannotRunHereError, Exit, UnavailableError, UsageError
from harness.model.gpu import Gpu, GpuHost, Settings
from harness.model.launch import ON_DEVICE, UNDER_WAY, Job, Launch, Outcome, Role, Sample, Status
from harness.model.run import Shard, Stop, StopReason
from harness.project import Project
from harness.report.comparisons import list_lines
from harness.runner.executor import RunExecutor
from harness.runner.rounds import RoundLog
from harness.session.forecast import FIRST_START, LAZY_START
from harness.session.reporting import Written
from harness.session.resuming import find_slot
from harness.session.running import Ended
from harness.store.codec import dump
from harness.store.folder import RunFolder
from tests import runs
from tests.cli.conftest import Harness, InstantLaunches
from tests.commands import git

pytestmark = pytest.mark.usefixtures("in_project")

Options = dict[str, Any]


@pytest.fixture(autouse=True)
def _any_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a small disk, because the environments of these tests contain no TensorFlow."""
    monkeypatch.setattr(LocalBackend, "check_room", lambda *_: None)


@pytest.fixture
def options() -> Options:
    """Return options of launches as short as can be."""
    short = {"backend": "local", "warmup": 0.0, "measure": 0.005, "seed": 1}
    return {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "rounds": 1, **short}


def edit_run(folder: Path, **changes: Any) -> None:
    """Change a stored run, as this user."""
    stored = RunFolder.open(folder)
    stored.write_run(replace(stored.read_run(), **changes), signed=True)


class Ears(session.Listener):
    """A listener that keeps messages, and interrupts after a number of launches."""

    def __init__(self, interrupt_after: int = 0) -> None:
        self.sentences: list[str] = []
        self.launches: list[Launch] = []
        self._after = interrupt_after

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def end(self, launch: Launch) -> None:
        self.launches.append(launch)
        if len(self.launches) == self._after:
            raise KeyboardInterrupt


def make_run(options: Options, listener: session.Listener | None = None, **changes: Any) -> session.Ended:
    """Plan and run."""
    planned = session.plan(session.Request(**{**options, **changes}))
    return session.run(planned, listener) if listener else session.run(planned)


def environments_of(folder: Path) -> set[str]:
    """Return the environments of the stored launches."""
    return {launch.cell.environment for launch in session.read(folder).launches}


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
def test_an_interrupted_run_has_what_was_finished_and_goes_on(options, snapshot):
    first, second = Ears(interrupt_after=2), Ears()
    interrupted = make_run(options, first, rounds=2)
    assert interrupted.interrupted
    assert len(interrupted.results.launches) == 2
    assert (interrupted.folder / "report.md").exists()
    resumed = session.resume(interrupted.folder, second)
    assert not resumed.interrupted
    assert {launch.round for launch in resumed.results.launches} == {0, 1, 2}
    assert [first.sentences, second.sentences] == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_a_run_is_continued_to_more_rounds_and_what_it_had_is_recorded(options):
    folder = make_run(options, rounds=3).folder
    (group,) = session.read(folder).run.plan.groups
    longer = session.resume(folder, rounds=5)
    assert longer.results.run.looks == [{group.name: 3}]
    assert longer.results.run.stops == {group.name: Stop(StopReason.ROUNDS, 5)}
    assert {launch.round for launch in longer.results.launches} == set(range(6))
    (compared,) = (value.compared for row in longer.results.tables[0].rows for value in row.values if value.compared)
    assert compared.level == pytest.approx(1.0 - 0.05 * 2.0 / 5.0)
    assert " was reported after 3 rounds" in (folder / "report.md").read_text()
    assert session.resume(folder, rounds=6).results.run.looks == [{group.name: 3}, {group.name: 5}]
    # killed while it was continued, it goes on to the longer plan
    assert session.resume(folder, Ears(interrupt_after=1), rounds=7).interrupted
    last = session.resume(folder).results.run
    assert ([stop.rounds for stop in last.stops.values()], len(last.looks)) == ([7], 3)


@pytest.mark.slow
def test_groups_without_an_unclear_comparison_are_not_continued_if_somebody_asks_for_that(options, instant, snapshot):
    def answer(job: Job) -> Outcome:
        """Return times that are alike, except of one cell, which takes about 12 % longer."""
        is_unclear = (job.cell.environment, job.cell.axes["way"]) == ("new", "prints")
        seconds = 0.112 + 0.004 * (len(instant.jobs) % 3 - 1) if is_unclear else 0.1
        return Outcome(Status.OK, samples=[Sample(seconds, 10)], calls_per_sample=10)

    instant.answer = answer
    folder = make_run(options, axes={"way": ["fine", "prints"]}, rounds=3).folder
    settled, unclear = (group.name for group in session.read(folder).run.plan.groups)
    (left,) = session.estimate_rest(session.load_earlier(folder, rounds=6, unsettled=True)).items()
    slots = len(session.read(folder).run.plan.groups[1].slots)
    assert (left[0], left[1][0]) == (unclear, 3 * slots)
    sentences = []
    for rounds in (6, 20):
        run = session.resume(folder, ears := Ears(), rounds=rounds, unsettled=True).results.run
        assert (run.plan.settled, run.looks) == ({settled: 3}, [{settled: 3, unclear: 3}])
        assert run.stops == {settled: Stop(StopReason.ROUNDS, 3), unclear: Stop(StopReason.ROUNDS, 6)}
        sentences += ears.sentences
    # without --unsettled, all groups are continued
    assert session.load_earlier(folder, rounds=8).run.plan.settled == {}
    with pytest.raises(UsageError) as error:
        session.load_earlier(folder, unsettled=True)
    assert [text.replace(str(folder), "RUN") for text in (*sentences, str(error.value))] == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_a_budget_of_a_run_that_is_continued_is_what_may_be_spent_from_now_on(options, snapshot):
    folder = make_run(options).folder
    before = session.read(folder)
    spent = sum(launch.seconds for launch in before.launches)
    earlier = session.load_earlier(folder, budget=600.0)
    assert earlier.run.plan.budget_seconds == pytest.approx(spent + 600.0)
    assert (earlier.run.plan.rounds, earlier.is_longer, earlier.over) == (100, True, "")
    assert session.load_earlier(folder, budget=600.0, rounds=7).run.plan.rounds == 7
    # a requested budget is strict, also after the budget of a suite
    wish = replace(earlier.run.plan, rounds=9, budget_seconds=spent, budget_is_wish=True)
    edit_run(folder, plan=wish, suite="quick")
    assert not session.load_earlier(folder, budget=600.0).run.plan.budget_is_wish
    assert session.load_earlier(folder).run.plan.budget_is_wish
    resumed = session.resume(folder, budget=1e-9)
    assert (resumed.results.launches, resumed.interrupted) == (before.launches, False)
    assert {stop.reason for stop in resumed.results.run.stops.values()} == {StopReason.BUDGET}
    # one round is too few for a verdict
    assert session.load_earlier(folder).over.replace(str(folder), "RUN") == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_a_complete_run_is_reported_again_and_says_what_continues_it(options, snapshot):
    folder = make_run(options, rounds=2).folder
    (folder / "report.md").unlink()
    ears = Ears()
    for more in ({}, {"rounds": 2}):
        resumed = session.resume(folder, ears, **more)
        assert (resumed.results.run.looks, ears.launches) == ([], [])
        assert resumed.written.files
        assert (folder / "report.md").exists()
    with pytest.raises(UsageError) as error:
        session.resume(folder, rounds=1)
    errors = [str(error.value)]
    for reason in (StopReason.PRECISION, StopReason.NO_NUMBERS):  # ended for good
        edit_run(folder, stops={name: Stop(reason, 1) for name in session.read(folder).run.stops})
        (over,) = {session.load_earlier(folder, **more).over for more in ({}, {"rounds": 9}, {"budget": 60.0})}
        errors.append(over)
    assert [text.replace(str(folder), "RUN") for text in (*ears.sentences, *errors)] == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_an_interruption_is_no_look_until_the_plan_is_another_one(options):
    # a pilot and two rounds of two cells and the control
    folder = make_run(options, Ears(interrupt_after=9), rounds=3).folder
    (group,) = session.read(folder).run.plan.groups
    rounds = RoundLog(session.read(folder).run.plan, session.read(folder).launches).rounds(group)
    assert session.load_earlier(folder, rounds=2).run.looks == [{group.name: rounds}]
    assert session.load_earlier(folder, rounds=3).run.looks == []
    assert session.resume(folder).results.run.looks == []


@pytest.mark.usefixtures("instant")
def test_what_was_received_or_changed_since_is_not_resumed(options, harness, snapshot):
    run = make_run(options, Ears(interrupt_after=2))
    path, scenario = run.folder / "run.json", harness.root / "scenarios" / "ways.py"
    stored, source = path.read_text(), scenario.read_text()
    host = {**run.results.run.host, "cores": 99}
    errors = {}

    def refuse(case: str, kind: type[Exception] = UsageError) -> None:
        ears = Ears()
        with pytest.raises(kind) as error:
            session.resume(run.folder, ears)
        assert (ears.sentences, ears.launches) == ([], [])
        errors[case] = (
            str(error.value)
            .replace(str(run.folder), "RUN")
            .replace(str(harness.root), "PROJECT")
            .replace(f"99 → {run.results.run.host['cores']}", "99 → CORES")
        )
        path.write_text(stored)
        scenario.write_text(source)

    path.write_text(stored.replace('"rounds": 1', '"rounds": 2'))
    refuse("changed")
    path.write_text(dump(run.results.run, indent=2).decode() + "\n")
    refuse("not signed")
    scenario.write_text(source.replace("1000", "2000"))
    refuse("another scenario")
    scenario.unlink()
    refuse("no scenario")
    edit_run(run.folder, host=host)
    refuse("another machine", CannotRunHereError)
    assert errors == snapshot
    assert not session.resume(run.folder).interrupted


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
RTX_3090 = Gpu(0, "GPU-86", "NVIDIA GeForce RTX 3090", (8, 6), 24 * 2**30)
H100 = Gpu(0, "GPU-90", "NVIDIA H100", (9, 0), 80 * 2**30)

UseGpu = Callable[..., None]


@pytest.fixture
def use_gpu(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> UseGpu:
    """Return a function that gives this machine a GPU, in whose project are the environments of `bake`."""
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES)
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: None)
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)

    def use(card: Gpu = RTX_3090, bake: str = GPUS, driver: str = "550.54.15", lock: str = "nothing") -> None:
        (harness.root / "docker-bake.hcl").write_text(bake)
        for name in ("gone", "gone2", "there", "next"):
            for device in Device:
                path = harness.root / "images" / "locks" / f"{name}-{device}.txt"
                path.write_text(f"# {lock}, {device}\n")
        monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: GpuHost([card], driver, (12, 4)))

    return use


@pytest.mark.slow
def test_a_substitute_is_told_stored_reported_and_kept(options, use_gpu, instant, snapshot):
    """No launch has a result, so the run has failed."""
    use_gpu()
    instant.answer = lambda _: Outcome(Status.FAILED, error="no GPU")
    first, second = Ears(), Ears()
    run = make_run(options, first, gpu=True)
    edit_run(run.folder, stops={})  # as if it had been killed
    session.resume(run.folder, second)
    sentences = [sentence for sentence in first.sentences if sentence in second.sentences]
    stored = session.read(run.folder)
    assert [(entry.environment, entry.role) for entry in stored.run.plan.stand_ins] == [("there", "gone")]
    for name in ("report.md", "report.html"):
        assert "there replaces gone, " in (run.folder / name).read_text()
    assert choose_exit_code(run, None) is Exit.CELLS_FAILED
    assert sentences == snapshot


def test_the_driver_compiles_once_per_environment_before_any_scenario_runs(
    options, use_gpu, instant, monkeypatch, snapshot
):
    use_gpu(H100, GPUS.replace('"sm_80"', '"sm_70 compute_80"'), lock="not installed")  # not another test's
    jobs: list[Job] = []

    def launch(self: LocalBackend, requirement: Requirement, job: Job) -> Outcome:
        assert not instant.jobs
        jobs.append(job)
        return Outcome(Status.TIMEOUT, error="it still ran")

    monkeypatch.setattr(LocalBackend, "launch", launch)
    planned = session.plan(session.Request(**options, environments=["there"], gpu=True))
    estimate = session.estimate_duration(planned)
    assert (estimate.first_starts, estimate.seconds > FIRST_START) == (1, True)
    ears = Ears()
    session.run(planned, ears)
    (job,) = jobs
    assert (job.cell.environment, {name.partition("/")[0] for name in job.files}) == ("there", {"kit"})
    assert job.script in job.files
    assert ears.sentences == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_an_environment_whose_interpreter_is_missing_is_replaced_and_a_named_one_is_not(
    options, use_gpu, monkeypatch, snapshot
):
    find = interpreters.find_installed
    # to try all interpreters of this machine takes long
    monkeypatch.setattr(interpreters, "find_installed", lambda version: find(version) if version != "3.60" else [])
    use_gpu(bake=GPUS.replace("3.11", "3.60", 1))
    ears = Ears()
    run = make_run(options, ears)
    assert "there replaces gone, " in (run.folder / "report.md").read_text()
    assert environments_of(run.folder) == {"there"}
    # every shard of a run has the same environments
    for of_all in ({"shard": Shard(1, 2)}, {"slots": "2"}):
        assert not session.plan(session.Request(**options, **of_all)).plan.stand_ins
    errors = {}
    for case, bake, container in (
        ("there can run", GPUS.replace("3.11", "3.60", 1), ""),
        ("nothing can run", GPUS.replace("3.11", "3.60").replace('"there"', '"gone2"'), ""),
        ("nothing can run in this container", GPUS.replace("3.11", "3.60").replace('"there"', '"gone2"'), "Docker"),
    ):
        use_gpu(bake=bake)
        monkeypatch.setattr("harness.machine.host.detect_container", lambda container=container: container)
        with pytest.raises(CannotRunHereError) as error:
            make_run(options, environments=["gone"])
        errors[case] = error.value.advice
    assert [ears.sentences, errors] == snapshot


def _refuse_to_prepare(name: str, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Have one environment fail. Returns the names of each preparation."""
    prepare, names = LocalBackend.prepare, list[list[str]]()

    def prepare_others(backend: LocalBackend, requirements: Sequence[Requirement], *more: Any) -> Preparation:
        names.append([requirement.environment.name for requirement in requirements])
        others = [requirement for requirement in requirements if requirement.environment.name != name]
        missing = {name: UnavailableError("It failed:\nno such host", "Pull it.")} if name in names[-1] else {}
        return replace(prepare(backend, others, *more), unavailable=missing)

    monkeypatch.setattr(LocalBackend, "prepare", prepare_others)
    return names


def _use_nightly(use_gpu: UseGpu, monkeypatch: pytest.MonkeyPatch, verify: Callable[..., Verification]) -> Environment:
    """Return a nightly wheel with assumed GPU code, beside the release "there", on a machine with an RTX 3090."""
    use_gpu()
    there = load_environments(Project.find())["there"]
    wheel = "tf-nightly==2.23.0.dev1"
    nightly = replace(there, name="tf-nightly-2.23.0.dev1", tensorflow="2.23.0.dev1", gpu_code_of="2.4.0", asked=wheel)
    adhoc.keep(nightly)
    lock_file(Project.find(), nightly, Device.GPU).write_text("# nothing\n")
    monkeypatch.setattr(LocalBackend, "verify", verify)
    return nightly


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_the_gpu_code_of_a_nightly_wheel_is_read_before_it_is_launched_if_it_can_be(
    options, use_gpu, monkeypatch, snapshot
):
    verifications: list[Verification] = []
    for code, anyway, is_measured in (("sm_86", False, True), ("sm_90", False, False), ("sm_90", True, True)):
        nightly = _use_nightly(use_gpu, monkeypatch, lambda *_: verifications[-1])
        read = replace(nightly, gpu_code=code, gpu_code_of="")
        verifications.append(Verification(1, read=read))
        ears = Ears()
        run = make_run(options, ears, environments=["there", nightly.name], gpu=True, try_anyway=anyway)
        stored = session.read(run.folder).run
        expected = {"there", nightly.name} if is_measured else {"there"}
        assert environments_of(run.folder) == expected
        assert f"GPU code of {nightly.name}: {code}." in ears.sentences
        # what is stored is what was read
        assert {entry.gpu_code for entry in stored.environments if entry.name == nightly.name} == {code}
        assert {entry.cell.environment for entry in stored.plan.unavailable} == {"there", nightly.name} - expected
        assert adhoc.load_saved(nightly.name) == read

    def fail(*_: object) -> Verification:
        raise CannotRunHereError("It does not start.")

    monkeypatch.setattr(LocalBackend, "verify", fail)
    adhoc.keep(nightly)
    ears = Ears()
    run = make_run(options, ears, environments=[nightly.name], gpu=True)
    assert environments_of(run.folder) == {nightly.name}
    assert ears.sentences == snapshot


@pytest.mark.usefixtures("instant")
def test_a_run_is_not_resumed_on_a_gpu_that_is_set_otherwise_and_locks_its_clocks_again(options, use_gpu, monkeypatch):
    def limit(watts: float) -> None:
        use_gpu(replace(RTX_3090, settings=Settings(power_limit_watts=watts, pcie_width=16)))

    events = log_clocks(monkeypatch)
    limit(350.0)
    run = make_run(options, gpu=True, environments=["there"], lock_clocks="1410")
    edit_run(run.folder, stops={})  # as if it had been killed
    (card,) = run.results.run.host["gpus"]
    assert (card["power_limit_watts"], card["pcie_width"], card["locked_sm_clock_mhz"]) == (350.0, 16, 1410)
    limit(250.0)
    with pytest.raises(CannotRunHereError, match=r"350 W → 250 W\."):
        session.resume(run.folder)
    limit(350.0)
    events.clear()
    assert not session.resume(run.folder).interrupted
    assert events == ["[0] kept up", "[0] locked to '1410'", "unlocked", "let go"]


def log_clocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the calls to GPUs around a run."""
    events: list[str] = []

    @contextmanager
    def keep_open(cards: Sequence[Gpu]) -> Iterator[None]:
        events.append(f"{[card.index for card in cards]} kept up")
        try:
            yield
        finally:
            events.append("let go")

    @contextmanager
    def lock(cards: Sequence[Gpu], clock: str) -> Iterator[None]:
        events.append(f"{[card.index for card in cards]} locked to {clock!r}")
        try:
            yield
        finally:
            events.append("unlocked")

    monkeypatch.setattr("harness.session.preparing.keep_driver_loaded", keep_open)
    monkeypatch.setattr("harness.session.preparing.clocks.lock_clocks", lock)
    return events


def test_clocks_are_locked_before_anything_is_made_and_unlocked_where_a_run_cannot_be(options, monkeypatch, snapshot):
    events = log_clocks(monkeypatch)

    def refuse(*_: object, **__: object) -> None:
        events.append("engine")
        raise CannotRunHereError("no engine")

    monkeypatch.setattr("harness.session.starting.registry.choose", refuse)
    planned = session.plan(session.Request(**options))
    limits = replace(planned.plan.limits, gpus=("0",))
    planned = replace(planned, plan=replace(planned.plan, limits=limits, lock_clocks="base"), gpus=[H100])
    ears = Ears()
    with pytest.raises(CannotRunHereError, match="no engine"):
        session.run(planned, ears)
    assert events == ["[0] kept up", "[0] locked to 'base'", "engine", "unlocked", "let go"]
    assert ears.sentences == snapshot
    assert not Path("results").exists()


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
    names = _refuse_to_prepare("old", monkeypatch)
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


@pytest.fixture
def both(options: Options, use_gpu: UseGpu, instant: InstantLaunches) -> InstantLaunches:
    """Select both devices. A step takes 2 ms per image on the CPU, and 20 ms on the GPU."""
    use_gpu()

    def answer(job: Job) -> Outcome:
        step = 0.020 if job.cell.device is Device.GPU else 0.002 * int(job.cell.axes.get("batch", 1))
        # 0.1 % of noise
        noise = 1.0 + 0.001 * (len(instant.jobs) % 3 - 1)
        return Outcome(Status.OK, samples=[Sample(10 * step * noise, 10)] * 5, calls_per_sample=10)

    instant.answer = answer
    options |= {"environments": ["there"], "device": [Device.CPU, Device.GPU], "rounds": 3}
    return instant


@pytest.mark.slow
def test_both_devices_are_measured_one_after_the_other_and_compared(options, both):
    folder = make_run(options, Ears(interrupt_after=4)).folder
    assert {(job.cell.device, requirement.lock.path.name, job.limits.gpus) for requirement, job in both.jobs} == {
        (Device.CPU, "there-cpu.txt", ()),
        (Device.GPU, "there-gpu.txt", ("0",)),
    }
    resumed = session.resume(folder)
    run, results = resumed.results.run, resumed.results
    assert set(run.images) == set(run.pins) == {"there", "there:gpu"}
    assert len(set(run.images.values())) == 2
    (table,) = results.tables
    (line,) = list_lines(table)
    compared = line.compared
    assert line.what == "gpu vs cpu, there"
    assert (compared.cell.device, compared.other.device, compared.ratio.rounds) == (Device.GPU, Device.CPU, 3)
    assert {launch.cell for launch in results.launches} == {compared.cell, compared.other}
    assert "there:gpu" in (folder / "details.md").read_text()
    assert choose_exit_code(resumed, None) is Exit.OK


@pytest.mark.usefixtures("both")
def test_a_first_start_is_expected_unless_this_driver_already_compiled_for_this_gpu(
    options, use_gpu, monkeypatch, tmp_path
):
    options |= {"device": [Device.GPU], "rounds": 1, "axes": {"way": ["fine"], "speed": ["fast"]}}
    for cuda, kind, seconds in (("11.0", "first_starts", FIRST_START), ("12.2", "lazy_starts", LAZY_START)):
        options["results"] = tmp_path / kind
        code = GPUS.replace('"11.0"', f'"{cuda}"').replace('"sm_80"', '"sm_70 compute_80"')
        bake = code.replace('cudnn = "8.0"', 'cudnn = "8.9"')

        def estimate(
            model: str = "NVIDIA H100",
            driver: str = "550.54.15",
            bake: str = bake,
            kind: str = kind,
            seconds: float = seconds,
        ) -> tuple[int, bool]:
            use_gpu(replace(H100, name=model), bake, driver)
            duration = session.estimate_duration(session.plan(session.Request(**options)))
            return getattr(duration, kind), duration.seconds > seconds

        monkeypatch.setattr(LocalBackend, "caches", lambda _: ["harness-ptx-there"])
        assert estimate() == (1, True)
        make_run(options)
        assert estimate() == (0, False)
        assert estimate(driver="570.86.10") == (1, True)
        assert estimate("NVIDIA H200") == (1, True)
        monkeypatch.setattr(LocalBackend, "caches", lambda _: [])  # after `harness clean --caches`
        assert estimate() == (1, True)


@pytest.mark.usefixtures("both")
def test_runs_on_both_devices_are_compared_with_runs_on_one_and_have_the_same_series(options):
    folders = [make_run(options, device=devices).folder for devices in ([Device.CPU, Device.GPU], [Device.GPU])]
    pair = session.compare(*folders, any_host=True)
    assert {(change.cell.device, change.cell.environment) for change in pair.changes.cells} == {(Device.GPU, "there")}
    assert Aspect.ENVIRONMENT not in {difference.part for difference in pair.differences}
    (on_cpu, on_gpu), (lone,) = (summarize(session.read(folder)).points for folder in folders)
    assert (on_cpu.device, on_gpu.device, on_gpu.axes) == ("cpu", "gpu", lone.axes)
    assert on_gpu.against == {**lone.axes, "device": "cpu"}

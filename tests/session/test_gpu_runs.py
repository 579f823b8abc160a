"""Runs on GPUs: substitutes, code that the driver compiles, locked clocks, and both devices."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from harness import session
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
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import CannotRunHereError, Exit
from harness.model.gpu import Gpu, GpuHost, Settings
from harness.model.launch import Job, Outcome, Sample, Status
from harness.model.run import Shard
from harness.project import Project
from harness.report.comparisons import list_lines
from harness.session.forecast import FIRST_START, LAZY_START
from tests.cards import H100, RTX3090
from tests.cli.conftest import Harness, InstantLaunches
from tests.session.conftest import Ears, Options, edit_run, make_run

pytestmark = pytest.mark.usefixtures("in_project")

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

UseGpu = Callable[..., None]


def environments_of(folder: Path) -> set[str]:
    """Return the environments of the stored launches."""
    return {launch.cell.environment for launch in session.read(folder).launches}


@pytest.fixture
def use_gpu(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> UseGpu:
    """Return a function that gives this machine a GPU, in whose project are the environments of `bake`."""
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES)
    monkeypatch.setattr(LocalBackend, "check_gpus", lambda *_: None)
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)

    def use(card: Gpu = RTX3090, bake: str = GPUS, driver: str = "550.54.15", lock: str = "nothing") -> None:
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
        use_gpu(replace(RTX3090, settings=Settings(power_limit_watts=watts, pcie_width=16)))

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

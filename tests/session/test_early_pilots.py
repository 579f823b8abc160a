"""Pilots of environments that are there, while others are still being made."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import session
from harness.backends.local.backend import LocalBackend
from harness.model.backend import Meanwhile, Preparation, PreparationStep, Progress, Stage
from harness.model.environment import Requirement
from harness.model.launch import BESIDE_BUILDS, Launch, Outcome, Role, Status
from harness.model.run import StandIn
from harness.session.early_pilots import Pilots


@pytest.fixture
def options() -> dict[str, Any]:
    """Return a plan of launches as short as can be, in groups of two cells; no length is left to the pilot."""
    short = {"backend": "local", "warmup": 0.0, "measure": 0.005, "seed": 1}
    return {"scenarios": ["ways"], "axes": {"way": ["fine"], "speed": ["fast", "slow"]}, "rounds": 2, **short}


class Making:
    """Local environments that are made as images are: when `old` is there, `new` is still being made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.meanwhile: list[Meanwhile | None] = []
        self.others: Iterable[bool] = itertools.repeat(True)
        self.early = 1
        prepare_all = LocalBackend.prepare

        def prepare(
            backend: LocalBackend,
            requirements: Sequence[Requirement],
            progress: Progress,
            meanwhile: Meanwhile | None = None,
        ) -> Preparation:
            self.meanwhile.append(meanwhile)
            prepare_all(backend, requirements[: self.early], progress)
            for requirement in requirements[: self.early] if meanwhile else ():
                assert meanwhile
                meanwhile(requirement.environment.name, progress, iter(self.others).__next__)
            return prepare_all(backend, requirements, progress)

        monkeypatch.setattr(LocalBackend, "prepare", prepare)


@pytest.fixture(autouse=True)
def making(in_project: None, monkeypatch: pytest.MonkeyPatch) -> Making:
    return Making(monkeypatch)


class PilotListener(session.Listener):
    """Keeps the steps of environments, and interrupts at one whose words begin so; keeps the launches of the run."""

    def __init__(self, interrupt_at: str = "nothing") -> None:
        self.steps: list[PreparationStep] = []
        self.launches: list[Launch] = []
        self.skipped = 0
        self._at = interrupt_at

    def step(self, step: PreparationStep) -> None:
        self.steps.append(step)
        if step.words.startswith(self._at):
            raise KeyboardInterrupt

    def end(self, launch: Launch) -> None:
        self.launches.append(launch)

    def skip(self, launches: int) -> None:
        self.skipped += launches


class Interrupting(session.Listener):
    """Interrupts the first launch of a run."""

    def begin(self, *_: object) -> None:
        raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_what_is_there_is_piloted_and_the_run_goes_on_from_that(options):
    ears = PilotListener()
    planned = session.plan(session.Request(**options))
    completed = session.run(planned, ears)
    launches = session.read(completed.folder).launches
    early = [launch for launch in launches if launch.resources.get(BESIDE_BUILDS)]
    assert launches[: len(early)] == early
    assert [(launch.role, launch.cell.environment) for launch in early] == [(Role.PILOT, "old")] * 2
    assert {launch.group for launch in early} == {group.name for group in planned.plan.groups}
    # the other environment is piloted after it, in the first group alone
    later = [launch for launch in launches if launch.role is Role.PILOT][2:]
    assert [(launch.cell.environment, launch.group) for launch in later] == [("new", planned.plan.groups[0].name)]
    assert {launch.status for launch in launches} == {Status.OK}
    assert [launch.started for launch in ears.launches] == [launch.started for launch in launches[2:]]
    assert ears.skipped + len(ears.launches) == planned.plan.all_launches
    assert not completed.broken


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_it_ends_where_all_others_are_made(options, making):
    making.others = [True, False]
    launches = session.read(session.run(session.plan(session.Request(**options))).folder).launches
    assert [launch.cell.environment for launch in launches if launch.resources.get(BESIDE_BUILDS)] == ["old"]
    assert {launch.round for launch in launches} == {0, 1, 2}


def test_its_steps_are_those_of_the_environment(options, instant):
    answer = instant.answer
    failure = Outcome(Status.FAILED, error="ValueError: a | pipe")
    instant.answer = lambda job: failure if job.cell.axes["way"] == "raises" else answer(job)
    options["axes"]["way"] = ["fine", "raises"]
    ears = PilotListener()
    session.run(session.plan(session.Request(**options)), ears)
    lines = [str(step) for step in ears.steps if "pilot" in step.words]
    assert "old: pilot: ways old fine fast" in lines
    assert any(line.startswith("old: pilot: ways old raises fast: failed: ValueError: a | pipe") for line in lines)
    (last,) = [step for step in ears.steps if step.stage is Stage.READY and "pilot" in step.words]
    assert last.words.startswith("4 pilots in ")


@pytest.mark.slow
def test_artifacts_come_into_the_run_s_folder(options, harness, making):
    scenario = harness.root / "scenarios" / "ways.py"
    before = 'bench.measure(lambda: sum(range(1000 if speed == "fast" else 3000)), document=100)'
    write = 'import sys; file = open("kept.txt", "w"); file.write(sys.executable); file.close()'
    after = f'{before}\n    {write}\n    bench.artifact("kept.txt")'
    making.early = 2
    scenario.write_text(scenario.read_text().replace(before, after))
    completed = session.run(session.plan(session.Request(**options)))
    launches = session.read(completed.folder).launches
    early = [launch for launch in launches if launch.resources.get(BESIDE_BUILDS)]
    assert [launch.cell.environment for launch in early] == ["old", "old", "new", "new"]
    pythons = {launch.cell.environment: (completed.folder / launch.artifacts[0]).read_text() for launch in early}
    assert len({*pythons.values()}) == 2
    assert all(
        (completed.folder / launch.artifacts[0]).read_text() == pythons[launch.cell.environment] for launch in early
    )
    slots = [(launch.group, launch.round, launch.attempt, launch.order) for launch in launches]
    assert len({*slots}) == len(slots)


@pytest.mark.usefixtures("instant")
def test_a_run_that_is_interrupted_while_images_are_made_leaves_nothing(options):
    with pytest.raises(KeyboardInterrupt):
        session.run(session.plan(session.Request(**options)), PilotListener(interrupt_at="2 pilots"))
    assert not any(Path("results").iterdir())


@pytest.mark.usefixtures("instant")
def test_a_run_whose_pilots_ran_early_is_gone_on_with(options):
    completed = session.run(session.plan(session.Request(**options)), Interrupting())
    assert completed.interrupted
    before = session.read(completed.folder).launches
    resumed = session.resume(completed.folder)
    launches = session.read(resumed.folder).launches
    assert launches[: len(before)] == before
    assert {launch.round for launch in launches} == {0, 1, 2}


@pytest.mark.usefixtures("instant")
def test_where_the_pilot_sets_lengths_it_waits_for_all_images(options, making):
    options["measure"] = None
    assert session.run(session.plan(session.Request(**options)), Interrupting()).interrupted
    assert making.meanwhile == [None]


def test_on_gpus_for_profiles_and_of_stand_ins_nothing_begins_early(options):
    plan = session.plan(session.Request(**options)).plan
    assert Pilots.can_run_early(plan)
    assert not Pilots.can_run_early(replace(plan, limits=replace(plan.limits, gpus=("0",))))
    assert not Pilots.can_run_early(replace(plan, profile_calls=3))
    assert not Pilots.can_run_early(replace(plan, stand_ins=[StandIn("new", "old", "an A100", "it is too new")]))

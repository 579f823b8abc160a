"""A plan in slots: what is handed out, what comes back, and what becomes of a slot that dies."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness import session
from harness.analysis import sizing
from harness.fleet import coordinator
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Launch
from harness.model.run import Machine, Run, Stop, StopReason
from harness.store import codec
from harness.store.folder import RunFolder
from tests.fleet.conftest import Pretence


class Ears(session.Listener):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.ended: list[Launch] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def end(self, launch: Launch) -> None:
        self.ended.append(launch)


def rounds_of(launches: list[Launch], group: str) -> Counter[int]:
    own, newest = [each for each in launches if each.group == group], dict[int, int]()
    for each in own:
        newest[each.round] = max(newest.get(each.round, 0), each.attempt)
    return Counter(each.round for each in own if each.attempt == newest[each.round])


WHOLE = Counter({0: 2, 1: 3, 2: 3})


def test_each_group_is_a_unit_and_all_that_comes_back_is_one_run(planned: session.Planned) -> None:
    engine, ears = Pretence(["a", "a"]), Ears()
    ended = coordinator.run(planned, engine, ears, command=["harness", "matrix", "--slots", "2"])
    assert [unit.to_prepare for _, unit in engine.started] == [True, False, False]
    assert ears.said == ["Backend: pretence."]
    assert [len(unit.planned.plan.groups) for _, unit in engine.started[1:]] == [1, 1]
    assert len({unit.planned.plan.shard.plan for _, unit in engine.started[1:]}) == 1
    run = session.read(ended.folder).run
    assert run.id == ended.folder.name
    assert (run.command, run.folder) == (["harness", "matrix", "--slots", "2"], str(ended.folder))
    assert [group.name for group in run.plan.groups] == [group.name for group in planned.plan.groups]
    assert run.plan.shard is None
    assert {stop.reason for stop in run.stops.values()} == {StopReason.ROUNDS}
    for group in planned.plan.groups:
        assert rounds_of(ended.results.launches, group.name) == WHOLE
    assert len(ears.ended) == 16
    assert engine.forgotten == [run.id]
    assert (ended.folder / "report.md").exists()


def test_one_name_in_two_folders_of_a_launch_stays_two_files(planned: session.Planned) -> None:
    leaves = ["x/data.txt", "y/data.txt", "data.txt"]
    ended = coordinator.run(planned, Pretence(["a"], leaves=leaves), Ears())
    kept = [name for launch in ended.results.launches for name in launch.artifacts]
    assert len(set(kept)) == len(kept) == 16 * 3
    assert all((ended.folder / name).read_text() == name.split("/", 2)[2] for name in kept)


def test_what_a_lost_slot_did_not_finish_goes_on_in_another_one_of_its_machine(planned: session.Planned) -> None:
    engine, ears = Pretence(["a", "a"], dies={0: 3}), Ears()
    ended = coordinator.run(planned, engine, ears)
    (lost,) = [sentence for sentence in ears.said if sentence.startswith("Lost")]
    assert lost.endswith("on a's: the node has died. It is begun again.")
    again = engine.started[-1][1]
    assert len(again.finished) == 3
    assert again.name == f"{again.replaces}-again1"
    for group in planned.plan.groups:
        assert rounds_of(ended.results.launches, group.name) == WHOLE
    (name,) = [group.name for group in again.planned.plan.groups]
    # the launch of the round that was not finished, and those of its new attempt
    assert Counter((each.round, each.attempt) for each in ended.results.launches if each.group == name)[1, 1] == 3
    assert not (ended.folder / coordinator.LOST).exists()


def test_a_group_is_of_one_machine_so_that_it_begins_again_where_its_machine_is_gone(planned: session.Planned) -> None:
    engine, ears = Pretence(["a", "b"], dies={0: 3}), Ears()
    ended = coordinator.run(planned, engine, ears)
    machine, again = engine.started[-1]
    assert (machine, again.finished, again.replaces) == ("b", [], "")
    (group,) = again.planned.plan.groups
    own = [each for each in ended.results.launches if each.group == group.name]
    assert {each.attempt for each in own} == {0}
    assert {each.centre for each in own} == {0.02}
    assert rounds_of(own, group.name) == WHOLE
    lost = [codec.load(Launch, line, "") for line in (ended.folder / coordinator.LOST).read_bytes().splitlines()]
    assert [each.centre for each in lost] == [0.01] * 3
    assert f"3 launches of it that the lost one had finished are in {coordinator.LOST}." in ears.said[-1]


def test_groups_of_several_machines_are_a_merged_run(planned: session.Planned) -> None:
    ended = coordinator.run(planned, Pretence(["a", "b"]), Ears())
    run = session.read(ended.folder).run
    assert [facts.machine.id for facts in run.machines] == ["a", "b"]
    assert [group.machine for group in run.plan.groups] == ["a", "b"]
    assert [group.axes["on machine"] for group in run.plan.groups] == ["a", "b"]
    assert set(run.stops) == {group.name for group in run.plan.groups}
    for group in run.plan.groups:
        assert rounds_of(ended.results.launches, group.name) == WHOLE
    assert len(session.read(ended.folder).launches) == 16
    with pytest.raises(UsageError, match="was merged of other runs"):
        session.resume(ended.folder)


def test_a_unit_that_is_lost_again_and_again_is_left_and_without_a_slot_there_is_no_run(
    planned: session.Planned,
) -> None:
    ears = Ears()
    ended = coordinator.run(planned, Pretence(["a"], dies={0: 3}), ears)
    assert ended.interrupted
    assert len(ended.results.launches) == 3
    assert ears.said[-1] == "There is no slot to measure in. What was finished is kept."
    engine = Pretence(["a"] * 4, dies={0: 0, 1: 0, 2: 0})
    ended = coordinator.run(planned.only([planned.plan.groups[0].name]), engine, ears)
    assert not ended.interrupted
    assert [unit.to_prepare for _, unit in engine.started].count(False) == 3


def test_a_machine_that_cannot_measure_is_said_once_and_the_others_do(planned: session.Planned) -> None:
    engine, ears = Pretence(["a", "b"], refuses={"b": "No engine answers."}), Ears()
    ended = coordinator.run(planned, engine, ears)
    assert "Nothing more is measured on b's: No engine answers." in ears.said
    assert {machine for machine, unit in engine.started if not unit.to_prepare} == {"a"}
    assert len(ended.results.launches) == 16
    with pytest.raises(CannotRunHereError, match="No engine answers"):
        coordinator.run(planned, Pretence(["a"], refuses={"a": "No engine answers."}), ears)


def test_an_interruption_keeps_what_was_finished(planned: session.Planned) -> None:
    engine = Pretence(["a"], interrupts_after=5)
    ended = coordinator.run(planned, engine, Ears())
    assert ended.interrupted
    assert len(ended.results.launches) == 4
    assert {stop.reason for stop in ended.results.run.stops.values()} == {StopReason.INTERRUPTED}
    assert engine.forgotten == [ended.folder.name]
    with pytest.raises(KeyboardInterrupt):
        coordinator.run(planned, Pretence(["a"], interrupts_after=0), Ears())


def of_claims(planned: session.Planned, budget: float) -> session.Planned:
    """As a run of claims is planned, whose budget is spent group by group."""
    plan = replace(planned.plan, claims=["T#1"], rounds=30, budget_seconds=budget)
    return replace(planned, plan=plan)


@pytest.fixture
def _widths(planned: session.Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first group needs three rounds, and the other seven."""
    needed = dict(zip([group.name for group in planned.plan.groups], (3, 7), strict=True))

    def widths(_: Run, launches: Sequence[Launch]) -> dict[str, float]:
        (name,) = {launch.group for launch in launches}
        made = max(launch.round for launch in launches)
        return {name: math.inf if made < 3 else math.sqrt(needed[name] / made)}

    monkeypatch.setattr(sizing, "widths", widths)


@pytest.mark.usefixtures("_widths")
def test_a_budget_of_claims_goes_to_whole_groups(planned: session.Planned) -> None:
    easy, hard = (group.name for group in planned.plan.groups)
    engine = Pretence(["a"])
    ended = coordinator.run(of_claims(planned, 1000.0), engine, Ears())
    units = [(unit.planned.plan.groups[0].name, unit.until) for _, unit in engine.started[1:]]
    assert units == [(easy, 3), (hard, 3), (hard, 7)]
    assert ended.results.run.stops == {easy: Stop(StopReason.PRECISION, 3), hard: Stop(StopReason.PRECISION, 7)}
    # a launch takes 1 s: there is no time for the eleven of a second group
    engine = Pretence(["a"])
    ended = coordinator.run(of_claims(planned, 12.0), engine, Ears())
    assert ended.results.run.stops[hard] == Stop(StopReason.BUDGET, 0)
    assert len({unit.planned.plan.groups[0].name for _, unit in engine.started[1:]}) == 1


@pytest.mark.usefixtures("_widths")
@pytest.mark.parametrize("budget", [None, 1000.0])
def test_a_run_in_slots_that_was_interrupted_goes_on_in_slots(planned: session.Planned, budget: float | None) -> None:
    planned = of_claims(planned, budget) if budget else planned
    ended = coordinator.run(planned, Pretence(["a", "a"], interrupts_after=10), Ears())
    assert ended.interrupted
    before, run = ended.results.launches, session.read(ended.folder).run
    assert (run.slots, run.machine) == (2, Machine("a"))
    engine = Pretence(["a", "a"])
    again = coordinator.resume(session.Earlier(RunFolder.open(ended.folder), run, planned), engine, Ears())
    assert (again.folder, again.results.run.id, again.results.run.started) == (ended.folder, run.id, run.started)
    assert again.results.launches[: len(before)] == before
    assert {unit.to_prepare for _, unit in engine.started} == {True, False}
    for group, rounds in zip(planned.plan.groups, (3, 7) if budget else (2, 2), strict=True):
        assert rounds_of(again.results.launches, group.name) == {0: 2} | dict.fromkeys(range(1, rounds + 1), 3)
    whole = coordinator.resume(session.Earlier(RunFolder.open(ended.folder), run, planned), Pretence(["a"]), Ears())
    assert len(whole.results.launches) == len(again.results.launches)


def test_a_run_in_slots_is_continued_to_more_rounds(planned: session.Planned) -> None:
    ended = coordinator.run(planned, Pretence(["a", "a"]), Ears())
    folder, run = RunFolder.open(ended.folder), session.read(ended.folder).run
    names = [group.name for group in planned.plan.groups]
    longer = replace(planned, plan=replace(planned.plan, rounds=4))
    more = replace(run, plan=longer.plan, looks=[dict.fromkeys(names, 2)], stops={})
    engine = Pretence(["a", "a"], interrupts_after=2)
    assert coordinator.resume(session.Earlier(folder, more, longer, is_longer=True), engine, Ears()).interrupted
    assert folder.read_run().plan.rounds == 4
    again = coordinator.resume(session.Earlier(folder, folder.read_run(), longer), Pretence(["a"]), Ears())
    assert again.results.run.looks == more.looks
    assert again.results.run.stops == dict.fromkeys(names, Stop(StopReason.ROUNDS, 4))
    ears, engine = Ears(), Pretence(["a"])
    over = session.Earlier(folder, folder.read_run(), longer, over="Nothing is left.")
    assert coordinator.resume(over, engine, ears).results.launches == again.results.launches
    assert (ears.said, engine.started) == (["Nothing is left."], [])


def test_a_run_in_slots_does_not_go_on_with_another_image(planned: session.Planned) -> None:
    ended = coordinator.run(planned, Pretence(["a"], interrupts_after=5), Ears())
    run = session.read(ended.folder).run
    moved = replace(run, images=dict.fromkeys(run.images, "sha256:" + "cd" * 32))
    with pytest.raises(UsageError, match="the image of"):
        coordinator.resume(session.Earlier(RunFolder.open(ended.folder), moved, planned), Pretence(["a"]), Ears())

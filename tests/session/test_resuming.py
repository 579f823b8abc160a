"""Runs that were interrupted, or are complete, are continued."""

from dataclasses import replace

import pytest

from harness import session
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Job, Outcome, Sample, Status
from harness.model.run import Stop, StopReason
from harness.runner.rounds import RoundLog
from harness.store.codec import dump
from tests.errors import catch_text
from tests.session.conftest import Ears, edit_run, make_run

pytestmark = pytest.mark.usefixtures("in_project")


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
    sentences.append(catch_text(UsageError, session.load_earlier, folder, unsettled=True))
    assert [text.replace(str(folder), "RUN") for text in sentences] == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_a_budget_of_a_run_that_is_continued_is_what_may_be_spent_from_now_on(options, snapshot):
    folder = make_run(options).folder
    before = session.read(folder)
    spent = sum(launch.seconds for launch in before.launches)
    earlier = session.load_earlier(folder, budget=600.0)
    assert earlier.run.plan.budget_seconds == pytest.approx(spent + 600.0)
    assert (earlier.run.plan.rounds, earlier.is_longer, earlier.over) == (100, True, "")
    # 99 rounds take longer than what is left of a small budget
    whole = sum(seconds for _, seconds in session.estimate_rest(earlier).values())
    small = replace(earlier.run.plan, budget_seconds=spent + whole / 1000.0)
    for plan, share in ((small, 0.001), (replace(small, budget_is_wish=True), (FEWEST_ROUNDS - 1) / 99)):
        rest = session.estimate_rest(replace(earlier, run=replace(earlier.run, plan=plan)))
        assert sum(seconds for _, seconds in rest.values()) == pytest.approx(whole * share)
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
    errors = [catch_text(UsageError, session.resume, folder, rounds=1)]
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
        text = catch_text(kind, session.resume, run.folder, ears)
        assert (ears.sentences, ears.launches) == ([], [])
        errors[case] = (
            text.replace(str(run.folder), "RUN")
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

"""Rounds whose launches take turns, with a backend that answers at once."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from harness.model.environment import Requirement
from harness.model.launch import BESIDE_STARTS, Interleave, Job, Launch, Limits, Outcome, Role, Sample, Sampling, Status
from harness.model.run import Plan
from harness.runner.executor import RunExecutor
from tests import runs
from tests.runner.stage import Answered, Backstage, Shelf, interrupted_at, job, last_attempt, staged, walk

TURNS = 8
#: The words of three launches in their turns.
ALL_TURNS = [*["turn"] * 3, *["turn 2"] * 3] * 4


def plan(rounds: int = 2, groups: int = 1, turns: int = TURNS) -> Plan:
    """Groups of two cells and a control, whose launches take turns."""
    planned = runs.plan(rounds, groups)
    return replace(
        planned,
        groups=[replace(group, control=group.cells[0]) for group in planned.groups],
        sampling=Sampling(warmup_seconds=0.5, measure_seconds=0.4, turns=turns),
        interleave=Interleave.TURNS,
    )


def of_round(launches: list[Launch], number: int) -> list[Launch]:
    return [launch for launch in launches if launch.round == number]


def test_all_launches_of_a_round_begin_and_take_turns_of_which_one_in_two_is_long():
    stage = Backstage()
    walk(Shelf(), stage, plan(rounds=1))
    # the pilots come first, each by itself
    pilots, words = stage.words[:1], [word for _, word in stage.words[1:]]
    assert [word for _, word in pilots] == [""]
    words = [word for word in words if word]
    assert words == ALL_TURNS + ["end"] * 3
    assert [word for _, word in stage.words].count("") == len(stage.jobs)


def beside(walk_: RunExecutor, *starts: int) -> RunExecutor:
    """The walk with launches that start on these CPUs, and are measured on the first."""
    return replace(
        walk_, starts=starts, job=lambda cell, sampling: replace(job(cell, sampling), limits=Limits(cpus=starts[:1]))
    )


def test_launches_start_at_the_same_time_and_are_moved_before_they_warm_up():
    stage = Backstage(cost=lambda _: 2.0, turn=0.05)
    launches = beside(staged(Shelf(), stage, replace(plan(rounds=1), piloted=False)), 3, 2).run([])
    assert [launch.seconds for launch in launches] == pytest.approx([stage.clock.now / 3] * 3)
    words = [word for _, word in stage.words]
    start = ["start on 3", "start on 2", "", "move to 3", "start on 2", "", "move to 3", ""]
    assert words == [*start, *["move to 3", "measure"] * 3, *ALL_TURNS, *["end"] * 3]
    assert [job.limits.cpus for job in stage.jobs] == [(3,), (2,), (2,)]
    assert all(job.waits for job in stage.jobs)
    assert [launch.resources[BESIDE_STARTS] for launch in launches] == [1.0] * 3


def in_two_environments() -> Plan:
    planned = plan(rounds=1)
    (group,) = planned.groups
    cells = [replace(cell, axes={"mode": mode}) for cell in group.cells for mode in ("graph", "eager")]
    return replace(planned, groups=[replace(group, cells=cells, control=cells[0])])


def test_the_first_pilots_of_environments_start_at_the_same_time_and_measure_one_after_the_other():
    stage = Backstage()
    launches = of_round(beside(staged(Shelf(), stage, in_two_environments()), 3, 2).run([]), 0)
    assert sorted(launch.cell.environment for launch in launches) == ["new", "old"]
    words = [word for _, word in stage.words]
    start = ["start on 3", "start on 2", "", "move to 3", ""]
    assert words[: words.index("start on 3", 1)] == [*start, *["move to 3", "measure"] * 2]
    assert [launch.resources[BESIDE_STARTS] for launch in launches] == [1.0] * 2
    assert all(launch.block == 0 for launch in launches)


def test_pilots_start_together_once_per_environment_and_if_cpus_and_memory_allow():
    stage = Backstage()
    planned = replace(in_two_environments(), rounds=0, sampling=Sampling())
    launches = beside(staged(Shelf(), stage, planned), 3, 2).run([])
    assert len(launches) == 4
    assert [job.waits for job in stage.jobs] == [True, True, False, False]
    for starts, memory in [((3,), math.inf), ((3, 2), 1.5 * 2.0**30)]:
        stage = Backstage()
        walk_ = beside(staged(Shelf(), stage, in_two_environments()), *starts)
        assert len(of_round(replace(walk_, memory=memory).run([]), 0)) == 2
        assert not any(job.waits for job in stage.jobs[:2])


def test_launches_start_one_after_the_other_where_a_phase_is_compared_or_there_is_no_other_cpu():
    planned = plan(rounds=1)
    compared = replace(planned, groups=[replace(planned.groups[0], of=["import"])])
    for entry, starts in ((planned, (3,)), (planned, ()), (compared, (3, 2, 1))):
        stage = Backstage()
        walk_ = beside(staged(Shelf(), stage, entry), *(starts or (3,)))
        launches = of_round(replace(walk_, starts=starts).run([]), 1)
        assert not any(job.waits or job.limits.cpus != (3,) for job in stage.jobs)
        assert not any("move" in word or word == "measure" for _, word in stage.words)
        assert not any(BESIDE_STARTS in launch.resources for launch in launches)


def test_one_launch_may_fix_its_calls_and_is_measured_alone_while_the_others_take_turns():
    planned = plan(rounds=1)
    fixed = planned.groups[0].cells[1]

    def answer(_: int, job: Job) -> Outcome:
        one = Sample(1.0, 1 if job.cell == fixed else 100)
        return Outcome(Status.OK, samples=[one], calls_per_sample=None if job.cell == fixed else 7)

    stage = Backstage(answer)
    launches = of_round(beside(staged(Shelf(), stage, planned), 3, 2, 1).run([]), 1)
    assert {launch.cell == fixed: len(launch.places) for launch in launches} == {True: 0, False: TURNS}
    at = max(at for at, word in enumerate(stage.words) if word == (fixed, "measure"))
    assert stage.words[at - 1] == (fixed, "move to 3")
    assert all(word != "" and not word.startswith("start") for _, word in stage.words[at:])


def test_samples_have_their_places_in_turns_of_several_cells():
    launches = of_round(walk(Shelf(), Backstage(), plan(rounds=1, turns=6)), 1)
    assert [len(launch.samples) for launch in launches] == [6] * 3
    for places in zip(*(launch.places for launch in launches), strict=True):
        assert sorted(places) == [0, 1, 2]
    assert Counter(launches[0].places) == {0: 2, 1: 2, 2: 2}
    stage, planned = Backstage(), plan(rounds=1)
    single = replace(planned.groups[0], cells=planned.groups[0].cells[:1], control=None)
    launches = walk(Shelf(), stage, replace(planned, groups=[single]))
    assert not any(job.sampling.turns for job in stage.jobs)
    assert not any(launch.places for launch in launches)


def breaking(status: Status) -> Callable[[int, Job], Outcome]:
    """In the rounds, `new` ends so at once; the others go well."""

    def answer(count: int, job: Job) -> Outcome:
        if job.cell.environment == "new" and job.sampling.turns:
            return Outcome(status)
        return Outcome(Status.OK, samples=[Sample(1.0, 100)])

    return answer


def test_a_launch_that_breaks_off_loses_only_itself():
    for status in (Status.FAILED, Status.TIMEOUT, Status.OOM):
        launches = of_round(walk(Shelf(), Backstage(breaking(status)), plan(rounds=1)), 1)
        assert Counter(launch.status for launch in launches) == {status: 1, Status.OK: 2}
        assert all(len(launch.places) == TURNS for launch in launches if launch.status is Status.OK)
        assert {place for launch in launches for place in launch.places} == {0, 1}
    # also while others start
    stage = Backstage(breaking(Status.FAILED))
    launches = of_round(beside(staged(Shelf(), stage, replace(plan(rounds=1), piloted=False)), 3, 2, 1).run([]), 1)
    assert Counter(launch.status for launch in launches) == {Status.FAILED: 1, Status.OK: 2}
    assert Counter(word for _, word in stage.words)["measure"] == 2


def test_a_launch_that_ends_right_after_the_sample_of_a_turn_has_a_place_for_it(folder):
    class Broken(Backstage):
        """Writes something else after the answer to the second turn, so its launches have ended then."""

        @contextmanager
        def hold(self, requirement: Requirement, job: Job) -> Iterator[Answered]:
            with super().hold(requirement, job) as held:
                resume = held.resume
                held.resume = lambda word="": resume(word) and held.turns < 2  # type: ignore[method-assign]
                yield held

    walk(folder, Broken(), plan(rounds=1))
    launches = of_round(folder.read_launches(), 1)
    assert [(len(launch.samples), len(launch.places)) for launch in launches] == [(2, 2)] * 3


def test_an_interrupted_round_is_done_again_whole_and_no_finished_one_is_lost():
    planned = plan(rounds=2)
    (group,) = planned.groups
    for killed_at in range(1, 8):
        shelf = Shelf()
        with pytest.raises(KeyboardInterrupt):
            walk(shelf, interrupted_at(killed_at), planned)
        before = shelf.read_launches()
        # all that were alive then have a line
        assert Status.INTERRUPTED in {launch.status for launch in last_attempt(before, group, before[-1].round)}
        after = walk(shelf, Backstage(), planned, before)
        assert after[: len(before)] == before
        for number in (1, 2):
            last = last_attempt(shelf.launches, group, number)
            assert Counter(launch.status for launch in last) == {Status.OK: 3}


def test_turns_of_slow_calls_end_after_twice_the_planned_time_but_not_before_the_third():
    for seconds, turns in {0.05: TURNS, 0.21: 4, 0.3: 3, 3.0: 3}.items():
        launches = of_round(walk(Shelf(), Backstage(turn=seconds), plan(rounds=1)), 1)
        assert [len(launch.places) for launch in launches] == [turns] * 3


def held(count: int, _: Job) -> Outcome:
    return Outcome(Status.OK, samples=[Sample(1.0, 100)], resources={"max_rss_bytes": 1e9})


def test_a_group_that_memory_does_not_hold_is_split_in_blocks_with_the_reference_in_each():
    planned = plan(rounds=1)
    (group,) = planned.groups
    more = [replace(group.cells[1], axes={"mode": str(number)}) for number in range(5)]
    planned = replace(planned, groups=[replace(group, cells=[group.cells[0], *more])])
    finished = replace(staged(Shelf(), Backstage(held), planned), memory=5e9).run([])
    launches = of_round(finished, 1)
    blocks = [[launch for launch in launches if launch.block == number] for number in (0, 1)]
    assert [len(block) for block in blocks] == [2 + 2, 1 + 3]
    assert [Counter(launch.role for launch in block if launch.cell == group.cells[0]) for block in blocks] == [
        {Role.MEASURE: 1, Role.CONTROL: 1},
        {Role.CONTROL: 1},
    ]
    assert sorted(launch.order for launch in launches) == list(range(8))
    assert walk(Shelf(), Backstage(held), planned, finished) == finished


def test_a_disturbed_round_is_repeated_unless_its_launches_took_turns():
    busy = {"steady_seconds": 1.0, "steady_cpu_seconds": 0.5, "steady_own_cpus": 1.0}
    busy |= {"steady_own_cpus_busy_seconds": 1.0}
    for steps, pieces, attempts in [(100, {"steady_pieces": 8.0}, {0}), (1, {}, {0, 1})]:
        outcome = Outcome(Status.OK, samples=[Sample(1.0, steps)], resources=busy | pieces)
        launches = walk(Shelf(), Backstage(lambda _, __, outcome=outcome: outcome), plan(rounds=2))
        assert {launch.attempt for launch in of_round(launches, 1)} == attempts


def test_launches_that_take_no_turns():
    stage = Backstage(lambda _, __: Outcome(Status.OK, samples=[Sample(1.0, 1)], resources={"max_rss_bytes": 1e9}))
    launches = replace(staged(Shelf(), stage, plan(rounds=2)), memory=1.5e9).run([])
    assert {word for _, word in stage.words} == {""}
    assert [len(of_round(launches, number)) for number in (1, 2)] == [3, 3], "one block, however little memory there is"
    assert not any(launch.places for launch in launches)
    assert {launch.block for launch in launches} == {0}, "the control is compared with its like"
    planned = plan(rounds=1)
    stage = Backstage()
    walk(Shelf(), stage, replace(planned, groups=[replace(planned.groups[0], of=["p99"])]))
    assert {word for _, word in stage.words} == {""}
    measured = [job.sampling for job in stage.jobs[-3:]]
    assert {(sampling.calls_per_sample, sampling.turns) for sampling in measured} == {(1, None)}

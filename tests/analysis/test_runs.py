"""Two runs side by side."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.analysis.runs import Pair, UnpairedCell
from harness.analysis.verdicts import Verdict, Withheld
from harness.analysis.work_equivalence import Work
from harness.model.launch import Role, Status
from tests.factories import broken, cell, contended, growing, launch, run
from tests.quantified import VALUES, quantified, quantified_run
from tests.two_runs import CELLS, MARGIN, all_but, change, compared, first, second

ONE = CELLS[2]


def with_fingerprints(stored, **fingerprint):
    asked, launches = stored
    return asked, [launch(entry.cell, entry.mean, entry.round, fingerprint=fingerprint) for entry in launches]


def test_runs_that_agree_are_the_same_in_every_cell():
    found = compared(first(), second())
    assert [entry.cell for entry in found.cells] == CELLS
    assert {item.change.verdict for item in found.cells} == {Verdict.SAME}
    assert (found.shift.change.verdict, found.shift.cells, found.shift.unchanged) == (Verdict.SAME, 6, True)
    assert found.deciding == [Verdict.SAME] * 6


def test_a_ratio_is_below_one_if_the_second_run_is_faster():
    found = change(compared(first(), second(all_but(ONE, 0.5))), ONE)
    assert found.change.ratio.value == pytest.approx(0.5, rel=0.01)
    assert found.change.verdict is Verdict.FASTER
    assert (found.first.value, found.second.value) == (pytest.approx(0.01, rel=0.01), pytest.approx(0.005, rel=0.01))


def test_one_cell_that_changed_is_told_with_and_without_the_shift():
    found = compared(first(), second(all_but(ONE, 1.3)))
    slower = [entry.cell for entry in found.cells if entry.change.verdict is Verdict.SLOWER]
    assert slower == [ONE]
    assert change(found, ONE).without_shift.verdict is Verdict.SLOWER
    assert found.shift.change.verdict is Verdict.SAME
    assert Verdict.SLOWER in found.deciding


def test_what_moves_every_cell_is_the_shift_and_no_cells_change():
    found = compared(first(), second(dict.fromkeys(CELLS, 0.012)))
    assert {entry.change.verdict for entry in found.cells} == {Verdict.SLOWER}
    assert {item.without_shift.verdict for item in found.cells} == {Verdict.SAME}
    assert found.shift.change.verdict is Verdict.SLOWER
    assert found.shift.change.ratio.value == pytest.approx(1.2, rel=0.01)
    # the software is the same, so it was the machine: a gate does not fail by that
    assert Verdict.SLOWER not in found.deciding


def test_on_a_slower_day_a_cell_that_kept_its_time_is_faster_beside_the_shift():
    found = change(compared(first(), second(all_but(ONE, 1 / 1.2, seconds=0.012))), ONE)
    assert (found.change.verdict, found.without_shift.verdict) == (Verdict.SAME, Verdict.FASTER)


def test_a_shift_of_changed_software_may_be_the_softwares():
    other = second(dict.fromkeys(CELLS, 0.012), sources={"step": "cd34"})
    found = compared(first(), other)
    assert (found.shift.change.verdict, found.shift.unchanged) == (Verdict.SLOWER, False)
    assert not any(entry.same_software for entry in found.cells)
    assert found.deciding == [Verdict.SLOWER] * 6


def test_a_shift_is_taken_from_the_cells_whose_software_is_the_same():
    cells = [*CELLS, *(cell("tf2.0", call=call) for call in "de"), *(cell("tf1.14", call=call) for call in "de")]
    images = {"tf1.14": "sha256:1", "tf2.0": "sha256:2"}
    taken = {entry: 0.01 if entry.environment == "tf1.14" else 0.013 for entry in cells}
    one = first(dict.fromkeys(cells, 0.01), images=images)
    found = compared(one, second(taken, images={**images, "tf2.0": "sha256:3"}))
    assert (found.shift.cells, found.shift.unchanged) == (5, True)
    assert found.shift.change.verdict is Verdict.SAME
    assert {item.without_shift.verdict for item in found.cells if item.cell.environment == "tf2.0"} == {Verdict.SLOWER}


def test_of_four_cells_no_shift_is_told():
    few = dict.fromkeys(CELLS[:4], 0.01)
    found = compared(first(few), second(few))
    assert found.shift is None
    assert [entry.without_shift for entry in found.cells] == [None] * 4


def test_fewer_than_four_rounds_in_either_run_have_no_verdict():
    for rounds, has_interval in [(1, False), (3, True)]:
        for found in (compared(first(count=rounds), second()), compared(first(), second(count=rounds))):
            each = found.cells[0]
            assert (each.change.verdict, each.change.withheld) == (None, Withheld.FEW_ROUNDS), (rounds, has_interval)
            assert (each.change.ratio.interval is not None) is has_interval, (rounds, has_interval)
            assert each.change.ratio.rounds == rounds
            assert (found.shift, found.deciding) == (None, []), (rounds, has_interval)


def test_two_rounds_have_a_verdict_beyond_one_and_a_half_times_as_in_a_run():
    for seconds, verdict in [(0.03, Verdict.SLOWER), (0.014, None)]:
        for rounds in [2, 3]:
            found = compared(first(count=rounds), second(dict.fromkeys(CELLS, seconds), count=rounds))
            assert {entry.change.verdict for entry in found.cells} == {verdict}, (seconds, verdict, rounds)
            assert {item.change.withheld for item in found.cells} == {None if verdict else Withheld.FEW_ROUNDS}, (
                seconds,
                verdict,
                rounds,
            )
            assert found.shift is None, (seconds, verdict, rounds)


def test_cells_that_did_different_work_have_no_ratio_to_speak_of():
    one, other = with_fingerprints(first(), parameters=1), with_fingerprints(second(), parameters=2)
    found = compared(one, other)
    assert {entry.change.verdict for entry in found.cells} == {Verdict.DIFFERENT_WORK}
    assert found.cells[0].work.work is Work.DIFFERENT
    assert found.deciding == []


def test_a_control_beyond_the_margin_in_either_run_takes_all_verdicts():
    asked, launches = second(all_but(ONE, 2.0))
    controls = [launch(CELLS[0], 0.013, number, role=Role.CONTROL) for number in range(1, 6)]
    measured = [launch(CELLS[0], 0.010, number) for number in range(1, 6)]
    others = [entry for entry in launches if entry.cell != CELLS[0]]
    asked = run(CELLS, controlled=True, id=asked.id, sources=asked.sources)
    noisy = asked, [*others, *controls, *measured]
    for found in (compared(first(), noisy), compared(noisy, first())):
        assert {item.change.withheld for item in found.cells} == {Withheld.CONTROL}
        assert {value.without_shift.withheld for value in found.cells} == {Withheld.CONTROL}


def test_cells_that_only_one_run_has_are_told_with_the_others_reason():
    asked, launches = second()
    failed = [broken(ONE, Status.FAILED, number) for number in range(6)]
    other = asked, [*(entry for entry in launches if entry.cell not in (ONE, CELLS[0])), *failed]
    more = cell("tf2.1")
    found = compared(first({**dict.fromkeys(CELLS, 0.01), more: 0.01}), other)
    assert list(found.only_first) == [
        UnpairedCell(CELLS[0], Status.INTERRUPTED),
        UnpairedCell(ONE, Status.FAILED),
        UnpairedCell(more, None),
    ]
    assert found.broken == [CELLS[0], ONE]
    assert list(found.only_second) == []


def test_a_narrower_margin_asks_for_more():
    other = second(all_but(ONE, 1.02))
    assert change(compared(first(), other), ONE).change.verdict is Verdict.SAME
    assert change(compared(first(), other, margin=0.005), ONE).change.verdict is Verdict.SLOWER


seconds = st.lists(st.floats(0.005, 0.02), min_size=6, max_size=6)


@given(seconds, seconds, st.integers(2, 6))
def test_swapped_runs_say_the_opposite(ones, others, count):
    one = first(dict(zip(CELLS, ones, strict=True)), count=count, spread=0.02)
    other = second(dict(zip(CELLS, others, strict=True)), count=5, spread=0.03)
    there, back = compared(one, other), compared(other, one)
    for entry in there.cells:
        turned = change(back, entry.cell)
        for ahead, behind in ((entry.change, turned.change), (entry.without_shift, turned.without_shift)):
            if ahead is None or behind is None:
                assert ahead is behind
                continue
            assert behind.ratio.value == pytest.approx(1.0 / ahead.ratio.value)
            assert behind.ratio.interval.low == pytest.approx(1.0 / ahead.ratio.interval.high)
            assert behind.verdict == (ahead.verdict and ahead.verdict.turned)
            assert behind.withheld == ahead.withheld
    if there.shift:
        assert math.log(there.shift.change.ratio.value) == pytest.approx(-math.log(back.shift.change.ratio.value))


@given(seconds, st.randoms(use_true_random=False))
def test_the_order_of_cells_and_launches_says_nothing(times, draw):
    one = first(spread=0.02)
    taken = dict(zip(CELLS, times, strict=True))
    asked, launches = second(taken, spread=0.02)
    shuffled = list(launches)
    draw.shuffle(shuffled)
    turned = run(list(reversed(CELLS)), id=asked.id, sources=asked.sources)
    there, back = compared(one, (asked, launches)), compared(one, (turned, shuffled))
    assert there == back


def with_growth(stored, warmup_steps):
    """The run with a step in `ONE` that grows by 1 ms in 9.5 steps, measured after so many; of 50 it does not tell."""
    asked, launches = stored
    start = 0.01 + (warmup_steps - 50) / 190 * 0.02
    told = {"resources": {"warmup_steps": float(warmup_steps)} if warmup_steps > 50 else {}}
    return asked, [entry for entry in launches if entry.cell != ONE] + growing(ONE, start, start + 0.02, **told)


def test_a_step_that_changes_is_compared_where_both_runs_have_made_as_many():
    # as fast at each step, and the second run measured later ones
    found = change(compared(with_growth(first(), 100), with_growth(second(), 200)), ONE)
    assert (found.steps.low, found.steps.high) == (200.0, 300.0)
    assert found.change.verdict is Verdict.SAME


def test_a_step_that_changes_has_no_verdict_and_no_part_in_the_shift_without_steps_in_common():
    found = compared(with_growth(first(), 100), with_growth(second(), 50))
    alone = change(found, ONE)
    assert (alone.change.verdict, alone.change.withheld, alone.steps) == (None, Withheld.TREND, None)
    assert alone.without_shift is None
    assert found.shift.cells == len(CELLS) - 1


def quantities(values, *of):
    """What two runs say of quantities, of which the second has these values."""
    asked = quantified_run(*of)
    return Pair(Results(asked, quantified()), Results(asked, quantified(values=values, spread=0.012)), 0.03).others


def test_other_quantities_that_are_compared_are_told_of_two_runs_too():
    slow = {environment: (2.0 * first, peak / 2.0, *rest) for environment, (first, peak, *rest) in VALUES.items()}
    found = quantities(slow, "first call", "peak memory", "memory growth")
    assert {of: {item.change.verdict for item in changes.cells} for of, changes in found.items()} == {
        "first call": {"slower"},
        "peak memory": {"less"},
    }
    assert all(entry.change.ratio.value == pytest.approx(2.0, rel=0.05) for entry in found["first call"].cells)


def test_two_runs_that_compare_the_step_alone_have_no_other_quantity():
    assert Pair(Results(*first()), Results(*second()), MARGIN).others == {}


def test_a_change_is_no_more_certain_than_what_was_subtracted_for_cpu_contention():
    for share, verdict in [(0.0, Verdict.FASTER), (0.5, Verdict.UNCLEAR)]:
        asked, launches = second(all_but(ONE, 1 / 1.1))
        disturbed = [replace(entry, resources=contended(share)) if entry.cell == ONE else entry for entry in launches]
        stretched = [
            replace(
                entry, samples=[replace(sample, seconds=sample.seconds / (1.0 - share)) for sample in entry.samples]
            )
            if entry.cell == ONE
            else entry
            for entry in disturbed
        ]
        found = change(compared(first(), (asked, stretched)), ONE)
        assert found.change.ratio.value == pytest.approx(1.0 / 1.1, rel=0.01), (share, verdict)
        assert found.change.verdict is verdict, (share, verdict)

"""Two runs side by side."""

from dataclasses import replace

import pytest

from harness.analysis.runs import UnpairedCell
from harness.analysis.verdicts import Verdict, Withheld
from harness.model.launch import Role, Status
from tests.factories import broken, cell, contended, growing, launch, run
from tests.two_runs import CELLS, MARGIN, all_but, change, compared, first, second

ONE = CELLS[2]


def test_one_cell_that_changed_is_told_with_and_without_the_shift():
    faster = change(compared(first(), second(all_but(ONE, 0.5))), ONE)
    assert faster.change.ratio.value == pytest.approx(0.5, rel=0.01)
    assert (faster.first.value, faster.second.value) == pytest.approx((0.01, 0.005), rel=0.01)
    changes_ = compared(first(), second(all_but(ONE, 1.3)))
    assert [entry.cell for entry in changes_.cells if entry.change.verdict is Verdict.SLOWER] == [ONE]
    assert change(changes_, ONE).without_shift.verdict is Verdict.SLOWER
    assert changes_.shift.change.verdict is Verdict.SAME
    assert Verdict.SLOWER in changes_.deciding
    # a narrower margin asks for more
    other = second(all_but(ONE, 1.02))
    verdicts = [change(compared(first(), other, margin=margin), ONE).change.verdict for margin in (MARGIN, 0.005)]
    assert verdicts == [Verdict.SAME, Verdict.SLOWER]


def test_what_moves_every_cell_is_the_shift_and_no_cells_change():
    changes_ = compared(first(), second(dict.fromkeys(CELLS, 0.012)))
    assert {entry.change.verdict for entry in changes_.cells} == {Verdict.SLOWER}
    assert {item.without_shift.verdict for item in changes_.cells} == {Verdict.SAME}
    assert changes_.shift.change.verdict is Verdict.SLOWER
    assert changes_.shift.change.ratio.value == pytest.approx(1.2, rel=0.01)
    # the software is the same, so it was the machine: a gate does not fail by that
    assert Verdict.SLOWER not in changes_.deciding
    # on a slower day, a cell that kept its time is faster beside the shift
    unchanged = change(compared(first(), second(all_but(ONE, 1 / 1.2, seconds=0.012))), ONE)
    assert (unchanged.change.verdict, unchanged.without_shift.verdict) == (Verdict.SAME, Verdict.FASTER)
    # a shift of changed software may be the software's
    changes_ = compared(first(), second(dict.fromkeys(CELLS, 0.012), sources={"step": "cd34"}))
    assert (changes_.shift.change.verdict, changes_.shift.unchanged) == (Verdict.SLOWER, False)
    assert not any(entry.same_software for entry in changes_.cells)
    assert changes_.deciding == [Verdict.SLOWER] * 6


def test_a_shift_is_taken_from_the_cells_whose_software_is_the_same():
    cells = [*CELLS, *(cell("tf2.0", call=call) for call in "de"), *(cell("tf1.14", call=call) for call in "de")]
    images = {"tf1.14": "sha256:1", "tf2.0": "sha256:2"}
    seconds_ = {entry: 0.01 if entry.environment == "tf1.14" else 0.013 for entry in cells}
    one = first(dict.fromkeys(cells, 0.01), images=images)
    changes_ = compared(one, second(seconds_, images={**images, "tf2.0": "sha256:3"}))
    assert (changes_.shift.cells, changes_.shift.unchanged) == (5, True)
    assert changes_.shift.change.verdict is Verdict.SAME
    assert {item.without_shift.verdict for item in changes_.cells if item.cell.environment == "tf2.0"} == {
        Verdict.SLOWER
    }


def test_few_rounds_or_a_biased_control_in_either_run_give_no_verdict():
    for one, other, has_interval in ((1, 5, False), (5, 3, True)):
        changes_ = compared(first(count=one), second(count=other))
        change_ = changes_.cells[0].change
        assert (change_.verdict, change_.withheld) == (None, Withheld.FEW_ROUNDS)
        assert (change_.ratio.rounds, change_.ratio.interval is not None) == (min(one, other), has_interval)
        assert (changes_.shift, changes_.deciding) == (None, [])
    # two have one beyond one and a half times, as in a run
    for rounds in (2, 3):
        for seconds, verdict in ((0.03, Verdict.SLOWER), (0.014, None)):
            changes_ = compared(first(count=rounds), second(dict.fromkeys(CELLS, seconds), count=rounds))
            assert {entry.change.verdict for entry in changes_.cells} == {verdict}, (rounds, seconds)
            assert {item.change.withheld for item in changes_.cells} == {None if verdict else Withheld.FEW_ROUNDS}
            assert changes_.shift is None
    planned, launches = second(all_but(ONE, 2.0))
    controls = [launch(CELLS[0], 0.013, number, role=Role.CONTROL) for number in range(1, 6)]
    measured = [launch(CELLS[0], 0.010, number) for number in range(1, 6)]
    others = [entry for entry in launches if entry.cell != CELLS[0]]
    planned = run(CELLS, controlled=True, id=planned.id, sources=planned.sources)
    noisy = planned, [*others, *controls, *measured]
    for changes_ in (compared(first(), noisy), compared(noisy, first())):
        assert {item.change.withheld for item in changes_.cells} == {Withheld.CONTROL}
        assert {value.without_shift.withheld for value in changes_.cells} == {Withheld.CONTROL}


def test_cells_that_only_one_run_has_are_told_with_the_others_reason():
    planned, launches = second()
    failed = [broken(ONE, Status.FAILED, number) for number in range(6)]
    other = planned, [*(entry for entry in launches if entry.cell not in (ONE, CELLS[0])), *failed]
    more = cell("tf2.1")
    changes_ = compared(first({**dict.fromkeys(CELLS, 0.01), more: 0.01}), other)
    assert list(changes_.only_first) == [
        UnpairedCell(CELLS[0], Status.INTERRUPTED),
        UnpairedCell(ONE, Status.FAILED),
        UnpairedCell(more, None),
    ]
    assert (changes_.broken, list(changes_.only_second)) == ([CELLS[0], ONE], [])


def with_growth(stored, warmup_steps):
    """The run with a step in `ONE` that grows by 1 ms in 9.5 steps, measured after so many; of 50 it does not tell."""
    planned, launches = stored
    start = 0.01 + (warmup_steps - 50) / 190 * 0.02
    fields = {"resources": {"warmup_steps": float(warmup_steps)} if warmup_steps > 50 else {}}
    return planned, [entry for entry in launches if entry.cell != ONE] + growing(ONE, start, start + 0.02, **fields)


def test_a_step_that_changes_is_compared_where_both_runs_have_made_as_many():
    # as fast at each step, and the second run measured later ones
    changes_ = change(compared(with_growth(first(), 100), with_growth(second(), 200)), ONE)
    assert (changes_.steps.low, changes_.steps.high, changes_.change.verdict) == (200.0, 300.0, Verdict.SAME)
    # without steps in common it has no verdict, and no part in the shift
    changes_ = compared(with_growth(first(), 100), with_growth(second(), 50))
    apart = change(changes_, ONE)
    assert (apart.change.verdict, apart.change.withheld, apart.steps) == (None, Withheld.TREND, None)
    assert apart.without_shift is None
    assert changes_.shift.cells == len(CELLS) - 1


def test_a_change_is_no_more_certain_than_what_was_subtracted_for_cpu_contention():
    planned, launches = second(all_but(ONE, 1 / 1.1))

    def disturbed(entry, share):
        samples = [replace(sample, seconds=sample.seconds / (1.0 - share)) for sample in entry.samples]
        return replace(entry, samples=samples, resources=contended(share)) if entry.cell == ONE else entry

    for share, verdict in ((0.0, Verdict.FASTER), (0.5, Verdict.UNCLEAR)):
        changes_ = change(compared(first(), (planned, [disturbed(entry, share) for entry in launches])), ONE)
        assert changes_.change.ratio.value == pytest.approx(1.0 / 1.1, rel=0.01)
        assert changes_.change.verdict is verdict, share

"""Comparisons of one table, judged together."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from harness.analysis.cell_index import lookup
from harness.analysis.comparisons import RoundsNeeded, compare, compare_growth
from harness.analysis.interval_widths import log_intervals
from harness.analysis.quantities import PIECE
from harness.analysis.statistics import Logs, student
from harness.analysis.verdicts import Verdict, Withheld, rounds_to_settle
from harness.analysis.work_equivalence import Work
from harness.model.launch import Role
from tests.analysis.paired import SECONDS_PER_ROUND, around, family, pair
from tests.factories import cell, contended, launch, run
from tests.quantified import CALLS, NEW, OLD, memory, quantified, quantified_run

FASTER, SAME, SLOWER, UNCLEAR = Verdict.FASTER, Verdict.SAME, Verdict.SLOWER, Verdict.UNCLEAR

FAR, EQUAL, BACK = around(0.5), around(0.0), around(-0.5)
AT_THE_MARGIN = around(math.log(1.03), 0.01)

several = st.lists(st.floats(-0.2, 0.2), min_size=0, max_size=6)


def differing(*names):
    """Fingerprints by which these pairs did different work."""
    return {side: {"parameters": number} for name in names for number, side in enumerate(pair(name))}


def verdicts(comparisons):
    return [entry and entry.verdict for entry in comparisons]


def half(compared):
    ends = compared.ratio.interval
    return (math.log(ends.high) - math.log(ends.low)) / 2.0


def test_a_ratio_has_its_verdict_and_the_t_interval_of_the_rounds_that_both_have():
    faster, slower, same = family(FAR, BACK, EQUAL).compared()
    assert faster.ratio.value == pytest.approx(math.exp(-0.5))
    assert slower.ratio.value == pytest.approx(math.exp(0.5))
    assert verdicts([faster, slower, same]) == [FASTER, SLOWER, SAME]
    assert (faster.cell, faster.other) == pair("0")
    assert faster.ratio.rounds == 5
    # the margin is a share
    assert [family(around(math.log(1.05))).compared(margin)[0].verdict for margin in (0.03, 0.06)] == [FASTER, SAME]
    one, two, three = family([0.5], [0.09, 0.11], [0.09, 0.10, 0.11]).compared()
    assert one.ratio.interval is None
    assert two.ratio.value == pytest.approx(math.exp(-0.10))
    # two are judged together
    assert half(three) == pytest.approx(student(2, 0.975) * 0.01 / math.sqrt(3.0))
    assert three.level == pytest.approx(0.975)
    one = family(FAR, EQUAL)
    launches = [measured for measured in one.launches if measured.cell != one.pairs[0][1] or measured.round > 5]
    assert verdicts(replace(one, launches=launches).compared()) == [None, SAME]
    assert family([]).compared() == [None]
    assert compare([], one.found, 0.03) == []


def test_three_rounds_have_a_verdict_and_two_where_the_difference_is_large():
    def judged(*logs, margin=0.03):
        (comparison,) = family(logs).compared(margin)
        assert comparison.withheld is (None if comparison.verdict else Withheld.FEW_ROUNDS)
        assert comparison.settling is None
        return comparison.verdict

    spread = (0.001, -0.001, 0.0)
    outcomes = {
        (1.6, 1): None,
        (1.6, 2): FASTER,
        (1.0 / 1.6, 2): SLOWER,
        # three rounds suffice for any difference, two for one beyond ×1.5 alone
        (1.5, 2): None,
        (1.2, 3): FASTER,
        (1.0, 3): SAME,
    }
    assert {key: judged(*(math.log(key[0]) + off for off in spread[: key[1]])) for key in outcomes} == outcomes
    # two rounds far apart show none, and a margin beyond a large difference holds for them, too
    assert judged(math.log(1.6) + 0.1, math.log(1.6) - 0.1) is None
    assert judged(math.log(1.6), math.log(1.6), margin=0.7) is None


def test_different_work_takes_nothing_of_the_others_level():
    far, same = family(FAR, EQUAL, fingerprints=differing("0")).compared()
    assert (far.verdict, far.withheld, far.settling) == (Verdict.DIFFERENT_WORK, None, None)
    assert far.work.work is Work.DIFFERENT
    plain = family(EQUAL).compared()[0]
    assert (same.verdict, same.level, same.ratio) == (SAME, plain.level, plain.ratio)
    assert family(FAR, [0.5]).compared()[0] == family(FAR).compared()[0]
    # work that was not checked is judged
    assert family(FAR).compared()[0].work.work is Work.NOT_CHECKED
    (checked,) = family(FAR, fingerprints={side: {"parameters": 7} for side in pair("0")}).compared()
    assert (checked.verdict, checked.work.work) == (FASTER, Work.SAME)


def test_a_control_beyond_the_margin_withholds_verdicts_and_one_that_only_reaches_beyond_it_does_not():
    for comparison in family(FAR, EQUAL, AT_THE_MARGIN, BACK, control=around(-0.05)).compared():
        assert (comparison.verdict, comparison.withheld, comparison.settling) == (None, Withheld.CONTROL, None)
    # from -0.03 to 0.07, which is beyond the nearer end of an interval around 0.07
    comparisons = family(around(0.07), FAR, BACK, EQUAL, AT_THE_MARGIN, control=around(0.02, 0.04)).compared()
    assert verdicts(comparisons) == [FASTER, FASTER, SLOWER, SAME, UNCLEAR]
    assert {entry.withheld for entry in comparisons} == {None}
    # nor does one of one round
    assert verdicts(family(FAR, EQUAL, control=[0.5]).compared()) == [FASTER, SAME]
    comparisons = family(FAR, [0.1], [0.1] * 2, [0.5] * 2, fingerprints=differing("0"), control=around(0.05)).compared()
    assert verdicts(comparisons) == [Verdict.DIFFERENT_WORK, None, None, None]
    few, control = Withheld.FEW_ROUNDS, Withheld.CONTROL
    assert [entry.withheld for entry in comparisons] == [None, few, few, control]


def test_an_unclear_verdict_tells_how_many_rounds_and_seconds_settle_it_with_which_probability():
    one = family(around(math.log(1.03) + 0.03, 0.03))
    (comparison,) = one.compared()
    assert comparison.verdict is UNCLEAR
    more = comparison.settling.rounds
    estimate_ = Logs(*(np.array([value]) for value in (math.log(1.03) + 0.03, 0.03**2, 5.0, 4.0)))
    # the run's own look is after five rounds, and one after N has 1 - 5/N of the level
    (total,), (chance,) = rounds_to_settle(
        estimate_, np.array([0.05]), math.log(1.03), level=lambda rounds: 1.0 - 5.0 / rounds
    )
    half = -stdtrit(total - 1.0, 0.025 * (1.0 - 5.0 / total)) * 0.03 / math.sqrt(total)
    assert comparison.settling == RoundsNeeded(
        total - 5, more * SECONDS_PER_ROUND, pytest.approx(half), pytest.approx(chance)
    )
    assert comparison.settling.is_likely


@settings(max_examples=30)
@given(st.lists(several, min_size=1, max_size=6), st.booleans())
def test_the_width_that_stops_a_group_is_the_one_that_is_shown_and_different_work_has_none(members, is_first_different):
    one = family(*members, fingerprints=differing("0") if is_first_different else None)
    index = one.found
    for compared, interval in zip(compare(one.pairs, index, 0.03), log_intervals(one.pairs, index), strict=True):
        assert (compared is None or compared.verdict is Verdict.DIFFERENT_WORK) == (interval is None)
        if interval is not None:
            assert interval[1] == (pytest.approx(half(compared)) if compared.ratio.interval else math.inf)


def grown(new, old=0.0, **changes):
    """What is said of memory growth in tf2.0, which keeps `new` bytes a call, against tf1.14, which keeps `old`."""
    values = {"tf1.14": (0.3, 4e8, old, 3), "tf2.0": (0.3, 4e8, new, 3)}
    launches = quantified(values=values, **changes)
    (comparison,) = compare_growth([(NEW, OLD)], lookup(quantified_run("memory growth"), launches))
    return comparison


def test_growth_is_judged_by_its_difference_if_both_cells_did_the_same_work():
    for new, old, verdict in ((1200.0, 0.0, SLOWER), (0.0, 1200.0, FASTER), (1200.0, 1180.0, SAME)):
        comparison = grown(new, old)
        assert comparison.verdict is verdict, (new, old)
        assert comparison.ratio.value == pytest.approx(new - old, abs=30.0)
        assert new - old in comparison.ratio.interval, (new, old)
    at_the_margin = grown(2 * PIECE / CALLS - 20.0, leak=20.0)
    assert at_the_margin.verdict is UNCLEAR
    assert 0.0 < at_the_margin.settling.half < 2 * PIECE / CALLS
    assert at_the_margin.settling.rounds > 0
    assert grown(1200.0, memory=()) is None
    launches = [
        replace(entry, fingerprint={"parameters": 1 if entry.cell == OLD else 2}) for entry in quantified(count=3)
    ]
    (comparison,) = compare_growth([(NEW, OLD)], lookup(quantified_run("memory growth"), launches))
    assert comparison.verdict is Verdict.DIFFERENT_WORK


def test_a_withheld_verdict_on_growth_is_decided_by_no_interval():
    later = cell("tf2.1")
    # clear at Holm's level for the last comparison, but not at the level of the interval that is shown
    growths_ = {OLD: (0.0, 0.0), NEW: (1e5, 1e5), later: (950.0, 1050.0)}
    launches = [
        launch(member, 0.01, number, memory=memory(growth))
        for member, growths in growths_.items()
        for number, growth in enumerate(growths, 1)
    ]
    for comparisons in compare_growth([(NEW, OLD), (later, OLD)], lookup(run(growths_), launches)):
        assert (comparisons.verdict, comparisons.withheld, comparisons.deciding) == (None, Withheld.FEW_ROUNDS, None)


def test_growth_beside_a_control_that_grows_unlike_itself_has_no_verdict():
    for apart, withheld in [((0.0, 10.0, -10.0), None), ((500.0, 510.0, 490.0), Withheld.CONTROL), ((500.0,), None)]:
        launches = quantified(values={"tf1.14": (0.3, 4e8, 0.0, 3), "tf2.0": (0.3, 4e8, 1200.0, 3)}, count=3)
        first = [entry for entry in launches if entry.cell == OLD and entry.role is Role.MEASURE]
        repeats = [
            replace(launch_, role=Role.CONTROL, memory=[(calls, held + by * calls) for calls, held in launch_.memory])
            for launch_, by in zip(first, apart, strict=False)
        ]
        (comparison,) = compare_growth([(NEW, OLD)], lookup(quantified_run("memory growth"), [*launches, *repeats]))
        assert (comparison.verdict, comparison.withheld) == (None if withheld else SLOWER, withheld), apart


def on_a_shared_core(ratio, *shares, truth=None):
    """The comparison of a pair whose other takes `ratio` times as long, with so much of the CPU taken of each.

    `truth`: what was taken in fact.
    """
    one = family([0.0])
    seconds = [0.01 / (1.0 - took) for took in truth or shares]
    seconds[1] *= ratio
    launches = [
        launch(member, rate * math.exp(noise), number, resources=contended(share))
        for member, rate, share in zip(one.pairs[0], seconds, shares, strict=True)
        for number, noise in enumerate([0.001, -0.001, 0.0, 0.001, -0.001], 1)
    ]
    (comparison,) = replace(one, launches=launches).compared()
    return comparison


def test_a_difference_that_contention_explains_is_withheld_and_a_larger_one_is_not():
    # both lost 30 %, and of one 36 % were subtracted
    comparison = on_a_shared_core(1.0, 0.36, 0.30, truth=(0.30, 0.30))
    assert comparison.ratio.value == pytest.approx(0.64 / 0.70, rel=0.01)
    assert (comparison.verdict, comparison.withheld, comparison.settling) == (None, Withheld.CONTENTION, None)
    assert 1.0 in comparison.ratio.interval
    # it was judged, so the others' level is divided with it
    assert comparison.withheld.by_times
    comparisons = [on_a_shared_core(1.1, share, share) for share in (0.0, 0.1, 0.5)]
    assert [half(entry) for entry in comparisons] == sorted(half(entry) for entry in comparisons)
    assert verdicts(comparisons) == [FASTER, FASTER, None]
    assert [entry.withheld for entry in comparisons] == [None, None, Withheld.CONTENTION]
    assert comparisons[0].contention == 0.0
    # a large difference is found where all cells lose half of the core
    for ratio in (1.5, 3.0):
        large = on_a_shared_core(ratio, 0.5, 0.5)
        assert large.verdict is FASTER, ratio
        assert large.ratio.value == pytest.approx(1.0 / ratio, rel=0.01)

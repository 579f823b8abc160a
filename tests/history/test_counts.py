"""Changes of exact counts: certain in one run, and none where counts vary."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.history import page
from harness.history.segments import find_count_changes
from harness.history.summary import summarize
from harness.model.history import Series
from tests.analysis.test_work_counts import NEW, OLD, counts
from tests.factories import rounds, run
from tests.history.nights import judge_series
from tests.history.series import KEY, ORIGIN, point


def points(counts, kits=()):
    return [
        point(night, 0.0, ORIGIN._replace(kit=(kits or [""] * len(counts))[night]))._replace(calls=calls)
        for night, calls in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("counted", "changes"),
    [
        ([5.0, 5.0, 7.0, 7.0, 5.0], [(2, 5.0, 7.0), (4, 7.0, 5.0)]),
        ([5.0, None, 5.0, None, 7.0], [(4, 5.0, 7.0)]),
        ([5.0, 7.0, 5.0, 7.0], []),
        ([5.0, 5.0, 7.0, 8.0, 8.0, 9.0], [(2, 5.0, 7.0), (5, 8.0, 9.0)]),
        ([None, None], []),
    ],
)
def test_a_count_that_was_steady_changes_in_one_run(counted, changes):
    assert list(find_count_changes(points(counted))) == changes


def test_a_run_stores_counts_that_are_compared_within_one_kit():
    launches = [replace(one, observations={"work": counts()}) for one in rounds({OLD: 0.01, NEW: 0.03})]
    assert [point.calls for point in summarize(Results(run([OLD, NEW]), launches)).points] == [15.0, 15.0]
    judged = judge_series(Series(KEY, points([15.0] * 4 + [20.0] * 4)))
    assert page._list_point_facts(judged, [], 0) == [(4, "mark", "calls per step (15 → 20)")]
    assert page._list_point_facts(judged, [], 4) == []
    assert not list(find_count_changes(points([5.0, 5.0, 7.0, 7.0], ["a", "a", "b", "b"])))

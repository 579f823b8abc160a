"""The digest of the last days: changes, muted series, and detectable changes."""

import random
from datetime import UTC, date, datetime, timedelta

import pytest

from harness.history.changes import compare, find_start
from harness.history.detection import compute_detectable_change, detect_changes
from harness.history.digest import render
from harness.history.nightly_file import RuleKind, SuppressionRule
from harness.history.states import find_changes
from harness.model.history import Decision, HistoryEntry, Series
from tests.history.nights import FIRST, MACHINE, key, run_of, series
from tests.history.test_states import decision

NIGHTS = 20
NOW = FIRST + timedelta(days=NIGHTS)
ENTRIES = [HistoryEntry(*run_of(night), [MACHINE], "", "tf1.14", 1) for night in range(NIGHTS)]


def draw_logs(step: float = 0.0, spread: float = 0.004, since: int = NIGHTS - 5) -> list[float]:
    source = random.Random(7)
    return [source.gauss(0.0, spread) + (step if night >= since else 0.0) for night in range(NIGHTS)]


def confirm(of: Series) -> list[Decision]:
    when = NOW.isoformat()
    changes = find_changes([of])
    return [decision(change, when=when, ratio=change.ratio, low=change.low, high=change.high) for change in changes]


def render_page(*all_series: Series, rules: tuple[SuppressionRule, ...] = (), now: datetime = NOW) -> str:
    decisions = [entry for one_series in all_series for entry in confirm(one_series)]
    since = find_start(ENTRIES, (now - timedelta(days=7)).isoformat())
    return render(compare(all_series, decisions, since, ENTRIES, []), rules, now, 7).replace("\xa0", " ")


def test_a_digest_of_slower_faster_equal_and_muted_series(golden):
    rules = (
        SuppressionRule(RuleKind.MUTE, "muted *", "bug 5", date(2026, 12, 31)),
        SuppressionRule(RuleKind.MUTE, "slwo *", "a typo", date(2026, 8, 2)),
    )
    steps = {"slow": 0.1, "muted": 0.1, "fast": -0.1, "same": 0.0}
    all_series = [series(key(name), draw_logs(step)) for name, step in steps.items()]
    all_series.append(series(key("earlier"), draw_logs(0.1, since=6)))
    few = series(key("few"), [None] * (NIGHTS - 2) + [0.0, 0.01])
    assert render_page(*all_series, few, rules=rules) == golden
    # much later, no machine has sent anything
    assert render_page(few, now=datetime(2026, 12, 1, tzinfo=UTC)) == golden


@pytest.mark.slow
def test_a_change_of_the_detectable_size_is_usually_found():
    for nights in (3, 7):
        source = random.Random(3)
        hits = 0
        for _ in range(60):
            values = [source.gauss(0.0, 0.02) for _ in range(40)]
            size = compute_detectable_change(values, [0.01] * 40, nights)
            assert size
            later = [source.gauss(size - 1.0, 0.02) for _ in range(nights)]
            (changes,) = detect_changes([([*values, *later], [0.01] * (40 + nights))])
            hits += bool(changes.significant)
        assert 0.6 < hits / 60 < 1.0, nights


def test_more_nights_and_a_quieter_series_show_smaller_changes_and_few_results_none():
    loud, quiet = draw_logs(spread=0.02), draw_logs(spread=0.004)
    cases = [(loud, 3), (loud, 7), (quiet, 7)]
    sizes = [compute_detectable_change(values, [0.0] * NIGHTS, nights) for values, nights in cases]
    assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]
    assert None not in sizes
    assert compute_detectable_change([0.0, 0.1], [0.01, 0.01]) is None

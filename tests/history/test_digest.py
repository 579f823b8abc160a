"""The digest of the last days: changes, muted series, and detectable changes."""

import random
from datetime import UTC, date, datetime, timedelta

import pytest

from harness.history.change_cache import SearchOptions, search
from harness.history.detection import compute_detectable_change
from harness.history.digest import LINES, render
from harness.history.nightly_file import RuleKind, SuppressionRule
from harness.history.states import find_changes, judge_series
from harness.model.history import Decision, HistoryEntry
from tests.history.nights import FIRST, MACHINE, key, run_of, series

NIGHTS = 20
NOW = FIRST + timedelta(days=NIGHTS)
ENTRIES = [HistoryEntry(*run_of(night), [MACHINE], "", "tf1.14", 1) for night in range(NIGHTS)]


def logs(step: float = 0.0, spread: float = 0.004, since: int = NIGHTS - 5) -> list[float]:
    source = random.Random(7)
    return [source.gauss(0.0, spread) + (step if night >= since else 0.0) for night in range(NIGHTS)]


def page(*all_series, rules=(), now=NOW) -> str:
    said = []
    for of in all_series:
        said += [
            Decision(
                change.key,
                change.since,
                change.suspects,
                True,
                "run-c",
                NOW.isoformat(),
                change.ratio,
                change.low,
                change.high,
            )
            for change in find_changes([of])
        ]
    return render([judge_series(entry, said) for entry in all_series], ENTRIES, rules, now).replace("\xa0", " ")


def section(text: str, title: str) -> str:
    return text.split(f"{title}\n", 1)[1].split("\n## ", maxsplit=1)[0]


def test_slower_and_faster_series_are_listed_apart() -> None:
    text = page(series(key("slow"), logs(0.1)), series(key("fast"), logs(-0.1)), series(key("same"), logs()))
    assert "slow" in section(text, "## Slower")
    assert "fast" not in section(text, "## Slower")
    assert "fast" in section(text, "## Fixed or faster")
    assert "same" not in section(text, "## Slower") + section(text, "## Fixed or faster")


def test_a_change_of_an_earlier_week_is_not_listed() -> None:
    of = series(key("slow"), logs(0.1, since=6))
    text = render([judge_series(of)], ENTRIES, (), NOW)
    assert "None." in section(text, "## Slower")


def test_what_is_muted_is_listed_with_its_reason_and_its_end() -> None:
    rule = SuppressionRule(RuleKind.MUTE, "slow *", "bug 5", date(2026, 12, 31))
    unused = SuppressionRule(RuleKind.MUTE, "slwo *", "a typo", date(2026, 8, 2))
    text = page(series(key("slow"), logs(0.1)), rules=[rule, unused])
    assert "mute until 2026-12-31: bug 5" in section(text, "## Slower")
    assert "2026-08-02 (ended)" in section(text, "## Accepted and muted")
    assert "none: check the name" in section(text, "## Accepted and muted")


def test_a_machine_that_sent_nothing_is_missing_and_no_run_at_all_is_said() -> None:
    of = series(key(), logs())
    assert f"{MACHINE.name}: 7 runs, the newest on 20 Aug 2026." in page(of)
    assert "No runs were added in this period." in page(of, now=datetime(2026, 12, 1, tzinfo=UTC))


def test_it_stays_a_page() -> None:
    text = page(*(series(key(f"s{number}"), logs(0.1)) for number in range(4 * LINES)))
    assert f"And {3 * LINES} more" in section(text, "## Slower")
    assert len(text) < 12_000


def test_a_series_with_few_results_has_no_detectable_change() -> None:
    assert compute_detectable_change([0.0, 0.1], [0.01, 0.01]) is None
    assert "after 3 results" in page(series(key(), [None] * (NIGHTS - 2) + [0.0, 0.01]))


@pytest.mark.parametrize("nights", [3, 7])
def test_a_change_of_the_detectable_size_is_usually_found(nights: int) -> None:
    source = random.Random(3)
    hits = 0
    for _ in range(60):
        values = [source.gauss(0.0, 0.02) for _ in range(40)]
        size = compute_detectable_change(values, [0.01] * 40, nights)
        assert size
        later = [source.gauss(size - 1.0, 0.02) for _ in range(nights)]
        hits += bool(search([*values, *later], [0.01] * (40 + nights), SearchOptions()).sure)
    assert 0.6 < hits / 60 < 1.0


def test_more_nights_and_a_quieter_series_show_smaller_changes() -> None:
    loud, quiet = logs(spread=0.02), logs(spread=0.004)
    sizes = [
        compute_detectable_change(values, [0.0] * NIGHTS, nights)
        for values, nights in [(loud, 3), (loud, 7), (quiet, 7)]
    ]
    assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]
    assert None not in sizes

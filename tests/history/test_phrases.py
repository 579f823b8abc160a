"""What is said of findings, and what series are called."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history import phrases
from harness.history.detection import ChangePoint
from harness.history.states import State, judge_series
from tests.history.nights import changed, entries, key, noise, season, series


@pytest.mark.parametrize(
    ("ratio", "low", "high", "told"),
    [
        (1.081, 1.079, 1.083, "+8.1 % (+7.9 to +8.3)"),
        (0.895, 0.892, 0.898, "-10.5 % (-10.8 to -10.2)"),
        (1.0, 0.99999, 1.00001, "+0.0 % (+0.0 to +0.0)"),
        (17.24, 16.9, 17.55, "17.2× (16.9 to 17.6)"),
        (0.1, 0.09, 0.11, "0.100× (0.0900 to 0.110)"),
    ],
)
def test_the_size_of_a_change(ratio: float, low: float, high: float, told: str) -> None:
    change = ChangePoint(3, 0.0, math.log(ratio), ratio, low, high, 1e-9)
    assert phrases.format_change(change) == told


def test_a_series_is_named_by_its_cell_and_reference_and_by_what_else_differs() -> None:
    one, other = key(call="fit"), replace(key(call="fit"), way="2 CPUs, time, auto, launch after launch")
    assert phrases.make_names([one], entries(1)).texts[one] == "step tf2.1 cpu call=fit vs tf1.14"
    both = phrases.make_names([one, other], entries(1))
    assert both.columns == ["way"]
    assert both.texts[other].endswith("vs tf1.14 (2 CPUs, time, auto, launch after launch)")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), unique=True, min_size=1))
def test_every_name_is_one_series(of: list[tuple[str, str]]) -> None:
    keys = [key(environment=environment, call=call) for environment, call in of]
    made = phrases.make_names(keys, entries(1))
    assert len(set(made.texts.values())) == len(keys)
    assert all(len(parts) == len(made.columns) for parts in made.parts.values())


def test_the_answer_counts_each_state() -> None:
    of, *_ = season()
    assert phrases.describe_counts(of) == (
        "Of 17 series, 1 is confirmed to have changed, 2 are suspected to have changed, 1 is refuted and "
        "13 are unchanged."
    )
    assert phrases.describe_counts(of[4:]) == "No open change in 13 series."


def test_causes_are_in_the_order_of_what_has_to_be_looked_at() -> None:
    of, *_ = season()
    causes = phrases.group_by_cause(of)
    assert [[entry.state for entry in some] for some in causes] == [
        [State.CONFIRMED, State.SUSPECTED],
        [State.SUSPECTED],
        [State.REFUTED],
    ]
    assert phrases.format_title(causes[0]) == "Confirmed: 1 series slower since the run of 24 Oct 2026"
    assert phrases.describe_suspects(causes[1]) == "No recorded fact changed before that run."


def test_a_cause_that_moved_series_both_ways_says_so() -> None:
    of = [
        judge_series(changed(series(key(call=call), [*noise(10), *noise(8, level, seed=3)]), lock=("9be2", 10)))
        for call, level in (("fit", 0.1), ("predict", -0.1))
    ]
    (cause,) = phrases.group_by_cause(of)
    assert phrases.format_title(cause) == "Suspected: 2 series different since the run of 11 Aug 2026"


def test_a_reference_has_times_alone() -> None:
    of = judge_series(series(replace(key(), reference=""), [None, None]))
    assert phrases.describe_series(of) == "This cell is the baseline of other cells, so it has times instead of ratios."


def test_what_a_series_stands_at_says_how_long_and_since_when() -> None:
    of, *_ = season()
    told = phrases.describe_series(of[0])
    assert told.startswith("Confirmed: its time is +8.1 % (+7.9 to +8.4) since the run 2026-10-24T03-40-00Z-0054 of")
    assert phrases.describe_series(of[-1]) == "No open change in 120 runs."


@pytest.mark.parametrize(
    ("started", "told"),
    [
        ("2026-11-22", "22 Nov 2026"),
        ("2026-11-22T23:30:00-02:00", "23 Nov 2026"),
        ("2026-09-01T00:00:00", "1 Sep 2026"),
    ],
)
def test_a_day_is_of_utc(started: str, told: str) -> None:
    assert phrases.format_day(started) == told

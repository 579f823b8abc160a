"""What is said of findings, and what series are called."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.history import phrases
from harness.history.detection import ChangePoint
from harness.history.states import State
from tests.history.nights import changed, entries, judge_series, key, noise, season, series


def test_the_size_of_a_change_and_the_day_of_a_run():
    sizes = {
        (1.081, 1.079, 1.083): "+8.1 % (+7.9 to +8.3)",
        (0.895, 0.892, 0.898): "-10.5 % (-10.8 to -10.2)",
        (1.0, 0.99999, 1.00001): "+0.0 % (+0.0 to +0.0)",
        (17.24, 16.9, 17.55): "17.2× (16.9 to 17.6)",
        (0.1, 0.09, 0.11): "0.100× (0.0900 to 0.110)",
    }
    changes = {values: ChangePoint(3, 0.0, math.log(values[0]), *values, 1e-9) for values in sizes}
    assert {values: phrases.format_change(change) for values, change in changes.items()} == sizes
    days = {
        "2026-11-22": "22 Nov 2026",
        "2026-11-22T23:30:00-02:00": "23 Nov 2026",
        "2026-09-01T00:00:00": "1 Sep 2026",
    }
    assert {started: phrases.format_day(started) for started in days} == days


def test_a_series_is_named_by_its_cell_and_reference_and_by_what_else_differs():
    one, other = key(call="fit"), replace(key(call="fit"), way="2 CPUs, time, auto, launch after launch")
    assert phrases.make_names([one], entries(1)).texts[one] == "step tf2.1 cpu call=fit vs tf1.14"
    both = phrases.make_names([one, other], entries(1))
    assert both.columns == ["way"]
    assert both.texts[other] == f"step tf2.1 cpu call=fit vs tf1.14 ({other.way})"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), unique=True, min_size=1))
def test_every_name_is_one_series(cells):
    keys = [key(environment=environment, call=call) for environment, call in cells]
    names = phrases.make_names(keys, entries(1))
    assert len(set(names.texts.values())) == len(keys)
    assert all(len(parts) == len(names.columns) for parts in names.parts.values())


def test_sentences(snapshot):
    series_list, *_ = season()
    causes = phrases.group_by_cause(series_list)
    # in the order of what has to be looked at
    assert [[finding.state for finding in cause] for cause in causes] == [
        [State.CONFIRMED, State.SUSPECTED],
        [State.SUSPECTED],
        [State.REFUTED],
    ]
    both_ways = [
        judge_series(changed(series(key(call=call), [*noise(10), *noise(8, level, seed=3)]), lock=("9be2", 10)))
        for call, level in (("fit", 0.1), ("predict", -0.1))
    ]
    (both,) = phrases.group_by_cause(both_ways)
    baseline = judge_series(series(replace(key(), reference=""), [None, None]))
    assert {
        "counts": phrases.describe_counts(series_list),
        "counts without a change": phrases.describe_counts(series_list[4:]),
        "titles": [phrases.format_title(cause) for cause in (*causes, both)],
        "suspects": [phrases.describe_suspects(cause) for cause in causes],
        "series": [
            phrases.describe_series(entry)
            for entry in (series_list[0], series_list[1], series_list[2], series_list[3], series_list[-1], baseline)
        ],
    } == snapshot

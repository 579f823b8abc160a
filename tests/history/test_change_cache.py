"""What was found before is not searched again, unless something is another: a point, an option, the search itself."""

import json

import pytest

from harness.history import change_cache
from harness.history.change_cache import ChangeCache, SearchOptions, search_all
from harness.history.states import State, find_changes, judge_series
from tests.history.series import noise, series, stepped
from tests.history.test_states import decision


@pytest.fixture
def searches(monkeypatch):
    lengths = []

    def count(all_series, options):
        lengths.extend(len(values) for values, _ in all_series)
        return search_all(all_series, options)

    monkeypatch.setattr(change_cache, "search_all", count)
    return lengths


def find_with_file(path, all_series):
    cache = ChangeCache(path)
    judged = [judge_series(one_series, known=cache) for one_series in all_series]
    cache.save()
    return judged


def test_what_is_kept_says_what_a_search_says_and_a_night_more_costs_its_own_series_alone(tmp_path, searches):
    series_list = [series(stepped(40, 60)), series(noise(50)), series(stepped(57, 59))]
    plain = [judge_series(entry) for entry in series_list]
    path = tmp_path / "deep" / "changes.json"
    assert find_with_file(path, series_list) == plain
    searches.clear()
    assert find_with_file(path, series_list) == plain
    assert not searches
    find_with_file(path, [series_list[0], series([*noise(50), 0.0]), series_list[2]])
    assert searches == [51]
    # a decision is applied to what is known
    (before,) = find_changes(series_list[:1], known=ChangeCache(path))
    (after,) = find_changes(series_list[:1], [decision(before)], known=ChangeCache(path))
    assert (before.state, after.state) == (State.SUSPECTED, State.CONFIRMED)
    assert searches == [51]


def test_another_option_interval_or_search_is_searched_anew(tmp_path, searches, monkeypatch):
    one_series, cache = series(stepped(40, 60)), ChangeCache(tmp_path / "changes.json")
    others = [SearchOptions(fewest=4), SearchOptions(p=1e-4), SearchOptions(least=0.02)]
    for options in (SearchOptions(), *others):
        judge_series(one_series, options=options, known=cache)
    judge_series(
        type(one_series)(one_series.key, [*one_series.points[:-1], one_series.points[-1]._replace(low=-0.2)]),
        known=cache,
    )
    assert len(searches) == 5
    cache.save()
    monkeypatch.setattr(change_cache, "_hash_code", lambda: b"another")
    judge_series(one_series, known=ChangeCache(tmp_path / "changes.json"))
    assert len(searches) == 6


def test_a_damaged_file_knows_nothing_and_is_written_anew(tmp_path):
    path, one_series = tmp_path / "changes.json", series(stepped(40, 60))
    for text in ("", "[]", "{", '{"a": 1}', '{"a": [[[1]], []]}', "null", "[" * 100_000):
        path.write_text(text)
        assert find_with_file(path, [one_series]) == [judge_series(one_series)]
        assert len(json.loads(path.read_text())) == 1
    # what can't be kept is no error
    find_with_file(path / "changes.json", [one_series])


def test_what_was_asked_for_last_is_kept(tmp_path, monkeypatch, searches):
    monkeypatch.setattr(change_cache, "MOST", 2)
    path = tmp_path / "changes.json"
    all_series = [series(noise(30, seed=seed)) for seed in range(3)]
    for one_series in all_series:
        find_with_file(path, [one_series])
    searches.clear()
    find_changes(all_series[1:], known=ChangeCache(path))
    assert not searches
    judge_series(all_series[0], known=ChangeCache(path))
    assert searches == [30]

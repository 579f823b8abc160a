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
    """The lengths of what was searched."""
    asked = []

    def counting(all_series, options):
        asked.extend(len(values) for values, _ in all_series)
        return search_all(all_series, options)

    monkeypatch.setattr(change_cache, "search_all", counting)
    return asked


def test_what_is_kept_says_what_a_search_says(tmp_path, searches):
    of = [series(stepped(40, 60)), series(noise(50)), series(stepped(57, 59))]
    plain = [judge_series(entry) for entry in of]
    path = tmp_path / "deep" / "changes.json"
    first = ChangeCache(path)
    assert [judge_series(entry, known=first) for entry in of] == plain
    first.save()
    searches.clear()
    later = ChangeCache(path)
    assert [judge_series(entry, known=later) for entry in of] == plain
    assert not searches


def test_a_night_more_costs_its_own_series_alone(tmp_path, searches):
    path = tmp_path / "changes.json"
    of = [series(noise(50, seed=seed)) for seed in range(4)]
    first = ChangeCache(path)
    find_changes(of, known=first)
    first.save()
    searches.clear()
    find_changes([*of[:3], series([*noise(50, seed=3), 0.0])], known=ChangeCache(path))
    assert searches == [51]


@pytest.mark.parametrize("other", [SearchOptions(fewest=4), SearchOptions(p=1e-4), SearchOptions(least=0.02)])
def test_another_option_is_searched_anew(searches, other):
    of, remembered = series(stepped(40, 60)), ChangeCache()
    judge_series(of, known=remembered)
    judge_series(of, options=other, known=remembered)
    assert len(searches) == 2


def test_another_interval_is_searched_anew(searches):
    of, remembered = series(noise(30)), ChangeCache()
    judge_series(of, known=remembered)
    points = [*of.points[:-1], of.points[-1]._replace(low=-0.2)]
    judge_series(type(of)(of.key, points), known=remembered)
    assert len(searches) == 2


def test_another_search_knows_nothing(tmp_path, searches, monkeypatch):
    first = ChangeCache(tmp_path / "changes.json")
    judge_series(series(noise(30)), known=first)
    first.save()
    monkeypatch.setattr(change_cache, "_hash_code", lambda: b"another")
    judge_series(series(noise(30)), known=ChangeCache(tmp_path / "changes.json"))
    assert len(searches) == 2


def test_a_decision_is_applied_to_what_is_known(searches):
    of, remembered = series(stepped(40, 60)), ChangeCache()
    (found,) = find_changes([of], known=remembered)
    (after,) = find_changes([of], [decision(found)], known=remembered)
    assert (found.state, after.state) == (State.SUSPECTED, State.CONFIRMED)
    assert len(searches) == 1


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": [[[1]], []]}', "null", "[" * 100_000])
def test_a_damaged_file_knows_nothing_and_is_written_anew(tmp_path, text):
    path = tmp_path / "changes.json"
    path.write_text(text)
    of = series(stepped(40, 60))
    first = ChangeCache(path)
    assert judge_series(of, known=first) == judge_series(of)
    first.save()
    assert len(json.loads(path.read_text())) == 1


def test_what_was_asked_for_last_is_kept(tmp_path, monkeypatch, searches):
    monkeypatch.setattr(change_cache, "MOST", 2)
    path = tmp_path / "changes.json"
    for seed in range(3):
        remembered = ChangeCache(path)
        judge_series(series(noise(30, seed=seed)), known=remembered)
        remembered.save()
    searches.clear()
    find_changes([series(noise(30, seed=seed)) for seed in (1, 2)], known=ChangeCache(path))
    assert not searches
    judge_series(series(noise(30, seed=0)), known=ChangeCache(path))
    assert searches == [30]


def test_what_cannot_be_kept_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    remembered = ChangeCache(tmp_path / "file" / "changes.json")
    judge_series(series(noise(30)), known=remembered)
    remembered.save()

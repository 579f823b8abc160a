"""A search by counts: one launch of each candidate, and an exact answer."""

from dataclasses import replace

import pytest

from harness.bisect.request import By
from harness.bisect.search import EqualEndpointsError, SearchEnd, narrow_by_work
from harness.model.errors import CannotRunHereError
from tests.bisect.machine import SearchedMachine
from tests.bisect.test_report import REQUEST, render


def search_on(machine, budget=1e9):
    search = machine.search()
    narrow_by_work(search, budget, machine)
    return search


def test_each_candidate_is_launched_once_and_the_ends_twice():
    for place in (0, 7, 18):
        machine = SearchedMachine([848.0] * (place + 1) + [1197.0] * (19 - place), absent=[4], broken=[10])
        search = search_on(machine)
        first, last = search.found
        assert (search.ended, first <= place < last) == (SearchEnd.CONFIRMED, True)
        assert last - first == 1 + sum(first < number < last for number in search.unknown)
        assert machine.asked[:2] == [("count", ["c0", "c19"], 1)] * 2
        assert 3 <= len(machine.asked) - 2 <= 6
        assert {tuple(texts) for _, texts, _ in machine.asked[2:]}.isdisjoint({("c0",), ("c19",)})


def test_ends_without_a_difference_or_without_a_count_are_errors(monkeypatch):
    with pytest.raises(EqualEndpointsError):
        search_on(SearchedMachine([5.0, 6.0, 5.0]))
    with pytest.raises(CannotRunHereError, match="c2 has no exact count: it fails"):
        search_on(SearchedMachine([5.0, 6.0, 7.0], broken=[2]))
    machine = SearchedMachine([5.0, 6.0, 7.0])
    measure = machine.measure

    def drift(*arguments, **options):
        machine.values["c2"] += 1.0
        return measure(*arguments, **options)

    monkeypatch.setattr(machine, "measure", drift)
    with pytest.raises(CannotRunHereError, match="c2 has no exact count: two launches"):
        search_on(machine)


def test_a_report_of_counts(golden):
    search = search_on(SearchedMachine([848.0, 848.0, 1197.0]))
    request = replace(REQUEST, by=By.WORK)
    budget = search_on(SearchedMachine([1.0] * 4 + [2.0]), budget=50.0)
    assert budget.ended is SearchEnd.BUDGET
    assert render(search, request=request) == golden
    assert "The budget ended the search." in render(budget, request=request)

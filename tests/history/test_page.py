"""The history's page, as text: what a browser makes of it is in tests/browser/test_history.py."""

import json
import re
from typing import Any

import pytest

from harness.history import page
from harness.model.history import Key, Note
from harness.report.html import assets
from tests.history.nights import entries, judge_series, key, noise, season, series


def data(text: str) -> dict[str, Any]:
    script = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert script
    document: dict[str, Any] = json.loads(script[1])
    return document


@pytest.fixture(scope="module")
def seasonal() -> str:
    return page.render(*season(), 0.03)


def find_fit(text: str) -> dict[str, Any]:
    return next(entry for entry in data(text)["series"] if "call=fit" in entry["name"])


@pytest.mark.slow
def test_nothing_is_fetched_and_no_other_script_runs(seasonal):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', seasonal)
    assert policy
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    ours = seasonal.replace(assets.make_vega_script(None).text, "")
    assert len(ours) < len(seasonal)
    assert not re.search(r"""(?:src|href)=["'](?!#)|@import|url\((?!#)""", ours)


def test_ratios_come_back_to_a_hundred_thousandth_with_their_intervals():
    logs = [0.1, None, -2.3456789]
    (entry,) = data(page.render([judge_series(series(key(), logs, half=0.01))], entries(3), [], 0.03))["series"]
    assert entry["ratio"] == [10000, None, -234568]
    assert (entry["down"], entry["up"]) == ([1000, 0, 1000], [1100, 0, 1100])
    assert entry["seconds"][1] is None
    assert entry["runs"] == [0, 1, 2]
    (entry,) = data(page.render([judge_series(series(key(), [None] * 3))], entries(3), [], 0.03))["series"]
    assert entry["levels"] == []


def test_findings_are_listed_by_cause_with_links_to_their_series_and_what_confirmations_measured(seasonal, golden):
    listed = seasonal[seasonal.index("Confirmed:") :]
    listed = listed[: listed.index("<noscript")]
    assert re.sub(r"\s*\n\s*", "\n", listed.replace("\u00a0", " ")) == golden
    for entry in season()[0][:2]:
        assert f'<a href="#{page.make_anchor(entry.series.key)}">' in listed
    entries_of_series = data(seasonal)["series"]
    texts = [entry["told"] for entry in entries_of_series]
    for size in ("+8.9", "+0.1"):
        assert any(f": {size}" in text for text in texts)
    # the index has what was found first, then the others by name
    states = [entry["state"] for entry in entries_of_series]
    assert states == sorted(states)
    assert states[:5] == ["0", "2", "2", "4", "5"]


def test_the_place_of_a_series_depends_on_its_key_alone():
    assert page.make_anchor(key(call="fit")) == page.make_anchor(key(call="fit"))
    assert page.make_anchor(key(call="fit")) != page.make_anchor(key(call="predict"))
    assert re.fullmatch(r"s-[0-9a-f]{10}", page.make_anchor(Key("<", "\ud800"[:0], "", (), "", "")))


def test_too_many_points_are_cut_and_that_is_said(monkeypatch):
    series_list = [
        judge_series(series(key(n=str(place)), noise(20 if place else 500, seed=place))) for place in range(5)
    ]
    monkeypatch.setattr(page, "POINTS", 400)
    text = page.render(series_list, entries(500), [], 0.03)
    # the newest points are in the page
    assert sorted(len(entry["runs"]) for entry in data(text)["series"]) == [20, 20, 20, 20, 80]
    assert "For 1 series, the page shows the newest 80 runs" in text
    assert [entry["left"] for entry in data(text)["series"]].count(420) == 1
    # breaks and changes before the points of the page are left out
    monkeypatch.setattr(page, "POINTS", 17 * 40)
    fit = find_fit(page.render(*season(), 0.03))
    assert len(fit["runs"]) == 40
    assert [(at, kind) for at, kind, _ in fit["breaks"]] == [(4, "mark")]
    assert [at for at, *_ in fit["changes"]] == [4]


def test_a_level_goes_from_a_cut_or_a_change_to_the_next(seasonal):
    fit = find_fit(seasonal)
    (_, before, after, _) = fit["changes"][0]
    assert fit["levels"][1:] == [[31, 84, before], [84, 120, after]]
    first, end, level = fit["levels"][0]
    assert (first, end) == (0, 31)
    assert level == pytest.approx(70000, abs=600)


def test_machines_are_told_apart_where_there_are_several_and_a_note_of_a_date_is_of_its_midnight_in_utc():
    series_list = [judge_series(series(key(machine=name), noise(3))) for name in ("m-1a2b3c4d", "m-99999999")]
    document = data(page.render(series_list, entries(3), [Note("2026-08-02", "moved")], 0.03))
    assert document["columns"] == ["machine"]
    assert sorted(entry["name"] for entry in document["series"]) == [
        "step tf2.1 cpu vs tf1.14 on desk",
        "step tf2.1 cpu vs tf1.14 on m-99999999",
    ]
    assert document["notes"] == [[1785628800, "moved"]]

"""The history's page, as text: what a browser makes of it is in tests/browser/test_history.py."""

import json
import re
from typing import Any

import pytest

from harness.history import page
from harness.history.states import judge_series
from harness.model.history import Key, Note
from harness.report.html import assets
from tests.history.nights import entries, key, many, noise, season, series


def data(text: str) -> dict[str, Any]:
    """What the page's scripts are given."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    made: dict[str, Any] = json.loads(found[1])
    return made


def test_nothing_is_fetched_and_no_other_script_runs() -> None:
    text = page.render(*season(), 0.03)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    ours = text.replace(assets.make_vega_script().text, "")
    assert len(ours) < len(text)
    assert not re.search(r"""(?:src|href)=["'](?!#)|@import|url\((?!#)""", ours)


def test_ratios_come_back_to_a_hundred_thousandth_with_their_intervals() -> None:
    logs = [0.1, None, -2.3456789]
    (made,) = data(page.render([judge_series(series(key(), logs, half=0.01))], entries(3), [], 0.03))["series"]
    assert made["ratio"] == [10000, None, -234568]
    assert made["down"] == [1000, 0, 1000]
    assert made["up"] == [1100, 0, 1100]
    assert made["seconds"][1] is None
    assert made["runs"] == [0, 1, 2]


def test_what_was_found_is_listed_by_cause_with_links_to_its_series() -> None:
    of, runs, notes = season()
    text = page.render(of, runs, notes, 0.03)
    assert "Confirmed: 1 series slower since the run of 24 Oct 2026" in text
    assert "Before that run, this changed: the lock of tf2.1 (4f1c → 9be2)." in text
    assert text.index("Confirmed:") < text.index("Suspected:") < text.index("Refuted:")
    for entry in of[:2]:
        assert f'<a href="#{page.make_anchor(entry.series.key)}">' in text
    # of one cause: the second of its series is suspected still
    assert re.search(r"call=train_on_batch.*\+8\.\d.*, suspected</li>", text)


def test_what_a_confirmation_measured_stands_beside_what_nights_show_be_it_confirmed_or_refuted() -> None:
    text = page.render(*season(), 0.03)
    assert re.search(r"call=fit.*: \+8\.\d\u00a0% \(.*\); in one run \+8\.9\u00a0% \(\+8\.0 to \+9\.8\)</li>", text)
    assert re.search(r"gather.*: \+5\.\d\u00a0% \(.*\); in one run \+0\.1\u00a0% \(-0\.1 to \+0\.3\)</li>", text)
    told = {entry["name"]: entry["told"] for entry in data(text)["series"]}
    assert any("confirmed the change: +8.9" in value for value in told.values())
    assert any("the difference was smaller: +0.1" in value for value in told.values())


def test_the_place_of_a_series_depends_on_its_key_alone() -> None:
    assert page.make_anchor(key(call="fit")) == page.make_anchor(key(call="fit"))
    assert page.make_anchor(key(call="fit")) != page.make_anchor(key(call="predict"))
    assert re.fullmatch(r"s-[0-9a-f]{10}", page.make_anchor(Key("<", "\ud800"[:0], "", (), "", "")))


def test_the_index_has_what_was_found_first_then_the_others_by_name() -> None:
    states = [entry["state"] for entry in data(page.render(*season(), 0.03))["series"]]
    assert states == sorted(states)
    assert states[:5] == ["0", "1", "1", "3", "4"]


def test_of_too_many_points_the_newest_are_in_the_page_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "POINTS", 400)
    of = [judge_series(series(key(n=str(place)), noise(20 if place else 500, seed=place))) for place in range(5)]
    text = page.render(of, entries(500), [], 0.03)
    lengths = {entry["name"]: len(entry["runs"]) for entry in data(text)["series"]}
    assert sorted(lengths.values()) == [20, 20, 20, 20, 320]
    assert "For 1 series, the page shows the newest 320 runs" in text
    assert [entry["left"] for entry in data(text)["series"]].count(180) == 1


def test_of_too_many_series_those_with_findings_are_kept_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "SERIES", 3)
    of, runs, notes = season()
    text = page.render(of, runs, notes, 0.03)
    assert [entry["state"] for entry in data(text)["series"]] == ["0", "1", "1"]
    assert "The page shows 3 of 17 series" in text
    # what was refuted is named, and leads nowhere
    assert re.search(r"<li>gather tf2\.1 cpu vs tf1\.14:", text)


def test_breaks_and_changes_before_the_points_of_the_page_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    of, runs, notes = season()
    monkeypatch.setattr(page, "POINTS", 17 * 40)
    made = data(page.render(of, runs, notes, 0.03))["series"]
    fit = next(entry for entry in made if "call=fit" in entry["name"])
    assert len(fit["runs"]) == 40
    assert [(at, kind) for at, kind, _ in fit["breaks"]] == [(4, "mark")]
    assert [at for at, *_ in fit["changes"]] == [4]


def test_a_level_goes_from_a_cut_or_a_change_to_the_next() -> None:
    made = data(page.render(*season(), 0.03))["series"]
    fit = next(entry for entry in made if "call=fit" in entry["name"])
    (_, before, after, _) = fit["changes"][0]
    assert fit["levels"][1:] == [[31, 84, before], [84, 120, after]]
    first, end, level = fit["levels"][0]
    assert (first, end) == (0, 31)
    assert level == pytest.approx(70000, abs=600)


def test_a_series_without_ratios_has_no_level() -> None:
    (made,) = data(page.render([judge_series(series(key(), [None] * 3))], entries(3), [], 0.03))["series"]
    assert made["levels"] == []


def test_machines_are_told_apart_where_there_are_several() -> None:
    of = [judge_series(series(key(machine=name), noise(3))) for name in ("m-1a2b3c4d", "m-99999999")]
    made = data(page.render(of, entries(3), [], 0.03))
    assert made["columns"] == ["machine"]
    assert sorted(entry["name"] for entry in made["series"]) == [
        "step tf2.1 cpu vs tf1.14 on desk",
        "step tf2.1 cpu vs tf1.14 on m-99999999",
    ]


def test_a_note_of_a_date_is_of_its_midnight_in_utc() -> None:
    text = page.render(*many(1, 3)[:2], [Note("2026-08-02", "moved")], 0.03)
    assert data(text)["notes"] == [[1785628800, "moved"]]


def test_a_page_of_thousands_of_series_is_bounded() -> None:
    text = page.render(*many(2000, 30), 0.03)
    assert len(text) < 50 * 2000 * 30

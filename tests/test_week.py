"""docs/examples/week is what the runs give that are kept there: `python -m bench.week` writes it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import week
from harness.cli import app
from tests.history.test_page import data


def test_the_week_is_what_is_kept_of_it_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_HISTORY", str(tmp_path / "history.duckdb"))
    first = min(path.stem for path in (week.WEEK / week.KEPT).glob("*/*.json"))
    for words in (
        ["rebuild", "--from", str(week.WEEK / week.KEPT), "--results", str(tmp_path / "none")],
        ["report", "-o", str(tmp_path / week.TEXT), "--since", first],
        ["report", "-o", str(tmp_path / week.PAGE)],
    ):
        assert CliRunner().invoke(app, ["history", *words]).exit_code == 0
    made, stored = (folder / week.TEXT for folder in (tmp_path, week.WEEK))
    assert made.read_text() == stored.read_text(), "not what the stored runs give: python -m bench.week"
    # its looks may be older
    made, stored = (folder / week.PAGE for folder in (tmp_path, week.WEEK))
    assert data(made.read_text()) == data(stored.read_text()), "not what the stored runs give: python -m bench.week"


def test_the_week_found_what_was_planted_and_confirmed_it() -> None:
    text = (week.WEEK / week.TEXT).read_text()
    assert "**Confirmed: 1 series slower since the run of " in text
    assert "Before that run, this changed: the file of layers" in text
    assert len(list((week.WEEK / week.KEPT).glob("*/*.json"))) == week.NIGHTS

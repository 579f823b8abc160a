"""docs/examples/week is what the runs give that are kept there: `python -m bench.history_demo` writes it."""

import pytest
from typer.testing import CliRunner

from bench import history_demo
from harness.cli import app
from tests.history.test_page import data


@pytest.mark.slow
def test_the_week_is_what_is_kept_of_it_gives(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_HISTORY", str(history_demo.WEEK / history_demo.KEPT))
    first = min(path.stem for path in (history_demo.WEEK / history_demo.KEPT).glob("20*/*.json"))
    for words in (
        ["report", "-o", str(tmp_path / history_demo.TEXT), "--since", first],
        ["report", "-o", str(tmp_path / history_demo.PAGE)],
    ):
        assert CliRunner().invoke(app, ["history", *words]).exit_code == 0
    current, stored = (folder / history_demo.TEXT for folder in (tmp_path, history_demo.WEEK))
    assert current.read_text() == stored.read_text(), "not what the stored runs give: python -m bench.history_demo"
    # its looks may be older
    current, stored = (folder / history_demo.PAGE for folder in (tmp_path, history_demo.WEEK))
    assert data(current.read_text()) == data(stored.read_text()), (
        "not what the stored runs give: python -m bench.history_demo"
    )

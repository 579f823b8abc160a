"""docs/reference/python-api.md, as it stands there, in a small project."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from harness import session
from harness.model.errors import UsageError
from harness.model.launch import LONG
from tests.cli.conftest import stored
from tests.report.formats.examples import example, nothing

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "python-api.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
QUICK = '[quick]\nenvironments = ["old", "new"]\n[[quick.select]]\nscenario = "ways"\nway = ["fine"]\n'


@pytest.mark.slow
def test_the_example_plans_runs_and_prints_a_ratio_with_its_verdict(harness, monkeypatch, capsys):
    (harness.root / "scenarios" / "suites.toml").write_text(QUICK)
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
    # short launches, although the page leaves their lengths to the pilots
    monkeypatch.setattr("harness.analysis.sizing.WARMUP", (0.001, 0.01))
    monkeypatch.setattr("harness.analysis.sizing.MEASURE", (0.005, 0.05))
    monkeypatch.setattr("harness.model.launch.LONG", replace(LONG, measure_seconds=0.05))
    names: dict[str, object] = {"__name__": "example"}
    exec(BLOCKS[0], names)
    assert capsys.readouterr().out.splitlines()[:2] == ["ways old fine fast", "ways new fine fast"]
    assert not (harness.root / "results").exists()
    exec(BLOCKS[1], names)
    captured = capsys.readouterr()
    assert "0 ways old fine fast ok" in captured.out.splitlines()
    assert captured.err == ""
    exec(BLOCKS[2], names)
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"new takes [\d.]+ times as long: (faster|same|slower|unclear|None)", line)
    completed = names["ended"]
    assert isinstance(completed, session.Ended)
    assert session.read(completed.folder).run == completed.results.run
    command = "harness matrix --suite quick --backend local --seed 1 --rounds 4"
    assert command in (completed.folder / "report.md").read_text()
    assert {"report.md", "report.html"} <= {path.name for path in completed.written.files}


@pytest.mark.slow
def test_a_run_is_read_reported_and_compared_by_a_string(tmp_path):
    run, launches = example()
    paths = [str(stored(tmp_path, replace(run, id=name), launches)) for name in ("a", "b")]
    assert session.read(paths[0]).run.id == "a"
    assert session.report(paths[0]).files
    assert session.export(paths[0], "md")
    assert [results.run.id for results in (session.compare(*paths).first, session.compare(*paths).second)] == ["a", "b"]
    assert session.find_newest_runs(2, str(tmp_path)) == [tmp_path / "a", tmp_path / "b"]


def test_a_notebook_shows_the_comparisons_as_a_table(tmp_path):
    table = session.read(stored(tmp_path, *example()))._repr_html_()
    assert table is not None
    ElementTree.fromstring(f"<div>{table}</div>")
    assert "<table><caption>Comparisons</caption>" in table
    assert "<th>time ratio</th>" in table
    assert table.count("<svg") == 1
    assert re.search(r"<td>(faster|slower|same|unclear)</td>", table)
    nothing_compared = session.read(stored(tmp_path / "other", *nothing()))._repr_html_()
    assert nothing_compared == "<p>No cell has a result.</p>"


def test_a_frame_has_a_row_for_each_launch_in_the_first_package_that_is_installed(tmp_path, monkeypatch):
    results = session.read(stored(tmp_path, *example()))
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(read_csv=lambda file: file.read().decode().splitlines()))
    monkeypatch.setitem(sys.modules, "pandas", None)
    heads, *rows = results.frame()
    assert heads.startswith("group,round")
    assert len(rows) == len(results.launches)
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pandas, polars or pyarrow"):
        results.frame()


def test_names_are_loaded_when_they_are_used():
    for name in session.__all__:
        assert getattr(session, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        session.nothing  # noqa: B018

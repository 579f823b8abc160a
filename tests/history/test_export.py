import csv
import json
import math
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from harness.history import export
from harness.history.index import History
from harness.history.summary import read
from harness.model.errors import DamagedError, NothingSelectedError, UsageError
from harness.model.history import Decision, Series, Summary
from tests.history.test_index import later


@pytest.fixture
def series(tmp_path: Path, night: Summary) -> list[Series]:
    """Three nights, the last of which has no result in the last cell."""
    *most, last = night.points
    lost = later(night, 2, points=[*most, replace(last, ratio=None, low=None, high=None, seconds=None)])
    with History.open(str(tmp_path / "x.duckdb"), writing=True) as history:
        history.add_all([night, later(night, 1), lost])
        return history.series()


def test_a_history_is_made_again_from_what_git_has(tmp_path, night):
    nights = [night, later(night, 1)]
    folder = tmp_path / "git"
    with History.open(str(tmp_path / "one.duckdb"), writing=True) as one:
        one.add_all(nights)
        one.note("2026-11-22", "moved")
        one.decide(Decision(one.series()[0].key, night.run, [], True, "run", "2026-11-22", 1.1, 1.05, 1.15))
        assert export.write_folder(one, folder) == 2
        assert export.write_folder(one, folder) == 0
        with History.open(str(tmp_path / "other.duckdb"), writing=True) as other:
            other.add_all(map(read, export.find_summaries(folder)))
            export.add_notes_and_decisions(other, folder)
            # blank lines are skipped: somebody may have edited the file
            decisions = folder / "decisions.jsonl"
            decisions.write_text("\n" + decisions.read_text() + " \n")
            export.add_notes_and_decisions(other, folder)
            assert list(other.summaries()) == nights
            for name in ("series", "notes", "decisions"):
                assert getattr(other, name)() == getattr(one, name)()
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    assert names == [f"2026-11/{night.run}.json" for night in nights] + ["decisions.jsonl", "notes.jsonl"]


def test_a_folder_without_summaries_and_damaged_words_are_refused(tmp_path):
    with pytest.raises(UsageError, match=re.escape(str(tmp_path))):
        export.find_summaries(tmp_path)
    (tmp_path / "notes.jsonl").write_text("{\n")
    with History.open() as history, pytest.raises(DamagedError, match="line 1"):
        export.add_notes_and_decisions(history, tmp_path)


def test_otava_gets_a_number_in_every_row_and_column(series):
    rows = list(csv.DictReader(export.render("otava", series).splitlines()))
    columns = list(rows[0])[3:]
    assert columns == [f"{entry.key.cell} / {entry.key.versus}" for entry in series if entry.key.reference]
    assert [row["run"][:10] for row in rows] == ["2026-11-21", "2026-11-22"]
    # what its importer needs: an instant with a zone, and floats
    assert all(datetime.fromisoformat(row["time"]).tzinfo for row in rows)
    assert all(float(row[column]) > 0.0 for row in rows for column in columns)
    # series without a night in common
    last = [entry for entry in series if entry.points[-1].seconds is None]
    other = [entry for entry in series if entry not in last and entry.points[0].log_ratio is not None]
    gone = replace(other[0], points=other[0].points[2:])
    with pytest.raises(NothingSelectedError):
        export.render("otava", [*last, gone])


def test_dashboards_get_the_newest_run_with_its_interval(series):
    entries = json.loads(export.render("benchmark-action", series))
    assert len(entries) == 2
    for entry in entries:
        assert set(entry) == {"name", "unit", "value", "range", "extra"}
        assert "2026-11-23" in entry["extra"]
        assert entry["value"] == pytest.approx(1.0, abs=0.02)
    document = json.loads(export.render("bencher", series))
    assert len(document) == 2
    for measures in document.values():
        ratio = measures["ratio"]
        assert ratio["lower_value"] < ratio["value"] < ratio["upper_value"]
    # the reference alone has nothing to compare
    reference = [entry for entry in series if not entry.key.reference]
    for format in ("bencher", "benchmark-action", "otava"):
        with pytest.raises(NothingSelectedError):
            export.render(format, reference)


def test_openmetrics_has_every_point_in_its_family(series):
    text = export.render("openmetrics", series)
    assert text.endswith("# EOF\n")
    pattern = re.compile(r'(\w+)\{(?:\w+="(?:[^"\\]|\\.)*",?)+\} (\S+) (\d+)')
    families: list[str] = []
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            families.append(line.split()[2])
        elif not line.startswith("#"):
            sample = pattern.fullmatch(line)
            assert sample, line
            assert sample[1] == families[-1]
            assert math.isfinite(float(sample[2]))
    assert len(families) == len(set(families)) == 4
    # three nights of three compared cells, less the one that was lost; and the reference's time
    assert len(re.findall(r"^harness_ratio\{", text, re.M)) == 8
    assert len(re.findall(r"^harness_step_seconds\{", text, re.M)) == 11
    odd = replace(series[-1], key=replace(series[-1].key, axes=(("a-b", 'x"\\\n'),)))
    assert r'axis_a_b="x\"\\\n"' in export.render("openmetrics", [odd])

"""The pages about what is slow today: `python -m bench.observatory`."""

import json
import re
import tarfile
from dataclasses import asdict, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from bench.examples import EXAMPLES, LAUNCHES
from bench.observatory import collect as collecting
from bench.observatory import measure, records
from bench.observatory import site as pages_of
from bench.observatory.collect import collect
from bench.observatory.wheels import find_day
from bench.replay import nights
from harness import session
from harness.history.folder import History
from harness.model.errors import DamagedError
from tests.conftest import ROOT
from tests.test_replay import BASELINE, LINE, make_summary

DAYS = [f"2026-04-0{day}" for day in range(1, 7)]


def make_replay(folder: Path, slower: list[float]) -> list[str]:
    """Store a replay, slower by these shares, with the launches of an example in each run. Return the runs."""
    nights.store_plan(folder, nights.ReplayPlan(LINE, BASELINE, DAYS[: len(slower)], is_line=True))
    runs = [f"2026-11-29T0{at}-00-00Z-aaaa" for at in range(len(slower))]
    stored = []
    for night, (run, share) in enumerate(zip(runs, slower, strict=True)):
        summary = make_summary(run, share, "train_on_batch")
        point = summary.points[0]._replace(axes={"network": "lstm"})
        baseline = point._replace(environment=BASELINE, reference="", ratio=None, low=None, high=None, seconds=0.01)
        started = f"{DAYS[night]}{nights.TIME}"
        History(folder / nights.HISTORY).add(replace(summary, started=started, points=[baseline, point]))
        with tarfile.open(EXAMPLES / "upstream" / LAUNCHES) as archive:
            archive.extractall(folder / nights.RESULTS / run, filter="data")
        stored.append(nights.ReplayedNight(night, DAYS[night], LINE, run, 60.0))
    (folder / nights.RECORDS).write_text("".join(json.dumps(asdict(record)) + "\n" for record in stored))
    return runs


def make_steps(path: Path, **changes: object) -> Path:
    """Write a file with one confirmed step of the replay's series."""
    step = next(step for step in json.loads(records.STEPS.read_text()) if step["day"] == "2026-04-04")
    path.write_text(json.dumps([{**step, "axes": {"network": "lstm"}, "day": DAYS[3], **changes}]))
    return path


@pytest.mark.slow
def test_nights_are_collected_and_shown_with_their_step(tmp_path):
    runs = make_replay(tmp_path / "replay", [0.0, 0.0, 0.0, 0.3, 0.3, 0.3])
    series_path, launches = tmp_path / "series.json", tmp_path / "launches.tar.xz"
    collect([tmp_path / "replay"], series_path, launches)
    before = series_path.read_bytes(), launches.read_bytes()
    collect([tmp_path / "replay"], series_path, launches)
    assert (series_path.read_bytes(), launches.read_bytes()) == before
    (series,) = records.read_series(series_path)
    assert [point.run for point in series.points] == runs
    assert [round(point.ratio, 1) for point in series.points] == [1.0, 1.0, 1.0, 1.3, 1.3, 1.3]
    with tarfile.open(launches) as archive:
        archive.extractall(tmp_path / "launches", filter="data")
    assert session.read(tmp_path / "launches" / runs[-1]).launches

    steps = make_steps(tmp_path / "steps.json", cause="<script>slow</script>")
    data = replace(pages_of.read(series_path, steps), counts=())
    pages_of.build(tmp_path / "pages", data, launches)
    pages = {path.name: path.read_text() for path in (tmp_path / "pages").glob("*.html")}
    anchor = data.steps[0].anchor
    assert f'id="{anchor}"' in pages["alive.html"]
    assert f"harness matrix -s train_on_batch -a network=lstm -e {LINE}==3.14" in pages["alive.html"]
    assert f'alive.html#{anchor}"' in pages["series.html"]
    assert pages["series.html"].count("<circle") == len(runs)
    levels = re.findall(r'class="level" .*?: ([\d.]+)×', pages["series.html"])
    assert [round(float(level), 1) for level in levels] == [1.0, 1.3]
    assert all("<script>slow" not in text for text in pages.values())
    assert anchor in (tmp_path / "pages" / "feed.xml").read_text()
    assert sum(path.stat().st_size for path in (tmp_path / "pages").iterdir()) < 5_000_000

    import duckdb  # takes a moment

    table = f"read_parquet('{tmp_path / 'pages' / 'observatory.parquet'}')"
    counts = dict(duckdb.sql(f"SELECT kind, count(*) FROM {table} GROUP BY kind").fetchall())
    document = json.loads((tmp_path / "pages" / "observatory.json").read_text())
    claims = [place for fact in document["facts"] if fact["kind"] == "claim" for place in fact["places"]]
    assert (counts["nightly"], counts["step"], counts["claim"]) == (len(runs), 1, len(claims))


def test_a_run_with_several_wheels_gives_each_wheel_a_point_on_its_day(tmp_path, monkeypatch):
    results = tmp_path / "runs" / nights.RESULTS
    summary = make_summary("2026-11-29T01-00-00Z-aaaa", 0.0, "train_on_batch")
    baseline = summary.points[0]._replace(environment=BASELINE, reference="", seconds=0.01)
    days, points, software = ["2024-01-02", "2025-03-04"], [baseline], dict(summary.software)
    for number, day in enumerate(days):
        points.append(summary.points[0]._replace(environment=f"wheel {number}"))
        software[f"wheel {number}"] = replace(software[LINE], version=f"{LINE}==3.0.0.dev{day.replace('-', '')}04")
    monkeypatch.setattr(collecting, "load_summary", lambda _: replace(summary, points=points, software=software))
    with tarfile.open(EXAMPLES / "upstream" / LAUNCHES) as archive:
        archive.extractall(results / summary.run, filter="data")
    collect([tmp_path / "runs"], tmp_path / "series.json", tmp_path / "launches.tar.xz")
    (series,) = records.read_series(tmp_path / "series.json")
    assert (series.line, [point.day for point in series.points]) == (LINE, days)


def test_runs_measure_each_wheel_once_and_wheels_of_a_run_are_far_apart():
    versions = [f"3.0.0.dev2026{month:02}{day:02}04" for month in range(1, 5) for day in range(1, 29)]
    runs = measure.plan_runs(versions, ["2026-01-01"], every=3, at_once=6)
    days = [[date.fromisoformat(find_day(version)) for version in run] for run in runs]
    chosen = sorted(day for run in days for day in run)
    assert (chosen[0], max(map(len, runs))) == (date(2026, 1, 4), 6)
    assert {(later - one).days for one, later in pairwise(chosen)} == {3, 4, 5}  # 4 and 5: the ends of months
    assert all(later - one >= timedelta(20) for run in days for one, later in pairwise(run))


@pytest.mark.slow
def test_links_lead_somewhere(site):
    """Each link to a file of the site leads to an existing file and anchor."""
    pages = {path: path.read_text() for path in (site / "observatory").glob("*.html")}
    assert len(pages) >= 6
    anchors = {path: {*re.findall(r'\bid="([^"]+)"', text)} for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for link in {*re.findall(r'href="([^"]+)"', text)}:
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not link.startswith(("http", "data:")) and (
                not target.is_file() or (anchor and anchor not in anchors.get(target, {anchor}))
            ):
                broken.append(f"{path.name}: {link}")
    assert broken == []
    assert 'href="observatory/index.html"' in (site / "index.html").read_text()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"state": "gone"}, "neither 'present'"),
        ({"low": 1.4}, "isn't a ratio in its interval"),
        ({"ratio": "1.3"}, "0.ratio: Input should be a valid number"),
        ({"colour": "red"}, "0.colour"),
        ({"day": "4 April"}, "isn't a date"),
        ({"posterior": 100.0}, "isn't a probability"),
    ],
)
def test_a_step_that_is_wrong_is_refused_by_name(tmp_path, changes, problem):
    with pytest.raises(DamagedError) as error:
        records.read_steps(make_steps(tmp_path / "steps.json", **changes))
    assert problem in str(error.value)
    assert "steps.json" in str(error.value)


def test_the_stored_files_are_valid():
    assert records.read_steps()
    names = {series.name for series in [*records.read_series(), *records.read_counts()]}
    assert {step.series for step in records.read_steps()} <= names
    files = (ROOT / "bench" / "observatory").rglob("*")
    assert sum(path.stat().st_size for path in files if path.is_file()) < 12_000_000  # the repository stays small

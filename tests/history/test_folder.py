import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.history.folder import History
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.history import Decision, Note, Summary


def later(night: Summary, number: int, **changes: object) -> Summary:
    when = f"2026-11-{21 + number}"
    return replace(night, **{"run": f"{when}T04-10-00Z-000{number}", "started": f"{when}T04:10:00Z", **changes})


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


def read_again(history: History) -> History:
    return History(history.path)


def list_files(history: History) -> list[str]:
    return sorted(str(path.relative_to(history.path)) for path in history.path.rglob("*.*"))


def decide(history: History, **changes: object) -> Decision:
    """Add the result of a confirmation of the first series."""
    (key, *_) = (series.key for series in history.series())
    decision = Decision(key, "run-1", ["kit"], False, "run-2", "2026-11-22T00:00:00+00:00", 1.01, 0.99, 1.03)
    history.decide(replace(decision, **changes))
    return replace(decision, **changes)


def test_summaries_and_series_come_back_in_the_order_of_their_nights(history, night):
    nights = [night, later(night, 1, started="2026-11-22T06:10:00+02:00"), later(night, 2, kit="0ther")]
    assert [history.add(summary) for summary in [*nights[::-1], night, replace(night, suite="another")]] == [
        *[True] * 3,
        *[False] * 2,
    ]
    assert list_files(history) == [f"2026-11/{summary.run}.json" for summary in nights]
    for reader in (history, read_again(history)):
        assert reader.summaries() == nights
        assert (reader.summary(night.run), reader.summary("none")) == (night, None)
        assert [(entry.run, entry.points) for entry in reader.runs()] == [(summary.run, 4) for summary in nights]
        assert reader.series() == history.series()
    series = history.series()
    assert len(series) == 4
    for entry in series:
        assert [point.started for point in entry.points] == [f"2026-11-{day}T04:10:00+00:00" for day in (21, 22, 23)]
    (entry,) = (
        entry for entry in series if entry.key.environment == "tf2.0" and dict(entry.key.axes)["mode"] == "eager"
    )
    first, _, last = (point.origin for point in entry.points)
    assert first._replace(kit="0ther") == last
    assert (first.kit, first.scenario, first.machine) == ("c0ffee", "ab12", "lab")
    assert (first.lock, first.reference_lock) == (night.software["tf2.0"].lock, night.software["tf1.14"].lock)


def test_globs_and_keys_choose_series(history, night):
    history.add(night)
    (series,) = history.series(["st*"], ["tf2.*", "none"], {"mode": ["eager"]})
    assert not history.series(["other"])
    assert not history.series(axes={"none": ["*x"]})
    every = history.series()
    assert history.series(only={every[1].key}) == [every[1]]
    assert history.series(only=[]) == []
    assert (series.key.versus, series.key.cell) == (
        "tf1.14 mode=graph",
        "step tf2.0 cpu call=fit dtype=float32 mode=eager",
    )


def test_another_machine_another_way_and_another_reference_make_other_series(history, night):
    moved = replace(
        later(night, 1),
        machines=[replace(night.machines[0], machine=replace(night.machines[0].machine, id="m-2"))],
        points=[point._replace(machine="m-2") for point in night.points],
    )
    other = later(night, 3, points=[point._replace(against={"mode": "eager"}) for point in night.points])
    for summary in (night, moved, later(night, 2, way="all CPUs"), other):
        history.add(summary)
    assert [len(entry.points) for entry in history.series()] == [1] * 4 * 4


def test_no_result_counts_twice(history, night):
    parts = [later(night, number) for number in (1, 2)]
    merged = later(night, 3, merged=[part.run for part in parts])
    other_merge = later(night, 4, merged=[parts[0].run])
    assert [history.add(run) for run in (merged, *parts, other_merge)] == [True, False, False, False]
    # a folder into which the parts were copied later
    other = History(history.path.with_name("other"))
    for part in parts:
        other.add(part)
    for path in other.path.glob("*/*.json"):
        path.rename(history.path / path.parent.name / path.name)
    assert read_again(history).summaries() == [merged]


def test_two_histories_are_merged_by_copying_their_files(tmp_path, night):
    one, other, both = (History(tmp_path / name) for name in ("one", "other", "both"))
    for history, number in ((one, 1), (other, 2)):
        history.add(later(night, number))
        history.note(f"2026-11-2{number}", "moved")
        decide(history, run=f"run-{number}")
        for path in history.path.rglob("*.json"):
            target = both.path / path.relative_to(history.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    assert both.summaries() == [*one.summaries(), *other.summaries()]
    assert both.notes() == [*one.notes(), *other.notes()]
    assert both.decisions() == [*one.decisions(), *other.decisions()]


def test_notes_and_decisions_are_stored_once_each(history, night):
    history.add(night)
    for note in (("2026-11-22", "new kernel"), ("2026-11-20", "moved"), ("2026-11-22", "new kernel")):
        history.note(*note)
    assert history.notes() == [Note("2026-11-20", "moved"), Note("2026-11-22", "new kernel")]
    later_one = decide(history, run="run-3", when="2026-11-23T00:00:00+00:00")
    first = decide(history)
    assert history.decisions() == [first, later_one]
    # a search followed
    searched = decide(history, pair=["a", "b"], probability=0.9, functions=[("f", 1.0, 2.0)])
    assert history.decisions() == [searched, later_one]


def test_damaged_and_foreign_files_are_named_and_skipped(history, night, snapshot):
    history.add(night)
    decide(history)
    history.note("2026-11-22", "x")
    point = [*night.points[0]]
    good = json.loads((history.path / list_files(history)[0]).read_text())
    changes = {
        "schema": {"schema": 99},
        "id": {"run": "../x"},
        "time": {"started": "soon"},
        "machine": {"points": [["m-9", *point[1:]]]},
        "number": {"points": [[*point[:9], 1e9, *point[10:]]]},
        "machine id": {"machines": [{"machine": {"id": "", "name": ""}}], "points": []},
    }
    files = {name: json.dumps({**good, **change}).encode() for name, change in changes.items()}
    files |= {"empty": b"", "list": b"[]", "bytes": b"\xff", "deep": b"[" * 100_000, "nan": b'{"run": NaN}'}
    problems = {}
    for name, data in files.items():
        path = history.path / "2026-11" / "x.json"
        path.write_bytes(data)
        reader = History(history.path, lambda sentence, name=name: problems.__setitem__(name, sentence))
        assert reader.summaries() == [night], name
        assert reader.left_out == [path], name
    problems = {name: text.replace(str(history.path), "HISTORY") for name, text in problems.items()}
    path.unlink()
    for folder, text in (("notes", '{"when": "soon", "text": ""}'), ("notes", "x"), ("decisions", '{"since": "x"}')):
        path = history.path / folder / "x.json"
        path.write_text(text)
        assert (len(read_again(history).notes()), len(read_again(history).decisions())) == (1, 1)
    for number in range(7):
        (history.path / "2026-11" / f"{number}.json").mkdir()
    sentences: list[str] = []
    assert History(history.path, sentences.append).summaries() == [night]
    problems["many"] = sentences[0].replace(str(history.path), "HISTORY")
    assert problems == snapshot


def test_a_summary_of_the_first_schema_is_read(history, night):
    history.add(night)
    path = history.path / list_files(history)[0]
    document = json.loads(path.read_text())
    names = night.points[0]._fields
    document |= {"schema": 1, "points": [dict(zip(names, point, strict=True)) for point in document["points"]]}
    path.write_text(json.dumps(document))
    assert read_again(history).summaries() == [replace(night, schema=1)]


def test_the_environment_names_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_DATA_DIR", "data")
    monkeypatch.delenv("HARNESS_HISTORY", raising=False)
    assert History.open().path == tmp_path / "data" / "history"
    Path("file").touch()
    monkeypatch.setenv("HARNESS_HISTORY", "file")
    with pytest.raises(UsageError, match=r"HARNESS_HISTORY is the file file"):
        History.open()
    monkeypatch.setenv("HARNESS_HISTORY", "file/history")
    with pytest.raises(CannotRunHereError, match="file"):
        History.open().note("2026-11-22", "x")

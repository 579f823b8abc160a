import fcntl
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.model.errors import HarnessError
from harness.model.run import Machine
from harness.session import read
from harness.store import codec
from tests.cli.conftest import stored
from tests.factories import cells, nightly_run, rounds

Command = Callable[..., Result]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in a folder of its own; what it raises passes through."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        result = CliRunner().invoke(app, ["history", *words])
        if isinstance(result.exception, HarnessError):
            raise result.exception
        return result

    return call


def write_night(number: int, slower: float = 1.0, results: str = "results", **changes: object) -> Path:
    """Write a run of the night of that number."""
    planned = cells()
    seconds = {entry: 0.01 * (slower if entry == planned[-1] else 1.0) for entry in planned}
    return stored(Path(results), nightly_run(f"2026-11-{number:02}", **changes), rounds(seconds, 5, 0.002, number))


@pytest.fixture
def week(history: Command) -> Command:
    """The command, with a history of seven nights; from the fourth on something takes longer."""
    for number in range(10, 17):
        write_night(number, 1.0 if number < 13 else 1.2)
    history("add", "--all")
    return history


def collect_errors(history: Command, *lines: str) -> dict[str, list[object]]:
    """Return the exit code and the text of the error of each command line."""
    errors = {}
    for line in lines:
        with pytest.raises(HarnessError) as error:
            history(*shlex.split(line))
        text = str(error.value).replace(os.environ["HARNESS_DATA_DIR"], "DATA").replace(str(Path.cwd()), "HERE")
        errors[line] = [int(error.value.exit), text]
    return errors


@pytest.mark.slow
def test_nights_are_added_listed_and_shown(history):
    folders = [write_night(number, 1.0 if number < 13 else 1.1) for number in (12, 11, 13)]
    result = history("add", *map(str, folders))
    assert "3 runs added to" in result.stdout, result.stderr
    repetition = history("add", "--all")
    assert (repetition.exit_code, "3 were already in it" in repetition.stdout) == (0, True)
    listed = history("list").stdout.splitlines()
    assert [line.split()[0][8:10] for line in listed] == ["11", "12", "13"]
    assert all("lab" in line and "4 points" in line for line in listed)
    (line,) = history("show", "-e", "tf2.*", "-a", "mode=eager").stdout.splitlines()
    assert "step tf2.0 cpu call=fit dtype=float32 mode=eager / tf1.14 mode=graph on lab" in line
    assert "2026-11-13 04:10  1.1" in line
    points = history("show", "-e", "tf2.0", "-a", "mode=eager", "--points").stdout.splitlines()
    assert [point.split()[0] for point in points[1:]] == ["2026-11-11", "2026-11-12", "2026-11-13"]
    # the reference has a time and no ratio
    (line,) = history("show", "-e", "tf1.14", "-a", "mode=graph").stdout.splitlines()
    assert (" / " in line, "10.0 ms" in line) == (False, True)
    # other programs read the same
    assert [entry["run"][:10] for entry in json.loads(history("list", "--json").stdout)["runs"]] == [
        f"2026-11-{number}" for number in (11, 12, 13)
    ]
    series = json.loads(history("show", "--json").stdout)
    assert len(series) == 4
    assert series[0]["axes"]["call"] == "fit"
    assert series[-1]["points"][0]["origin"]["machine"] == "lab"


@pytest.mark.slow
def test_what_makes_a_history_useless_is_reported(history, snapshot):
    warnings = {}
    for number, reference in enumerate(("tf2.15", "latest", "tf-nightly", "tf2.21+keras-nightly"), 1):
        folder = write_night(number)
        path = folder / "run.json"
        run = read(folder).run
        environments = [replace(entry, line=reference) for entry in run.environments if entry.name == run.reference]
        others = [entry for entry in run.environments if entry.name != run.reference]
        path.write_bytes(codec.dump(replace(run, environments=[*environments, *others])))
        warnings[f"baseline {reference}"] = history("add", str(folder)).stderr
    warnings["no baseline"] = history("add", str(write_night(9, reference=""))).stderr
    assert history("add", "results/2026-11-03T04-10-00Z-aaaa").stderr == ""
    folders = [str(write_night(number, machine=Machine(f"m-0000000{number}", "aws"))) for number in (11, 12, 13)]
    assert history("add", *folders[:2]).stderr == ""
    warnings["another id in each run"] = history("add", folders[2]).stderr
    assert warnings == snapshot


def test_what_cannot_be_added_is_named_and_left_out(history, snapshot):
    write_night(11)
    damaged, newer, dead, profiles, going = (write_night(number) for number in range(12, 17))
    for folder, changes in (
        (newer, {"schema": 99}),
        (dead, {"stops": {}}),
        (profiles, {"plan": {**json.loads((profiles / "run.json").read_text())["plan"], "profile_calls": 3}}),
    ):
        path = folder / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    (damaged / "run.json").write_text("{")
    with (going / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = history("add", "--all")
    assert (result.exit_code, "1 run added" in result.stdout) == (1, True)
    assert result.stderr == snapshot
    assert "1 was already in it" in history("add", str(going), "results/2026-11-11T04-10-00Z-aaaa").stdout


@pytest.mark.slow
def test_what_is_wrong_is_refused(history, snapshot):
    lines = ["add --all --results none", "add", "note yesterday x", "note 2026-13-01 x", "note 0001-01-01T00+05 x"]
    Path("results").mkdir()
    errors = collect_errors(history, "add --all", *lines, "note 2026-11-12 ' '")
    assert not list(Path(os.environ["HARNESS_DATA_DIR"]).glob("history*"))
    assert history("add", "none").exit_code == 1
    # an empty history says how to fill it
    listed, page = history("list"), history("report")
    assert ["harness history add --all" in result.stderr for result in (listed, page)] == [True, True]
    assert "<title>A history without runs</title>" in Path("history.html").read_text()
    lines = ["show", "report -e tf2.0", "report --format md", "confirm", "confirm --all-suspected"]
    errors |= collect_errors(history, *lines)
    assert errors == snapshot


@pytest.mark.slow
def test_what_is_in_no_series_or_no_report_is_told_with_what_is(week, snapshot):
    lines = ["show -s keras", "report -e tf9", "confirm -a mode=none"]
    lines += ["report --format pdf", "report --format html --since 2026-11-12", "report --since yesterday"]
    errors = collect_errors(week, *lines, "alarm --issues nowhere")
    result = week("alarm")
    assert (result.stdout, json.loads(week("alarm", "--json").stdout)) == ("", [])
    assert [errors, result.stderr] == snapshot


def test_a_note_is_kept_and_listed_and_a_damaged_file_is_left_out_and_named(history, monkeypatch, tmp_path):
    history("note", "2026-11-12", "driver 575")
    history("note", "2026-11-13T06:00:00+02:00", "moved")
    history("note", "2026-W47-1", "a Monday")
    notes = ["2026-11-12: driver 575", "2026-11-13T04:00:00+00:00: moved", "2026-11-16: a Monday"]
    assert history("list").stdout.splitlines() == notes
    monkeypatch.setenv("HARNESS_HISTORY", "shared")
    history("note", "2026-11-12", "driver 575")
    (tmp_path / "shared" / "notes" / "x.json").write_text("{")
    listed = history("list")
    assert (listed.exit_code, listed.stdout) == (1, "2026-11-12: driver 575\n")
    assert "shared/notes/x.json is damaged" in listed.stderr


@pytest.mark.slow
def test_a_report_is_one_page_of_all_or_some_series(week):
    result = week("report")
    assert (result.stdout, result.stderr) == ("", "History: history.html\n")
    text = Path("history.html").read_text()
    assert "History of 7 runs on 1 machine, 10 Nov 2026 to 16 Nov 2026" in text
    assert "slower since the run of 13 Nov 2026" in text
    week("report", "-e", "tf2.*", "-a", "mode=eager", "-o", "some.html")
    text = Path("some.html").read_text()
    names = [f"tf2.0 cpu call=fit dtype=float32 mode={mode}" in text for mode in ("eager", "graph")]
    assert names == [True, False]


@pytest.mark.slow
def test_a_report_in_markdown_tells_what_changed_since_the_last_run_a_run_or_a_date(week):
    reports = {
        since: week("report", *(["--since", since] if since else ["--format", "md"])).stdout
        for since in ("", "2026-11-12T04-10-00Z-aaaa", "2026-11-12", "2026-01-01")
    }
    assert [text.splitlines()[0] for text in reports.values()] == [
        "# History: since the run of 15 Nov 2026",
        "# History: since the run of 12 Nov 2026",
        "# History: since the run of 11 Nov 2026",
        "# History: all runs",
    ]
    assert "slower since the run of 13 Nov 2026" in reports["2026-11-12"]
    week("report", "-o", "night.md")
    assert Path("night.md").read_text() == reports[""]

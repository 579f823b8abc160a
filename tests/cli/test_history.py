import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.history.index import History
from harness.history.summary import load_summary
from harness.model.errors import CannotRunHereError, HarnessError, NothingSelectedError, UsageError
from harness.model.run import Machine, Stop, StopReason
from harness.store import codec
from tests.cli.conftest import stored
from tests.factories import cells, rounds, run

Command = Callable[..., Result]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in a folder of its own; what it raises passes through."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        done = CliRunner().invoke(app, ["history", *words])
        if isinstance(done.exception, HarnessError):
            raise done.exception
        return done

    return call


def night(number: int, slower: float = 1.0, results: str = "results", **changes: object) -> Path:
    """A stored run of the night of that number."""
    planned = cells()
    seconds = {entry: 0.01 * (slower if entry == planned[-1] else 1.0) for entry in planned}
    fields = {
        "id": f"2026-11-{number:02}T04-10-00Z-aaaa",
        "started": f"2026-11-{number:02}T04:10:00+00:00",
        "machine": Machine("m-00000001", "lab"),
        **changes,
    }
    made = run(planned, controlled=True, **fields)
    made = replace(made, stops={group.name: Stop(StopReason.ROUNDS, 5) for group in made.plan.groups})
    return stored(Path(results), made, rounds(seconds, 5, 0.002, number))


def test_nights_are_added_listed_and_shown(history: Command) -> None:
    folders = [night(number, 1.0 if number < 13 else 1.1) for number in (12, 11, 13)]
    done = history("add", *map(str, folders))
    assert "3 runs added to" in done.stdout, done.stderr
    again = history("add", "--all")
    assert again.exit_code == 0
    assert "0 runs added to" in again.stdout
    assert "3 were already in it" in again.stdout
    listed = history("list").stdout.splitlines()
    assert [line.split()[0][8:10] for line in listed] == ["11", "12", "13"]
    assert all("lab" in line and "4 points" in line for line in listed)
    (shown,) = history("show", "-e", "tf2.*", "-a", "mode=eager").stdout.splitlines()
    assert "step tf2.0 cpu call=fit dtype=float32 mode=eager / tf1.14 mode=graph on lab" in shown
    assert "3 runs  2026-11-13 04:10  1.1" in shown
    points = history("show", "-e", "tf2.0", "-a", "mode=eager", "--points").stdout.splitlines()
    assert [line.split()[0] for line in points[1:]] == ["2026-11-11", "2026-11-12", "2026-11-13"]


def test_a_machine_with_another_id_in_each_run_is_reported(history: Command) -> None:
    folders = [str(night(number, machine=Machine(f"m-0000000{number}", "aws"))) for number in (1, 2, 3)]
    assert "a different id" not in history("add", *folders[:2]).stderr
    done = history("add", folders[2])
    assert "The machine aws had a different id in each of its last 3 runs" in done.stderr
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("tf2.15", ""),
        ("latest", ""),
        ("tf-nightly", "is tf-nightly, which changes often."),
        ("tf2.21+keras-nightly", "is tf2.21+keras-nightly, which changes often."),
        ("", "has no ratio to a baseline"),
    ],
)
def test_a_run_in_whose_history_no_change_can_be_found_is_reported(
    history: Command, reference: str, problem: str
) -> None:
    summary = load_summary(night(11))
    points = [replace(point, reference=reference and point.reference) for point in summary.points]
    for number in (1, 2):  # the newest run counts
        run = f"2026-12-0{number}"
        other = replace(summary, run=run, started=f"{run}T04:10:00Z", reference=reference, points=points)
        Path(f"{number}.json").write_bytes(codec.dump(other))
    stderr = history("add", "2.json", "1.json").stderr
    assert problem in stderr
    assert ("2026-12-02" in stderr and "2026-12-01" not in stderr) == bool(problem)
    assert history("add", "1.json").stderr == ""


def test_a_digest_is_printed_or_written(history: Command) -> None:
    history("add", *(str(night(number)) for number in (11, 12, 13)))
    printed = history("digest", "--today", "2026-11-14").stdout
    assert "lab: 3 runs" in printed
    history("digest", "--today", "2026-11-14", "-o", "digest.md")
    assert Path("digest.md").read_text() == printed
    with pytest.raises(UsageError, match="Invalid --today 'soon'"):
        history("digest", "--today", "soon")


def test_series_and_runs_are_there_for_other_programs(history: Command) -> None:
    history("add", str(night(11)))
    listed = json.loads(history("list", "--json").stdout)
    assert [entry["run"] for entry in listed["runs"]] == ["2026-11-11T04-10-00Z-aaaa"]
    series = json.loads(history("show", "--json").stdout)
    assert len(series) == 4
    assert series[0]["axes"]["call"] == "fit"
    assert series[-1]["points"][0]["origin"]["machine"] == "lab"


def test_the_reference_has_a_time_and_no_ratio(history: Command) -> None:
    history("add", str(night(11)))
    (line,) = history("show", "-e", "tf1.14", "-a", "mode=graph").stdout.splitlines()
    assert " / " not in line
    assert line.endswith("10.0 ms")


def test_what_cannot_be_added_is_named_and_left_out(history: Command) -> None:
    good = night(11)
    damaged, newer, dead, profiles = (night(number) for number in (12, 13, 14, 15))
    (damaged / "run.json").write_text("{")
    of_newer = json.loads((newer / "run.json").read_text())
    (newer / "run.json").write_text(json.dumps({**of_newer, "schema": 99}))
    of_dead = json.loads((dead / "run.json").read_text())
    (dead / "run.json").write_text(json.dumps({**of_dead, "stops": {}}))
    of_profiles = json.loads((profiles / "run.json").read_text())
    (profiles / "run.json").write_text(json.dumps({**of_profiles, "plan": {**of_profiles["plan"], "profile_calls": 3}}))
    going = night(16)
    with (going / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = history("add", "--all")
    assert done.exit_code == 1
    assert "1 run added" in done.stdout
    said = done.stderr
    for path, why in (
        (damaged, "is damaged"),
        (newer, "has schema 99"),
        (dead, "was interrupted"),
        (profiles, "has profiles"),
        (going, "is being measured"),
    ):
        assert any(path.name in line and why in line for line in said.splitlines()), (why, said)
    assert good.name in history("list").stdout
    assert history("add", str(going)).exit_code == 0


def test_a_folder_without_runs_and_no_folder_are_refused(history: Command) -> None:
    Path("results").mkdir()
    with pytest.raises(UsageError, match="doesn't contain any runs"):
        history("add", "--all")
    with pytest.raises(UsageError, match="cannot be read"):
        history("add", "--all", "--results", "none")
    with pytest.raises(UsageError, match="No run is specified"):
        history("add")
    assert history("add", "none").exit_code == 1


def test_an_empty_history_says_how_to_fill_it(history: Command) -> None:
    assert "harness history add --all" in history("list").stderr
    for words in (
        "show",
        "report -e tf2.0",
        "report --format md",
        "confirm",
        "confirm --all-suspected",
        "export --format otava",
    ):
        with pytest.raises(NothingSelectedError, match=r"is empty\.\nAdd runs with: harness history add --all"):
            history(*words.split())
    assert not Path("history.html").exists()


def test_an_empty_history_has_a_page(history: Command) -> None:
    done = history("report")
    assert (done.exit_code, "harness history add --all" in done.stderr) == (0, True)
    assert "<title>A history without runs</title>" in Path("history.html").read_text()


def test_what_is_in_no_series_is_told_with_what_is(week: Command) -> None:
    for words in ("show -s keras", "report -e tf9", "confirm -a mode=none", "export --format otava -s keras"):
        with pytest.raises(NothingSelectedError, match="No series in the history") as raised:
            week(*words.split())
        assert "Its scenarios: step. Its environments: tf1.14, tf2.0. To show all series: harness history show" in str(
            raised.value
        )


def test_a_note_is_kept_and_listed(history: Command) -> None:
    history("note", "2026-11-12", "driver 575")
    history("note", "2026-11-13T06:00:00+02:00", "moved")
    listed = history("list").stdout.splitlines()
    assert listed == ["2026-11-12: driver 575", "2026-11-13T04:00:00+00:00: moved"]


@pytest.mark.parametrize("words", [("yesterday", "x"), ("2026-13-01", "x"), ("2026-11-12", " ")])
def test_what_is_no_note_is_refused(words: tuple[str, str], history: Command) -> None:
    with pytest.raises(UsageError):
        history("note", *words)
    assert not list(Path(os.environ["HARNESS_DATA_DIR"]).glob("*notes*"))


def test_the_index_is_made_again(history: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [night(number) for number in (11, 12)]
    history("add", "--all")
    history("note", "2026-11-12", "moved")
    history("export", "--git", "git")
    before = history("show", "--json").stdout
    shutil.rmtree(folders[0])
    again = history("rebuild")
    assert "2 runs" in again.stdout
    assert "1 run has no folder on this machine" in again.stderr
    assert history("show", "--json").stdout == before
    shutil.rmtree("results")
    monkeypatch.setenv("HARNESS_HISTORY", "other.duckdb")
    assert "2 runs" in history("rebuild", "--from", "git").stdout
    assert history("show", "--json").stdout == before
    assert "moved" in history("list").stdout


def test_a_run_that_another_process_adds_during_a_rebuild_stays(
    history: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = night(11), load_summary(night(12, results="elsewhere"))
    history("add", str(first))
    open_history = History.open
    waiting = [second]

    @contextmanager
    def open_then_add(*arguments: Any, **options: Any) -> Iterator[History]:
        with open_history(*arguments, **options) as index:
            yield index
        # the other process waits until the index is free
        while waiting:
            with open_history(writing=True) as index:
                index.add(waiting.pop())

    monkeypatch.setattr(History, "open", open_then_add)
    assert history("rebuild").exit_code == 0
    with open_history() as index:
        assert [entry.run for entry in index.runs()] == [first.name, second.run]


@pytest.mark.parametrize("data", [b"x" * 5000, b""])
def test_a_damaged_index_is_made_again(data: bytes, history: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_HISTORY", "x.duckdb")
    Path("x.duckdb").write_bytes(data)
    night(11)
    with pytest.raises(UsageError, match="harness history rebuild"):
        history("list")
    done = history("rebuild")
    assert "1 run" in done.stdout
    assert "The old file was kept as x.duckdb.damaged." in done.stderr
    assert Path("x.duckdb.damaged").read_bytes() == data


def test_what_is_exported_is_named(history: Command, tmp_path: Path) -> None:
    night(11)
    history("add", "--all")
    assert history("export", "--format", "openmetrics").stdout.endswith("# EOF\n")
    history("export", "--format", "bencher", "-o", "x.json", "-e", "tf2.0")
    assert len(json.loads(Path("x.json").read_text())) == 2
    with pytest.raises(UsageError, match="Use one of bencher, benchmark-action, openmetrics, otava"):
        history("export", "--format", "none")
    with pytest.raises(UsageError, match="--git DIR or --format NAME"):
        history("export")
    with pytest.raises(CannotRunHereError, match=r"cannot be written: .*\nChoose another folder with --git"):
        history("export", "--git", "/proc/none")


def test_folders_of_runs_are_no_summaries(history: Command) -> None:
    night(11)
    with pytest.raises(UsageError, match="To read the folders of runs instead, pass --results"):
        history("rebuild", "--from", "results")


def test_a_history_that_is_a_folder_is_refused_with_what_to_do(
    history: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HISTORY", str(tmp_path))
    with pytest.raises(CannotRunHereError, match=r"cannot be opened: .*\nSet HARNESS_HISTORY to another file"):
        history("list")


def test_one_run_was_there_and_two_were(history: Command) -> None:
    night(11)
    history("add", "--all")
    assert history("add", "--all").stdout.endswith(", 1 was already in it.\n")


@pytest.fixture
def week(history: Command) -> Command:
    """The command, with a history of seven nights; from the fourth on something takes longer."""
    for number in range(10, 17):
        night(number, 1.0 if number < 13 else 1.2)
    history("add", "--all")
    return history


def test_without_a_confirmed_slowdown_there_is_no_issue_to_open(week: Command) -> None:
    done = week("alarm")
    assert done.stdout == ""
    assert "No slowdown is confirmed" in done.stderr
    assert json.loads(week("alarm", "--json").stdout) == []
    with pytest.raises(UsageError, match="Can't read nowhere"):
        week("alarm", "--issues", "nowhere")


def test_a_report_is_one_page_with_what_was_found(week: Command) -> None:
    done = week("report")
    assert done.stdout == ""
    assert done.stderr == "History: history.html\n"
    text = Path("history.html").read_text()
    assert "History of 7 runs on 1 machine, 10 Nov 2026 to 16 Nov 2026" in text
    assert "slower since the run of 13 Nov 2026" in text


def test_a_report_in_markdown_tells_what_changed_since_the_last_run_a_run_or_a_date(week: Command) -> None:
    assert week("report", "--format", "md").stdout.startswith("# History: since the run of 15 Nov 2026\n\n1 new run: ")
    assert "# History: since the run of 12 Nov" in week("report", "--since", "2026-11-12T04-10-00Z-aaaa").stdout
    told = week("report", "--since", "2026-11-12").stdout
    assert "# History: since the run of 11 Nov" in told
    assert "slower since the run of 13 Nov 2026" in told
    assert "# History: all runs" in week("report", "--since", "2026-01-01").stdout


def test_a_report_in_markdown_goes_on_where_that_of_its_file_ended(week: Command) -> None:
    week("report", "-o", "night.md", "--since", "2026-01-01")
    night(17, 1.2)
    night(18, 1.2)
    week("add", "--all")
    week("report", "-o", "night.md")
    assert Path("night.md").read_text().startswith("# History: since the run of 16 Nov 2026\n\n2 runs: ")


def test_a_report_of_some_series(week: Command) -> None:
    week("report", "-e", "tf2.*", "-a", "mode=eager", "-o", "some.html")
    assert '"name":"step tf2.0 cpu call=fit dtype=float32 mode=eager' in Path("some.html").read_text()
    assert "tf2.0 cpu call=fit dtype=float32 mode=graph" not in Path("some.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "pdf"], "Unknown format: 'pdf'."),
        (["--format", "html", "--since", "2026-11-12"], "--since selects changes for Markdown only"),
        (["--since", "yesterday"], "'yesterday' is neither a run of the history nor a date."),
    ],
)
def test_a_report_that_cannot_be_is_refused(week: Command, words: list[str], told: str) -> None:
    with pytest.raises(UsageError) as raised:
        week("report", *words)
    assert told in str(raised.value)

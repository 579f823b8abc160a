import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.history import database
from harness.history.database import Row
from harness.history.index import _ADDED_COLUMNS, VERSION, History
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from harness.model.history import Decision, Note, Summary
from harness.model.launch import Status


def later(night: Summary, number: int, **changes: object) -> Summary:
    """The same run, so many nights later."""
    when = f"2026-11-{21 + number}"
    return replace(night, **{"run": f"{when}T04-10-00Z-000{number}", "started": f"{when}T04:10:00Z", **changes})


@pytest.fixture(params=["duckdb", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty history."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else str(tmp_path / "history.duckdb")


def test_a_run_is_added_once(where: str, night: Summary) -> None:
    with History.open(where, writing=True) as history:
        assert history.add(night)
        assert not history.add(night)
        assert not history.add(replace(night, suite="another"))
    with History.open(where) as history:
        (entry,) = history.runs()
        assert (entry.run, entry.suite, entry.points) == (night.run, night.suite, 4)


def test_what_is_added_comes_back_whole(where: str, night: Summary) -> None:
    nights = [later(night, 2), night, later(night, 1)]
    with History.open(where, writing=True) as history:
        assert history.add_all(nights) == [night.run for night in nights]
        assert list(history.summaries()) == sorted(nights, key=lambda each: each.started)
        assert history.summary(night.run) == replace(night, points=[])
        assert history.summary("none") is None


def test_a_series_is_in_the_order_of_its_nights(where: str, night: Summary) -> None:
    with History.open(where, writing=True) as history:
        history.add_all([later(night, 2), night, later(night, 1, started="2026-11-22T06:10:00+02:00")])
        found = history.series()
    assert len(found) == 4
    for entry in found:
        assert [point.started for point in entry.points] == [f"2026-11-{day}T04:10:00+00:00" for day in (21, 22, 23)]


def test_globs_choose_series(where: str, night: Summary) -> None:
    with History.open(where, writing=True) as history:
        history.add(night)
        (chosen,) = history.series(["st*"], ["tf2.*", "none"], {"mode": ["eager"]})
        assert not history.series(["other"])
        assert not history.series(axes={"none": ["*x"]})
    key = chosen.key
    assert (key.scenario, key.environment, dict(key.axes)["mode"]) == ("step", "tf2.0", "eager")
    assert key.versus == "tf1.14 mode=graph"
    assert key.cell == "step tf2.0 cpu call=fit dtype=float32 mode=eager"


def test_only_series_with_these_keys_are_loaded(where: str, night: Summary) -> None:
    with History.open(where, writing=True) as history:
        history.add(night)
        all_series = history.series()
        assert history.series(only={all_series[1].key}) == [all_series[1]]
        assert history.series(only=[]) == []


def test_a_run_names_its_machines_without_any_result(where: str, night: Summary) -> None:
    none = [replace(point, status=Status.FAILED, seconds=None, ratio=None) for point in night.points]
    with History.open(where, writing=True) as history:
        history.add_all([later(night, 1, points=none), later(night, 2, points=[*none[1:], night.points[0]])])
        assert [list(entry.failed) for entry in history.runs()] == [[night.machines[0].machine.id], []]


def test_a_point_says_what_it_was_measured_with(where: str, night: Summary) -> None:
    with History.open(where, writing=True) as history:
        history.add_all([night, later(night, 1, kit="0ther")])
        series = history.series(environment=["tf2.0"])[0]
    first, second = (point.origin for point in series.points)
    software = night.software
    assert first.kit == "c0ffee"
    assert first._replace(kit="0ther") == second
    assert (first.scenario, first.machine) == ("ab12", "lab")
    assert (first.lock, first.reference_lock) == (software["tf2.0"].lock, software["tf1.14"].lock)


def test_another_machine_another_way_and_another_reference_make_other_series(where: str, night: Summary) -> None:
    moved = replace(
        later(night, 1),
        machines=[replace(night.machines[0], machine=replace(night.machines[0].machine, id="m-2"))],
        points=[replace(point, machine="m-2") for point in night.points],
    )
    with History.open(where, writing=True) as history:
        history.add_all([night, moved, later(night, 2, way="all CPUs")])
        history.add(later(night, 3, points=[replace(point, against={"mode": "eager"}) for point in night.points]))
        assert len(history.series()) == 4 * 4
        assert {len(entry.points) for entry in history.series()} == {1}


def test_what_raises_leaves_nothing(where: str, night: Summary) -> None:
    def fail() -> None:
        with History.open(where, writing=True) as history:
            assert history.add(night)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with History.open(where) as history:
        assert not history.runs()


def test_notes_and_decisions_outlive_the_index(where: str, night: Summary) -> None:
    with History.open(where, writing=True) as history:
        history.add(night)
        key = history.series()[0].key
    decision = Decision(key, night.run, ["kit"], False, "run", "2026-11-22T00:00:00+00:00", 1.01, 0.99, 1.03)
    with History.open(where) as history:
        history.note("2026-11-22", "new kernel")
        history.note("2026-11-20", "moved")
        history.note("2026-11-22", "new kernel")
        history.decide(decision)
    with History.open(where, fresh=True) as history:
        assert not history.runs()
        assert history.notes() == [Note("2026-11-20", "moved"), Note("2026-11-22", "new kernel")]
        assert history.decisions() == [decision]


def test_the_environment_names_a_history(where: str, night: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_HISTORY", where)
    with History.open(writing=True) as history:
        history.add(night)
        assert set(history.name.split()) == {part for part in where.split() if not part.startswith("user=")}
    with History.open(where) as history:
        assert history.runs()


def test_reading_what_is_not_there_makes_no_file() -> None:
    with History.open() as history:
        assert not history.runs()
        assert not history.series()
    assert not (Path(os.environ["HARNESS_DATA_DIR"]) / "history.duckdb").exists()


def test_an_index_of_another_version_is_made_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with History.open(where, writing=True):
        pass
    monkeypatch.setattr("harness.history.index.VERSION", VERSION + 1)
    with pytest.raises(UsageError, match=r"another version(.|\n)*harness history rebuild"), History.open(where):
        pass
    with History.open(where, fresh=True):
        pass
    with History.open(where) as history:
        assert not history.runs()


def test_an_index_of_the_first_version_gets_the_new_columns(where: str, night: Summary) -> None:
    with History.open(where, writing=True) as history:
        history.add(night)
        for name in _ADDED_COLUMNS:
            history._database.do(f"ALTER TABLE points DROP COLUMN {name}")
        history._database.do("UPDATE version SET number = 1")
    if "history.duckdb" in where:  # a file isn't changed by readers
        with pytest.raises(UsageError, match="another version"), History.open(where):
            pass
    with History.open(where, writing=True) as history:
        assert [summary.run for summary in history.summaries()] == [night.run]
    with History.open(where) as history:
        assert all(point.origin.version == "" for series in history.series() for point in series.points)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "history.duckdb"
    path.write_text("x" * 5000)
    with pytest.raises(DamagedError, match=r"history\.duckdb is damaged"), History.open(str(path)):
        pass


def test_a_folder_that_cannot_be_made_gets_a_sentence() -> None:
    with (
        pytest.raises(CannotRunHereError, match="cannot be written"),
        History.open("/proc/none/history.duckdb", writing=True),
    ):
        pass


def test_another_writer_is_waited_for_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.duckdb"
    program = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout
        writer.stdout.readline()
        monkeypatch.setattr(database, "PATIENCE", 0.0)
        told: list[str] = []
        with (
            pytest.raises(CannotRunHereError, match=rf"still in use by process {writer.pid} \(python"),
            History.open(str(path), writing=True, told=told.append),
        ):
            pass

        def let_go(sentence: str) -> None:
            told.append(sentence)
            writer.communicate()

        monkeypatch.setattr(database, "PATIENCE", 60.0)
        with History.open(str(path), writing=True, told=let_go) as history:
            assert not history.runs()
    assert len(told) == 1
    assert f"in use by process {writer.pid}" in told[0]


@pytest.mark.parametrize("line", ["x", "[]", '{"when": "2026-11-22"}'])
def test_a_damaged_file_of_notes_is_named(line: str, tmp_path: Path) -> None:
    with History.open(str(tmp_path / "history.duckdb")) as history:
        history.note("2026-11-22", "x")
        path = tmp_path / "history.notes.jsonl"
        path.write_text(line + "\n")
        with pytest.raises(DamagedError, match="is damaged"):
            history.notes()


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("host={folder} user=me password=s3cret dbname=nightly", "host={folder} dbname=nightly"),
        ("host={folder} user=me sslpassword=s3cret passfile=/s3cret", "host={folder}"),
        ("password=s3cret hostaddr=127.0.0.1 port=1", "port=1"),
        ("postgresql://me:s3cret@localhost:1/history", "host=localhost port=1 dbname=history"),
        (" POSTGRESQL://me:s3cret@localhost:1/history", "host=localhost port=1 dbname=history"),
        ("postgres://me@localhost:1/history?sslpassword=s3cret", "host=localhost port=1 dbname=history"),
        # libpq ends the user's part at a slash: the password is in the port and in the database
        ("postgresql://me:s3cret/s3cret@localhost/history", "a DSN"),
        ("dbname=postgresql://me:s3cret@localhost/history host={folder}", "a DSN"),
        ("host=localhost;password=s3cret port=1", "a DSN"),
    ],
)
def test_a_postgres_that_is_down_is_named_by_its_host_port_and_database(dsn: str, shown: str, tmp_path: Path) -> None:
    with (
        pytest.raises(CannotRunHereError, match="cannot be reached") as found,
        History.open(dsn.format(folder=tmp_path)),
    ):
        pass
    assert f"({shown.format(folder=tmp_path)})" in str(found.value)
    assert "s3cret" not in str(found.value)


def test_what_libpq_says_of_a_dsn_does_not_repeat_its_other_parts(server: str) -> None:
    with pytest.raises(CannotRunHereError, match="does not exist") as found, History.open(f"{server} user=nobody-here"):
        pass
    assert "nobody-here" not in str(found.value)


@pytest.mark.parametrize(
    "dsn", ["postgresql://me:s3cret@[/x", "mysql://me:s3cret@localhost/x", "PostgreSQL:/me:s3cret@h", "Password=s3cret"]
)
def test_a_dsn_that_is_none_is_refused_without_its_password(dsn: str) -> None:
    with pytest.raises(UsageError, match="isn't a valid one") as found, History.open(dsn):
        pass
    assert "s3cret" not in str(found.value)


def test_without_duckdb_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(CannotRunHereError, match="needs DuckDB"), History.open(str(tmp_path / "history.duckdb")):
        pass


def test_a_dsn_without_psycopg_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(CannotRunHereError, match="needs psycopg") as found, History.open("PASSWORD=s3cret"):
        pass
    assert "s3cret" not in str(found.value)


def test_two_writers_of_postgres_add_a_run_once(postgres: str, night: Summary) -> None:
    with History.open(postgres, writing=True):
        pass
    with ThreadPoolExecutor(2) as pool:
        added = list(pool.map(lambda _: _add(postgres, night), range(2)))
    assert sorted(added) == [False, True]
    with History.open(postgres) as history:
        assert [len(entry.points) for entry in history.series()] == [1] * 4


def test_what_a_reader_of_postgres_sees_is_of_one_moment(
    postgres: str, night: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is added between two of its statements is not there for it, whole or in part."""
    _add(postgres, night)
    others = [later(night, 2), later(night, 1, way="all CPUs")]
    with History.open(postgres) as history:
        rows = history._database.rows

        def slowly(statement: str, values: Sequence[object] = ()) -> list[Row]:
            found = rows(statement, values)
            if others:
                _add(postgres, others.pop())
            return found

        monkeypatch.setattr(history._database, "rows", slowly)
        assert [len(entry.points) for entry in history.series()] == [1] * 4
    assert not others
    with History.open(postgres) as history:
        assert len(history.series()) == 4 * 2


def test_another_writer_of_postgres_is_named(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.0)
    told: list[str] = []
    with (
        History.open(postgres, writing=True),
        pytest.raises(CannotRunHereError, match=r"still in use by the server's process \d+, for a client on its own"),
        History.open(postgres, writing=True, told=told.append),
    ):
        pass


def test_what_postgres_refuses_is_a_sentence(postgres: str, night: Summary) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE runs (other INTEGER)")
    with pytest.raises(CannotRunHereError, match="already exists"), History.open(postgres, writing=True):
        pass


@pytest.mark.parametrize(
    "use",
    [
        lambda history, night: history.add(night),
        lambda history, night: history.series(),
        lambda history, night: history.note("2026-11-22", "new kernel"),
        lambda history, night: None,
    ],
    ids=["add", "series", "note", "commit"],
)
def test_a_server_that_goes_away_is_a_sentence_and_nothing_is_half_saved(
    postgres: str, night: Summary, use: Callable[[History, Summary], object]
) -> None:
    import psycopg

    def end() -> None:
        with History.open(postgres, writing=True) as history:
            history.add(later(night, 1))
            with psycopg.connect(postgres) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND datname = current_database()"
                )
            use(history, later(night, 2))

    _add(postgres, night)
    with pytest.raises(CannotRunHereError, match=r"ended: .*\nStart the server"):
        end()
    with History.open(postgres) as history:
        assert [entry.run for entry in history.runs()] == [night.run]
        assert not history.notes()


def _add(where: str, night: Summary) -> bool:
    with History.open(where, writing=True) as history:
        return history.add(night)


def test_a_process_that_reads_a_history_and_then_runs_ends_without_a_word(tmp_path: Path) -> None:
    text = (
        "from harness.history.index import History\n"
        "from harness.store.folder import pause_garbage_collection\n"
        f"with History.open({str(tmp_path / 'x.duckdb')!r}, writing=True) as history: history.runs()\n"
        "with pause_garbage_collection(): pass\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("ending", ["next(reading())", "Thread(target=next, args=[reading()], daemon=True).start()"])
def test_a_process_that_ends_with_a_history_open_does_so_without_a_word(ending: str, tmp_path: Path) -> None:
    text = (
        "import sys, time\n"
        "from threading import Event, Thread\n"
        "from harness.history.index import History\n"
        "there, never = Event(), Event()\n"
        "def reading():\n"
        f"    with History.open({str(tmp_path / 'x.duckdb')!r}, writing=True) as history:\n"
        "        history.runs()\n"
        "        there.set()\n"
        f"        {'yield' if ending.startswith('next') else 'never.wait(); yield'}\n"
        "kept = reading()\n"
        f"{ending.replace('reading()', 'kept')}\n"
        "there.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")

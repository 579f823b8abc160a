import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.history import database
from harness.history.database import Row
from harness.history.index import _ADDED_COLUMNS, VERSION, History
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from harness.model.history import Decision, Note, Summary
from harness.model.launch import Status
from tests.refusal import read_refusal


def later(night: Summary, number: int, **changes: object) -> Summary:
    when = f"2026-11-{21 + number}"
    return replace(night, **{"run": f"{when}T04-10-00Z-000{number}", "started": f"{when}T04:10:00Z", **changes})


def open_history(place: str, *, writing: bool = False) -> None:
    with History.open(place, writing=writing):
        pass


def add(place: str, night: Summary) -> bool:
    with History.open(place, writing=True) as history:
        return history.add(night)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "history.duckdb")


def test_a_run_is_added_once_unless_the_command_raises(place, night):
    def fail() -> None:
        with History.open(place, writing=True) as history:
            assert history.add(night)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with History.open(place, writing=True) as history:
        assert not history.runs()
        assert history.add(night)
        assert not history.add(night)
        assert not history.add(replace(night, suite="another"))
    with History.open(place) as history:
        (entry,) = history.runs()
        assert (entry.run, entry.suite, entry.points) == (night.run, night.suite, 4)


def test_summaries_and_series_come_back_in_the_order_of_their_nights(place, night):
    nights = [night, later(night, 1, started="2026-11-22T06:10:00+02:00"), later(night, 2, kit="0ther")]
    with History.open(place, writing=True) as history:
        assert history.add_all(nights[::-1]) == [summary.run for summary in nights[::-1]]
        assert list(history.summaries()) == nights
        assert history.summary(night.run) == replace(night, points=[])
        assert history.summary("none") is None
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


def test_globs_and_keys_choose_series(place, night):
    with History.open(place, writing=True) as history:
        history.add(night)
        (series,) = history.series(["st*"], ["tf2.*", "none"], {"mode": ["eager"]})
        assert not history.series(["other"])
        assert not history.series(axes={"none": ["*x"]})
        every = history.series()
        assert history.series(only={every[1].key}) == [every[1]]
        assert history.series(only=[]) == []
    assert (series.key.scenario, series.key.environment, dict(series.key.axes)["mode"]) == ("step", "tf2.0", "eager")
    assert (series.key.versus, series.key.cell) == (
        "tf1.14 mode=graph",
        "step tf2.0 cpu call=fit dtype=float32 mode=eager",
    )


def test_a_run_names_its_machines_without_any_result(place, night):
    none = [replace(point, status=Status.FAILED, seconds=None, ratio=None) for point in night.points]
    with History.open(place, writing=True) as history:
        history.add_all([later(night, 1, points=none), later(night, 2, points=[*none[1:], night.points[0]])])
        assert [list(entry.failed) for entry in history.runs()] == [[night.machines[0].machine.id], []]


def test_another_machine_another_way_and_another_reference_make_other_series(place, night):
    moved = replace(
        later(night, 1),
        machines=[replace(night.machines[0], machine=replace(night.machines[0].machine, id="m-2"))],
        points=[replace(point, machine="m-2") for point in night.points],
    )
    with History.open(place, writing=True) as history:
        history.add_all([night, moved, later(night, 2, way="all CPUs")])
        history.add(later(night, 3, points=[replace(point, against={"mode": "eager"}) for point in night.points]))
        assert [len(entry.points) for entry in history.series()] == [1] * 4 * 4


def test_notes_and_decisions_outlive_an_index_of_another_version(place, night, monkeypatch):
    with History.open(place, writing=True) as history:
        history.add(night)
        key = history.series()[0].key
    decision = Decision(key, night.run, ["kit"], False, "run", "2026-11-22T00:00:00+00:00", 1.01, 0.99, 1.03)
    with History.open(place) as history:
        for note in (("2026-11-22", "new kernel"), ("2026-11-20", "moved"), ("2026-11-22", "new kernel")):
            history.note(*note)
        history.decide(decision)
    with monkeypatch.context() as patch:
        patch.setattr("harness.history.index.VERSION", VERSION + 1)
        with pytest.raises(UsageError, match="harness history rebuild"):
            open_history(place)
    with History.open(place, fresh=True) as history:
        assert not history.runs()
        assert history.notes() == [Note("2026-11-20", "moved"), Note("2026-11-22", "new kernel")]
        assert history.decisions() == [decision]


def test_the_environment_names_a_history(place, night, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("HARNESS_HISTORY", place)
        with History.open(writing=True) as history:
            history.add(night)
            assert set(history.name.split()) == {part for part in place.split() if not part.startswith("user=")}
    with History.open(place) as history:
        assert history.runs()


def test_an_index_of_the_first_version_gets_the_new_columns(place, night):
    with History.open(place, writing=True) as history:
        history.add(night)
        for name in _ADDED_COLUMNS:
            history._database.do(f"ALTER TABLE points DROP COLUMN {name}")
        history._database.do("UPDATE version SET number = 1")
    if "history.duckdb" in place:  # a file isn't changed by readers
        with pytest.raises(UsageError):
            open_history(place)
    with History.open(place, writing=True) as history:
        assert [summary.run for summary in history.summaries()] == [night.run]
    with History.open(place) as history:
        assert all(point.origin.version == "" for series in history.series() for point in series.points)


@pytest.mark.slow
def test_postgres_does_what_a_file_does(postgres, night, monkeypatch):
    import psycopg

    for check in (
        test_a_run_is_added_once_unless_the_command_raises,
        test_summaries_and_series_come_back_in_the_order_of_their_nights,
        test_globs_and_keys_choose_series,
        test_a_run_names_its_machines_without_any_result,
        test_another_machine_another_way_and_another_reference_make_other_series,
        test_notes_and_decisions_outlive_an_index_of_another_version,
        test_the_environment_names_a_history,
        test_an_index_of_the_first_version_gets_the_new_columns,
    ):
        options = {"monkeypatch": monkeypatch} if "monkeypatch" in inspect.signature(check).parameters else {}
        check(postgres, night, **options)  # type: ignore[operator]
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")


def test_reading_what_is_not_there_makes_no_file():
    with History.open() as history:
        assert not history.runs()
        assert not history.series()
    assert not (Path(os.environ["HARNESS_DATA_DIR"]) / "history.duckdb").exists()


def test_what_cannot_be_opened_is_refused(tmp_path, monkeypatch, snapshot):
    refusals: dict[str, str] = {}

    def check(case: str, place: str, *, writing: bool = False) -> None:
        refusals[case] = read_refusal(lambda: open_history(place, writing=writing), tmp_path)
        assert "s3cret" not in refusals[case]

    path = tmp_path / "history.duckdb"
    path.write_text("x" * 5000)
    check("no database", str(path))
    check("no folder", "/proc/none/history.duckdb", writing=True)
    for dsn in (
        *("postgresql://me:s3cret@[/x", "mysql://me:s3cret@h/x", "PostgreSQL:/me:s3cret@h", "Password=s3cret"),
        *('"postgresql://me:s3cret@h/x"', "me:s3cret@127.0.0.1/x", "h:5432:db:me:s3cret", "//me:s3cret"),
    ):
        check(dsn.replace("s3cret", "…"), dsn)
    for name in ("duckdb", "psycopg"):
        monkeypatch.setitem(sys.modules, name, None)
    check("without DuckDB", str(tmp_path / "other.duckdb"))
    check("without psycopg", "PASSWORD=s3cret")
    assert refusals == snapshot


ADDRESSES = st.tuples(
    st.sampled_from(["", " ", '"', "'", "\\", "-", "\n", "HARNESS_HISTORY=", "url:", "jdbc:", "//", "/", "./"]),
    st.sampled_from(["", "postgresql", "POSTGRES", "mysql", "host=h password=", "host=h;Password = ", "é"]),
    st.sampled_from(["", ":", "://", ":/", ":///", "//", "/"]),
    st.sampled_from(["", "u:", "u%3A", ":", "u:x/", "u:[", "u p:", "u="]),
    st.just("s3cret"),
    st.sampled_from(["", "x", "/", "#", "?", " "]),
    st.sampled_from(["@", "@h/db", "@[::1/db", "@h:1/db?sslmode=", "'@h", "@127.0.0.1/a/b.duckdb", "@h,i/db"]),
    st.sampled_from(["", '"', "'", " ", "/", "`"]),
).map("".join)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ADDRESSES)
def test_no_message_has_the_password_of_an_address_and_no_file_has_its_name(tmp_path, monkeypatch, address):
    import psycopg

    def refuse(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("the server is down")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(psycopg, "connect", refuse)
    assert "s3cret" not in read_refusal(lambda: open_history(address, writing=True))
    assert not list(tmp_path.iterdir())


def test_a_path_may_have_the_characters_of_an_address(tmp_path, monkeypatch, night):
    folder = tmp_path / "it's me@host"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    assert add(str(folder / "history.duckdb"), night)
    assert not add("./it's me@host/history.duckdb", night)
    monkeypatch.setenv("HARNESS_DATA_DIR", str(folder / "new"))
    with History.open(writing=True) as history:
        assert not history.runs()


def test_a_path_like_a_dsn_is_a_path_if_its_folder_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "me@example.org").mkdir()
    for name in ("./me@example.org/history.duckdb", "./12:30.duckdb"):
        open_history(name, writing=True)
        assert Path(name).is_file()


def test_a_damaged_file_of_notes_is_an_error(place, tmp_path):
    with History.open(place) as history:
        history.note("2026-11-22", "x")
        for line in ("x", "[]", '{"when": "2026-11-22"}'):
            (tmp_path / "history.notes.jsonl").write_text(line + "\n")
            with pytest.raises(DamagedError):
                history.notes()


@pytest.mark.slow
def test_another_writer_is_waited_for_and_named(place, monkeypatch):
    program = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    sentences: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", program, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout
        writer.stdout.readline()
        monkeypatch.setattr(database, "PATIENCE", 0.0)
        with (
            pytest.raises(CannotRunHereError, match=rf"process {writer.pid} \(python"),
            History.open(place, writing=True, told=sentences.append),
        ):
            pass

        def let_go(sentence: str) -> None:
            sentences.append(sentence)
            writer.communicate()

        monkeypatch.setattr(database, "PATIENCE", 60.0)
        with History.open(place, writing=True, told=let_go) as history:
            assert not history.runs()
    (sentence,) = sentences
    assert f"process {writer.pid}" in sentence


def test_a_postgres_that_is_down_is_named_by_its_host_port_and_database(tmp_path):
    names = {
        f"host={tmp_path} user=me password=s3cret dbname=nightly": f"host={tmp_path} dbname=nightly",
        f"host={tmp_path} user=me sslpassword=s3cret passfile=/s3cret": f"host={tmp_path}",
        "password=s3cret hostaddr=127.0.0.1 port=1": "port=1",
        "postgresql://me:s3cret@localhost:1/history": "host=localhost port=1 dbname=history",
        " POSTGRESQL://me:s3cret@localhost:1/history": "host=localhost port=1 dbname=history",
        "postgres://me@localhost:1/history?sslpassword=s3cret": "host=localhost port=1 dbname=history",
        # libpq ends the user's part at a slash: the password is in the port and in the database
        "postgresql://me:s3cret/s3cret@localhost/history": "a DSN",
        f"dbname=postgresql://me:s3cret@localhost/history host={tmp_path}": "a DSN",
        "host=localhost;password=s3cret port=1": "a DSN",
    }
    for dsn, name in names.items():
        with pytest.raises(CannotRunHereError) as raised:
            open_history(dsn)
        assert f"({name})" in str(raised.value), dsn
        assert "s3cret" not in str(raised.value), dsn


def test_what_postgres_refuses_is_an_error_with_no_other_part_of_the_dsn(postgres):
    import psycopg

    with pytest.raises(CannotRunHereError, match="does not exist") as raised:
        open_history(f"{postgres} user=nobody-here")
    assert "nobody-here" not in str(raised.value)
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE runs (other INTEGER)")
    with pytest.raises(CannotRunHereError, match="already exists"):
        open_history(postgres, writing=True)


def test_two_writers_of_postgres_add_a_run_once_and_one_that_waits_too_long_is_told_of_the_other(
    postgres, night, monkeypatch
):
    open_history(postgres, writing=True)
    with ThreadPoolExecutor(2) as pool:
        added = list(pool.map(lambda _: add(postgres, night), range(2)))
    assert sorted(added) == [False, True]
    with History.open(postgres) as history:
        assert [len(entry.points) for entry in history.series()] == [1] * 4
    monkeypatch.setattr(database, "PATIENCE", 0.0)
    with (
        History.open(postgres, writing=True),
        pytest.raises(CannotRunHereError, match=r"the server's process \d+, for a client on its own"),
        History.open(postgres, writing=True, told=lambda _: None),
    ):
        pass


def test_what_a_reader_of_postgres_sees_is_of_one_moment(postgres, night, monkeypatch):
    """A run that is added between two of its statements is not there for it, whole or in part."""
    add(postgres, night)
    others = [later(night, 2), later(night, 1, way="all CPUs")]
    with History.open(postgres) as history:
        rows = history._database.rows

        def read_slowly(statement: str, values: Sequence[object] = ()) -> list[Row]:
            result = rows(statement, values)
            if others:
                add(postgres, others.pop())
            return result

        monkeypatch.setattr(history._database, "rows", read_slowly)
        assert [len(entry.points) for entry in history.series()] == [1] * 4
    assert not others
    with History.open(postgres) as history:
        assert len(history.series()) == 4 * 2


def test_a_server_that_goes_away_is_an_error_and_nothing_is_half_saved(postgres, night):
    import psycopg

    def lose_server(use: Callable[[History], object]) -> None:
        with History.open(postgres, writing=True) as history:
            history.add(later(night, 1))
            with psycopg.connect(postgres) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND datname = current_database()"
                )
            use(history)

    uses: list[Callable[[History], object]] = [
        lambda history: history.add(later(night, 2)),
        lambda history: history.series(),
        lambda history: history.note("2026-11-22", "new kernel"),
        lambda history: None,  # only the commit
    ]
    add(postgres, night)
    for use in uses:
        with pytest.raises(CannotRunHereError, match=r"ended: .*\nStart the server"):
            lose_server(use)
        with History.open(postgres) as history:
            assert [entry.run for entry in history.runs()] == [night.run]
            assert not history.notes()

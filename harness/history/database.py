"""The storage of an index: a DuckDB file or a PostgreSQL database, with one schema and the same statements."""

import atexit
import errno
import gc
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from harness.files import append, create_file, get_data_dir, make_folder, parse_json, read_text, suggest_remedy
from harness.model.errors import CannotRunHereError, DamagedError, UsageError

#: The number of seconds to wait for another writer.
PATIENCE = 60.0

_POLL_SECONDS = 0.2

#: The start of a URL, or of a keyword with a value. A text with this start is treated as a DSN and never as a path,
#: because paths are printed and an invalid DSN may contain a password.
_DSN = re.compile(r"\s*([A-Za-z][\w.+-]*:/|[A-Za-z]\w*\s*=)")

#: A part of an address that isn't a valid DSN, for example because of its quotes. Such a text may contain a password.
_ADDRESS_PART = re.compile(
    r"""://|[@'"`]|\A\W*(jdbc:)?postgres(ql)?:|pass(word|wd)?\s*=|\A[\s=]*(//)?[\w.+-]+:""", re.IGNORECASE
)

_ADDRESS_ADVICE = (
    "Example: postgresql://me@host/history, without quotes. A path with such characters must start with / or ./, "
    "and its folder must exist."
)

#: The parts of a DSN that are printed, with the patterns of plain values. Other values may contain a password.
_PRINTED_PARTS = {"host": r"@?[\w.,:/-]+", "port": r"[\d,]+", "dbname": r"[\w.-]+"}

#: Time limits for a PostgreSQL server that doesn't respond. libpq sends keepalives after 20 s and then every 5 s. It
#: gives up after three keepalives, or if sent data isn't acknowledged for 35 s. Without these limits, a command would
#: wait for hours if the server's machine was switched off.
_TIMEOUTS = {"keepalives_idle": 20, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 35_000}

_FILE_ADVICE = "Set HARNESS_HISTORY to another file."

#: The number of the PostgreSQL advisory lock that a writer holds. It is arbitrary; other programs hardly use it.
_LOCK_NUMBER = 1213158227

Row = tuple[Any, ...]


class Database(Protocol):
    """A database that executes SQL statements. Statements have `%s` for each value."""

    #: The name for messages: a path, or the host, the port and the database of a DSN.
    name: str

    #: Whether missing tables can be created.
    may_create: bool

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Execute a statement, and return its rows."""
        ...

    def do(self, statement: str, values: Sequence[object] = ()) -> None:
        """Execute a statement that returns no rows."""
        ...

    def append(self, kind: str, document: object) -> None:
        """Store a JSON value of a kind permanently, unless the same value exists."""
        ...

    def kept(self, kind: str) -> list[Any]:
        """Return the stored JSON values of a kind, in the order in which they were added."""
        ...

    def keep(self) -> None:
        """Commit the changes so far."""
        ...

    def close(self, *, done: bool) -> None:
        """Commit the changes (`done`) or roll them back, and close the database."""
        ...


def find_location(named: str | None = None) -> str:
    """Return the location of the history: `named`, HARNESS_HISTORY, or history.duckdb in the user's data folder.

    Raises UsageError, without a part of the text, for a text that is probably an invalid address.
    """
    place = named or os.environ.get("HARNESS_HISTORY")
    if place and _ADDRESS_PART.search(place) and not _DSN.match(place) and not _is_path(place):
        raise UsageError("HARNESS_HISTORY is neither a valid PostgreSQL DSN nor the path of a file.", _ADDRESS_ADVICE)
    return place or str(get_data_dir() / "history.duckdb")


def _is_path(place: str) -> bool:
    """Return whether a text that resembles an address is the path of a file, and only its folder has such a name."""
    folder, name = os.path.split(place)
    # methods of Path raise an OSError with the text if it is too long for a path
    is_in_folder = os.path.isdir(folder) and not _ADDRESS_PART.search(name)  # noqa: PTH112
    return re.match(r"\.{0,2}/(?!/)", place) is not None and (os.path.exists(place) or is_in_folder)  # noqa: PTH110


def connect(place: str, *, writing: bool, fresh: bool, told: Callable[[str], object]) -> Database:
    """Open the database at a path or a DSN.

    If another process is writing to it, call `told` with a message, and wait up to PATIENCE seconds. With `fresh`,
    everything is rebuilt, and a corrupt file is renamed first. Raises CannotRunHereError if the database stays locked
    or can't be reached, and DamagedError for a corrupt file.
    """
    return (
        _Postgres(place, told, writing=writing or fresh)
        if _DSN.match(place)
        else _DuckDB(Path(place), told, writing=writing, fresh=fresh)
    )


class _DuckDB:
    """A DuckDB file. Notes and decisions are in separate files next to it, to which lines are only appended."""

    def __init__(self, path: Path, report: Callable[[str], object], *, writing: bool, fresh: bool) -> None:
        try:
            import duckdb
        except ImportError:
            raise CannotRunHereError(
                "The history needs DuckDB, which is not installed.",
                "Install it into the environment of harness: python -m pip install duckdb",
            ) from None
        # at exit, DuckDB prints a warning about its remaining objects, including objects that `store.folder` froze
        atexit.register(gc.unfreeze)
        self.name = str(path)
        self._path = path
        # for a reader, a missing file is an empty database in memory, and no file is created
        self.may_create = writing or fresh or not path.exists()
        try:
            is_empty = self.may_create and not (writing or fresh)
            self._connection = duckdb.connect(":memory:") if is_empty else self._open_file(report)
        except DamagedError:
            if not fresh:
                raise
            kept = path.replace(path.with_name(f"{path.name}.damaged"))
            report(f"The old file was kept as {kept}.")
            self._connection = self._open_file(report)
        if self.may_create:
            self._connection.execute("BEGIN")
        # if the process ends within the `with` block of another thread or of a generator, `close` isn't called, and
        # DuckDB would print a warning about leaks
        self._is_open = True
        atexit.register(self._roll_back_and_close)

    def _roll_back_and_close(self) -> None:
        """Roll back uncommitted changes, and close the file."""
        atexit.unregister(self._roll_back_and_close)
        self._is_open = False
        self._connection.close()
        del self._connection

    def _open_file(self, report: Callable[[str], object]) -> Any:
        import duckdb

        connections: list[Any] = []

        def find_holder() -> str:
            """Open the file. Return an empty text on success, otherwise the process that has it open."""
            try:
                make_folder(self._path.parent)
                if self.may_create and not self._path.exists():
                    # DuckDB writes page by page. So after a full disk or `kill -9`, it couldn't open the file again
                    with create_file(self._path) as part:
                        duckdb.connect(str(part.absolute())).close()
                # DuckDB takes the start of `a:b` for the name of an extension
                connections.append(duckdb.connect(str(self._path.absolute()), read_only=not self.may_create))
            except duckdb.IOException as error:
                match = re.search(r"lock is held in (\S+) \(PID (\d+)", str(error))
                if "set lock on file" in str(error):
                    return f"process {match[2]} ({Path(match[1]).name})" if match else "another process"
                if "valid DuckDB database" in str(error):
                    raise _make_damaged_error(self._path, "it isn't a DuckDB database") from None
                problem = f"The history {self._path} cannot be opened: {_get_first_line(error)}"
                raise CannotRunHereError(problem, _suggest_advice(error) or _FILE_ADVICE) from None
            except OSError as error:
                raise CannotRunHereError(
                    f"The history {self._path} cannot be written: {error.strerror}.", _FILE_ADVICE
                ) from None
            except duckdb.Error as error:
                raise _make_damaged_error(self._path, f"DuckDB reports: {_get_first_line(error)}") from None
            return ""

        _wait_for_lock(self.name, find_holder, report)
        return connections[0]

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        with self._translate_errors():
            rows: list[Row] = self._connection.execute(statement.replace("%s", "?"), list(values)).fetchall()
        return rows

    def do(self, statement: str, values: Sequence[object] = ()) -> None:
        with self._translate_errors():
            self._connection.execute(statement.replace("%s", "?"), list(values))

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            problem = f"The history {self.name} cannot be used. DuckDB reports: {_get_first_line(error)}"
            raise CannotRunHereError(problem, _suggest_advice(error)) from None

    def _get_path(self, kind: str) -> Path:
        return self._path.with_name(f"{self._path.stem}.{kind}.jsonl")

    def append(self, kind: str, document: object) -> None:
        if document in self.kept(kind):
            return
        path = self._get_path(kind)
        try:
            make_folder(path.parent)
            append(path, json.dumps(document).encode())
        except OSError as error:
            raise CannotRunHereError(
                f"{path} cannot be written: {error.strerror}.", f"{suggest_remedy(error)}, then run the command again."
            ) from None

    def kept(self, kind: str) -> list[Any]:
        return read_lines(self._get_path(kind))

    def keep(self) -> None:
        with self._translate_errors():
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN")

    def close(self, *, done: bool) -> None:
        if not self._is_open:  # the process is ending
            return
        try:
            if self.may_create and done:
                with self._translate_errors():
                    self._connection.execute("COMMIT")
        finally:
            self._roll_back_and_close()


class _Postgres:
    """A PostgreSQL database. Notes and decisions are in one of its tables."""

    may_create = True

    def __init__(self, dsn: str, report: Callable[[str], object], *, writing: bool) -> None:
        try:
            import psycopg
        except ImportError:
            raise CannotRunHereError(
                "A history in PostgreSQL needs psycopg, which is not installed.",
                "Install it into the environment of harness: python -m pip install 'psycopg[binary]'",
            ) from None
        from psycopg import conninfo

        # libpq accepts only lower-case schemes
        dsn = re.sub(r"^\s*postgres(ql)?(?=://)", "postgresql", dsn, flags=re.IGNORECASE)
        try:
            parameters = {key: str(value) for key, value in conninfo.conninfo_to_dict(dsn).items()}
        except psycopg.ProgrammingError:
            raise UsageError(
                "HARNESS_HISTORY looks like a PostgreSQL DSN, but it isn't a valid one.",
                _ADDRESS_ADVICE,
            ) from None
        printed_parts = {key: parameters[key] for key in _PRINTED_PARTS if key in parameters}
        is_plain = all(re.fullmatch(_PRINTED_PARTS[key], value) for key, value in printed_parts.items())
        self.name = (conninfo.make_conninfo("", **printed_parts) if is_plain else "") or "a DSN"
        secrets = [value for key, value in parameters.items() if value and not (is_plain and key in printed_parts)]
        self._secrets = sorted(secrets, key=len, reverse=True)
        try:
            timeouts: dict[str, Any] = {key: value for key, value in _TIMEOUTS.items() if key not in parameters}
            self._connection = psycopg.connect(dsn, connect_timeout=10, **timeouts)
        except psycopg.Error as error:
            raise CannotRunHereError(
                f"The history in PostgreSQL ({self.name}) cannot be reached: {self._remove_secrets(error)}",
                "Start the server, or set HARNESS_HISTORY to another history.",
            ) from None
        if not writing:
            # with this level, all queries see one snapshot
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            tables = self.rows("SELECT to_regclass('version'), to_regclass('kept')")
            if writing or tables != [("version", "kept")]:
                _wait_for_lock(self.name, self._find_holder, report)
                self.do(
                    "CREATE TABLE IF NOT EXISTS kept (number BIGSERIAL PRIMARY KEY, kind TEXT NOT NULL, "
                    "document TEXT NOT NULL, UNIQUE (kind, document))"
                )
        except BaseException:
            self._connection.close()
            raise

    def _remove_secrets(self, error: Exception) -> str:
        """Return the error message of libpq or the server, without the secret parts of the DSN."""
        text = _get_first_line(error)
        for secret in self._secrets:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
        return text

    def _find_holder(self) -> str:
        """Try to become the only writer. Return an empty text on success, otherwise the current writer."""
        if self.rows("SELECT pg_try_advisory_lock(%s)", (_LOCK_NUMBER,)) == [(True,)]:
            return ""
        holders = self.rows(
            "SELECT a.pid, coalesce(host(a.client_addr), 'its own machine') FROM pg_locks l "
            "JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND l.objid = %s "
            "AND a.datname = current_database()",
            (_LOCK_NUMBER,),
        )
        return (
            f"the server's process {holders[0][0]}, for a client on {holders[0][1]}" if holders else "another process"
        )

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        with self._translate_errors():
            return self._connection.execute(statement.encode(), values).fetchall()

    def do(self, statement: str, values: Sequence[object] = ()) -> None:
        with self._translate_errors():
            self._connection.execute(statement.encode(), values)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            text = self._remove_secrets(error)
            if self._connection.closed:
                raise CannotRunHereError(
                    f"The connection to the history in PostgreSQL ({self.name}) ended: {text}",
                    "Start the server, then run the command again. Nothing is saved twice.",
                ) from None
            raise CannotRunHereError(f"PostgreSQL reports an error for the history {self.name}: {text}") from None

    def append(self, kind: str, document: object) -> None:
        self.do(
            "INSERT INTO kept (kind, document) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (kind, json.dumps(document)),
        )

    def kept(self, kind: str) -> list[Any]:
        documents = self.rows("SELECT document FROM kept WHERE kind = %s ORDER BY number", (kind,))
        return [json.loads(document) for (document,) in documents]

    def keep(self) -> None:
        with self._translate_errors():
            self._connection.commit()

    def close(self, *, done: bool) -> None:
        try:
            if done:
                self.keep()
        finally:
            self._connection.close()


def _wait_for_lock(name: str, find_holder: Callable[[], str], report: Callable[[str], object]) -> None:
    """Wait until no other process holds the history. `find_holder` returns the holder, or an empty text.

    Raises CannotRunHereError, which names the holder, after PATIENCE seconds.
    """
    deadline, has_reported = time.monotonic() + PATIENCE, False
    while holder := find_holder():
        if time.monotonic() > deadline:
            raise CannotRunHereError(
                f"The history {name} is still in use by {holder}, after {PATIENCE:.0f} s.",
                "Wait until that process ends, then run the command again.",
            )
        if not has_reported:
            report(f"The history {name} is in use by {holder}. Waiting for at most {PATIENCE:.0f} s.")
        has_reported = True
        time.sleep(_POLL_SECONDS)


def _make_damaged_error(path: Path, reason: str) -> DamagedError:
    error = DamagedError(path, reason)
    error.advice = "The history is only an index. To rebuild it: harness history rebuild"
    return error


def read_lines(path: Path) -> list[Any]:
    """Return the JSON values in the lines of a file; empty if it doesn't exist. Blank lines are skipped.

    Raises UsageError if the file can't be read, and DamagedError for a line that isn't JSON.
    """
    try:
        text = read_text(path) if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', 'it is not UTF-8')}.") from None
    values = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                values.append(parse_json(line))
            except ValueError:
                raise DamagedError(f"{path}, line {number},", "it isn't valid JSON") from None
    return values


def _suggest_advice(error: Exception) -> str:
    return "Free disk space, then run the command again." if os.strerror(errno.ENOSPC) in str(error) else ""


def _get_first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]

"""The index of a history: queries over many runs. It can be rebuilt from run folders or summaries.

Notes and decisions can't be rebuilt, so they are stored separately and remain if the index is deleted.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, TypeVar

from harness.history.database import Database, Row, connect, find_location
from harness.history.summary import convert_to_utc
from harness.model.environment import Device, name_on
from harness.model.errors import DamagedError, UsageError
from harness.model.history import (
    CellPoint,
    Decision,
    HistoryEntry,
    Key,
    Note,
    Origin,
    Pairs,
    Series,
    SeriesPoint,
    Summary,
)
from harness.model.launch import Status
from harness.model.scenario import DEVICE
from harness.store import codec
from harness.store.folder import pause_garbage_collection

Record = TypeVar("Record", Note, Decision)

#: The version of the tables below. An index of another version must be rebuilt.
VERSION = 2

_TABLES = (
    "CREATE TABLE version (number INTEGER PRIMARY KEY)",
    "CREATE TABLE runs (run TEXT PRIMARY KEY, started TEXT NOT NULL, harness TEXT NOT NULL, "
    "commit_ TEXT NOT NULL, kit TEXT NOT NULL, points INTEGER NOT NULL, merged TEXT NOT NULL, "
    "summary TEXT NOT NULL)",
    "CREATE TABLE series (id BIGINT PRIMARY KEY, machine TEXT NOT NULL, scenario TEXT NOT NULL, "
    "device TEXT NOT NULL, axes TEXT NOT NULL, environment TEXT NOT NULL, reference TEXT NOT NULL, "
    "against TEXT NOT NULL, way TEXT NOT NULL, quantity TEXT NOT NULL)",
    "CREATE TABLE points (series BIGINT NOT NULL, run TEXT NOT NULL, place INTEGER NOT NULL, "
    "ratio DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION, rounds INTEGER NOT NULL, "
    "seconds DOUBLE PRECISION, seconds_low DOUBLE PRECISION, seconds_high DOUBLE PRECISION, status TEXT NOT NULL, "
    "machine TEXT NOT NULL, driver TEXT NOT NULL, scenario TEXT NOT NULL, lock TEXT NOT NULL, image TEXT NOT NULL, "
    "reference_lock TEXT NOT NULL, version TEXT NOT NULL DEFAULT '', reference_version TEXT NOT NULL DEFAULT '', "
    "reason TEXT NOT NULL DEFAULT '', PRIMARY KEY (series, run))",
)

#: The columns of the table `points` that version 1 of the tables doesn't have.
_ADDED_COLUMNS = ("version", "reference_version", "reason")


#: The columns of a point after its place: numbers, and texts that many points share.
_NUMBER_COLUMNS = ("ratio", "low", "high", "rounds", "seconds", "seconds_low", "seconds_high")
_TEXT_COLUMNS = ("status", "machine", "driver", "scenario", "lock", "image", "reference_lock", *_ADDED_COLUMNS)

#: Queries that number the distinct texts of points, and the runs in the order of their starts.
_TEXT_QUERY = (
    f"SELECT row_number() OVER (ORDER BY {', '.join(_TEXT_COLUMNS)}) AS number, {', '.join(_TEXT_COLUMNS)} "
    f"FROM (SELECT DISTINCT {', '.join(_TEXT_COLUMNS)} FROM points {{where}}) AS shared"
)
_RUN_QUERY = "SELECT row_number() OVER (ORDER BY started, run) AS number, run, started, kit, harness, commit_ FROM runs"

#: A query for the points, with these numbers instead of texts, so that the texts aren't repeated for each point.
_POINT_QUERY = (
    f"SELECT p.series, r.number, t.number, {', '.join(f'p.{name}' for name in _NUMBER_COLUMNS)} "
    f"FROM (SELECT * FROM points {{where}}) p JOIN ({_RUN_QUERY}) r ON r.run = p.run "
    f"JOIN ({_TEXT_QUERY}) t ON {' AND '.join(f't.{name} = p.{name}' for name in _TEXT_COLUMNS)} ORDER BY r.number"
)

_COLUMN_TYPES = (
    ("series", "bigint"),
    ("run", "text"),
    ("place", "integer"),
    *((name, "integer" if name == "rounds" else "double precision") for name in _NUMBER_COLUMNS),
    *((name, "text") for name in _TEXT_COLUMNS),
)


class History:
    """The runs of a history, and their time series. To get one, use `open`. Notes and decisions can always be added."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    @contextmanager
    def open(
        cls,
        where: str | None = None,
        *,
        writing: bool = False,
        fresh: bool = False,
        told: Callable[[str], object] = lambda sentence: None,
    ) -> Iterator["History"]:
        """Open the history at a path or a DSN. The default is HARNESS_HISTORY, or the user's own file.

        - `writing`: whether runs will be added; `fresh`: whether the index will be rebuilt
        - `told` receives a message if `open` must wait for another writer

        Changes are saved at the end of the block, and dropped if it raises an error. Raises CannotRunHereError if
        another writer doesn't finish, or if the database can't be reached. Raises UsageError for an index of another
        version of harness, and for a corrupt one.
        """
        database = connect(find_location(where), writing=writing, fresh=fresh, told=told)
        is_done = False
        try:
            _prepare(database, fresh=fresh)
            yield cls(database)
            is_done = True
        finally:
            database.close(done=is_done)

    @property
    def name(self) -> str:
        """The location: a path, or the host, the port and the database of a DSN."""
        return self._database.name

    def clear(self) -> None:
        """Remove all runs. Notes and decisions stay."""
        _drop_tables(self._database)
        _create_tables(self._database)

    def add(self, summary: Summary) -> bool:
        """Add a run. Return False if the history already has it."""
        return bool(self.add_all([summary]))

    def add_all(self, summaries: Iterable[Summary]) -> list[str]:
        """Add runs. Return the ids of the new ones.

        No result counts twice: a merged run is skipped if the history has one of its parts, and a part is skipped if
        the history has the merged run.
        """
        rows = self._database.rows("SELECT run, merged FROM runs")
        known_runs = {run for run, _ in rows}
        known_runs |= {part for _, merged in rows if merged != "[]" for part in json.loads(merged)}
        new_summaries: dict[str, Summary] = {}
        # merged runs first
        for candidate in sorted(summaries, key=lambda entry: not entry.merged):
            if candidate.run not in known_runs and not known_runs.intersection(candidate.merged):
                new_summaries[candidate.run] = candidate
                known_runs.update([candidate.run, *candidate.merged])
        if not new_summaries:
            return []
        runs = [
            (*_make_run_row(entry), len(entry.points), json.dumps(list(entry.merged)), _dump_summary(entry))
            for entry in new_summaries.values()
        ]
        types = ("text", "text", "text", "text", "text", "integer", "text", "text")
        self._insert("runs (run, started, harness, commit_, kit, points, merged, summary)", types, runs)
        keys: dict[int, Row] = {}
        points: list[Row] = []
        for summary in new_summaries.values():
            drivers = {measurer.machine.id: (measurer.machine.name, measurer.driver) for measurer in summary.machines}
            for nth, point in enumerate(summary.points):
                row = _make_key_row(point, summary.way)
                number = _hash_key(row)
                keys[number] = row
                points.append((number, summary.run, nth, *_make_point_row(point, summary, *drivers[point.machine])))
        self._insert(
            "series (id, machine, scenario, device, axes, environment, reference, against, way, quantity)",
            ("bigint", *["text"] * 9),
            [(number, *row) for number, row in keys.items()],
        )
        columns = ", ".join(name for name, _ in _COLUMN_TYPES)
        self._insert(f"points ({columns})", [kind for _, kind in _COLUMN_TYPES], points)
        return list(new_summaries)

    def _insert(self, target: str, types: Sequence[str], rows: Sequence[Row]) -> None:
        if rows:
            lists = ", ".join(f"unnest(%s::{kind}[])" for kind in types)
            columns = [list(column) for column in zip(*rows, strict=True)]
            self._database.do(f"INSERT INTO {target} SELECT {lists} ON CONFLICT DO NOTHING", columns)

    def runs(self) -> list[HistoryEntry]:
        """Return the runs, in the order of their starts."""
        rows = self._database.rows("SELECT summary, points FROM runs ORDER BY started, run")
        results = self._database.rows(
            "SELECT DISTINCT p.run, s.machine FROM points p JOIN series s ON s.id = p.series WHERE p.status = %s",
            [Status.OK.value],
        )
        with_result = {(run, machine) for run, machine in results}
        entries = []
        for text, points in rows:
            summary = _load_summary(text)
            machines = [measurer.machine for measurer in summary.machines]
            entries.append(
                HistoryEntry(
                    *(summary.run, convert_to_utc(summary.started), machines, summary.suite, summary.reference, points),
                    failed=[machine.id for machine in machines if (summary.run, machine.id) not in with_result],
                )
            )
        return entries

    def summaries(self) -> Iterator[Summary]:
        """Yield the summary of every run as it was added, in the order of their starts."""
        # in the order of the fields of CellPoint
        statement = (
            "SELECT p.run, s.machine, s.scenario, s.device, s.axes, s.environment, p.status, s.reference, s.against, "
            "s.quantity, p.ratio, p.low, p.high, p.rounds, p.seconds, p.seconds_low, p.seconds_high, p.reason "
            "FROM points p JOIN series s ON s.id = p.series ORDER BY p.run, p.place"
        )
        points: dict[str, list[CellPoint]] = {}
        rows = self._database.rows(statement)
        for run, machine, scenario, device, axes, environment, status, reference, against, *rest in rows:
            side, other = dict(json.loads(axes)), dict(json.loads(against))  # stored as pairs
            point = CellPoint(machine, scenario, device, side, environment, Status(status), reference, other, *rest)
            points.setdefault(run, []).append(point)
        for run, text in self._database.rows("SELECT run, summary FROM runs ORDER BY started, run"):
            yield replace(_load_summary(text), points=points.get(run, ()))

    def summary(self, run: str) -> Summary | None:
        """Return the stored summary of a run without its points; None if the run isn't in the history."""
        rows = self._database.rows("SELECT summary FROM runs WHERE run = %s", (run,))
        return _load_summary(rows[0][0]) if rows else None

    def series(
        self,
        scenario: Sequence[str] = (),
        environment: Sequence[str] = (),
        axes: Mapping[str, Sequence[str]] | None = None,
        only: Collection[Key] | None = None,
    ) -> list[Series]:
        """Return the series that match globs of scenarios, environments and axis values. Without globs, all match.

        `only` are the keys of the series to load, by default all, because a year of many series takes a second.
        Series are in the order of their keys, and points in the order in which their runs started.
        """
        statement = (
            "SELECT id, machine, scenario, device, axes, environment, reference, against, way, quantity FROM series"
        )
        keys = {number: _make_key(row) for number, *row in self._database.rows(statement)}
        selected_keys = {
            number: key
            for number, key in keys.items()
            if (only is None or key in only) and _matches(key, scenario, environment, axes or {})
        }
        condition = "" if len(selected_keys) == len(keys) else "WHERE series IN (SELECT unnest(%s::bigint[]))"
        values = [list(selected_keys)] if condition else []
        texts = {number: row for number, *row in self._database.rows(_TEXT_QUERY.format(where=condition), values)}
        # the status, the origin and the reason of points, by the facts of their runs and the number of their texts
        shared_facts: dict[Row, dict[int, Row]] = {}
        runs = {
            number: (run, started, tuple(facts), shared_facts.setdefault(tuple(facts), {}))
            for number, run, started, *facts in self._database.rows(_RUN_QUERY)
        }
        points: dict[int, list[SeriesPoint]] = {number: [] for number in selected_keys}
        with pause_garbage_collection():
            point_rows = self._database.rows(_POINT_QUERY.format(where=condition), values * 2)
            for number, run_number, text_number, *numbers in point_rows:
                run, started, run_facts, by_text = runs[run_number]
                if text_number not in by_text:
                    by_text[text_number] = _make_point_facts(texts[text_number], run_facts)
                points[number].append(SeriesPoint._make((run, started, *numbers, *by_text[text_number])))
        return [Series(key, points[number]) for number, key in sorted(selected_keys.items(), key=lambda item: item[1])]

    def notes(self) -> list[Note]:
        """Return the notes, sorted by time."""
        notes = (parse_note(document, "A note in the history") for document in self._database.kept("notes"))
        return sorted(notes, key=lambda note: note.when)

    def note(self, when: str, text: str) -> None:
        """Add a note to a time (ISO 8601), unless the same note exists."""
        self._database.append("notes", asdict(Note(when, text)))

    def decisions(self) -> list[Decision]:
        """Return the results of confirmations, in the order in which they were added."""
        return [parse_decision(document, "A decision in the history") for document in self._database.kept("decisions")]

    def decide(self, decision: Decision) -> None:
        """Add the result of a confirmation."""
        self._database.append("decisions", json.loads(json.dumps(asdict(decision))))


def _prepare(database: Database, *, fresh: bool) -> None:
    """Create missing tables, or with `fresh` all tables. Raises UsageError if the tables have another version."""
    if fresh:
        _drop_tables(database)
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    table_names = {name for (name,) in database.rows(tables)}
    if "version" not in table_names and database.may_create:
        _create_tables(database)
        if not fresh:
            database.keep()
        return
    if "version" in table_names and database.may_create and database.rows("SELECT number FROM version") == [(1,)]:
        for name in _ADDED_COLUMNS:
            database.do(f"ALTER TABLE points ADD COLUMN {name} TEXT DEFAULT ''")
        database.do("UPDATE version SET number = %s", (VERSION,))
        database.keep()
    if "version" not in table_names or database.rows("SELECT number FROM version") != [(VERSION,)]:
        raise UsageError(
            f"The history {database.name} was created by another version of harness.",
            "The history is only an index. To update it: harness history add --all. To rebuild it: harness history "
            "rebuild",
        )


def _drop_tables(database: Database) -> None:
    for table in ("points", "series", "runs", "version"):
        database.do(f"DROP TABLE IF EXISTS {table}")


def _create_tables(database: Database) -> None:
    for statement in _TABLES:
        database.do(statement)
    database.do("INSERT INTO version (number) VALUES (%s)", (VERSION,))


def parse_note(document: object, where: object) -> Note:
    """Return a note from its JSON value. Raises DamagedError, which contains `where`, the source of the value."""
    return _parse_document(Note, document, where)


def parse_decision(document: object, where: object) -> Decision:
    """Return a decision from its JSON value. Raises DamagedError, which contains `where`, the source of the value."""
    return _parse_document(Decision, document, where)


def _parse_document(kind: type[Record], document: object, source: object) -> Record:
    from pydantic import ValidationError

    try:
        value: Record = _make_adapters()[kind].validate_python(document)
    except ValidationError as error:
        first_error = error.errors(include_url=False)[0]
        raise DamagedError(source, f"{'.'.join(map(str, first_error['loc']))}: {first_error['msg']}") from None
    return value


@cache
def _make_adapters() -> Mapping[type, Any]:
    """Return the parsers by type. They are cached, because creating them takes as long as parsing many values."""
    from pydantic import TypeAdapter

    return {kind: TypeAdapter(kind) for kind in (Note, Decision)}


def _dump_summary(summary: Summary) -> str:
    return codec.dump(replace(summary, points=())).decode()


def _make_run_row(summary: Summary) -> Row:
    return summary.run, convert_to_utc(summary.started), summary.harness, summary.commit, summary.kit


def _make_point_facts(texts: Sequence[Any], run_facts: Row) -> Row:
    """Return the status, the origin and the reason of a point, from its texts and the facts of its run."""
    (status, machine, driver, file, lock, image, reference_lock, *versions, reason), (kit, harness, commit) = (
        texts,
        run_facts,
    )
    origin = Origin(driver, kit, file, lock, image, reference_lock, machine, harness, commit, *versions)
    return status, origin, reason


def _load_summary(text: str) -> Summary:
    return codec.load(Summary, text.encode(), "a run of the history")


def _dump_pairs(axes: Mapping[str, str]) -> str:
    return json.dumps(sorted(axes.items()))


def _make_key_row(point: CellPoint, way: str) -> Row:
    """Return the key of a point as columns of the table `series`."""
    texts = (point.machine, point.scenario, point.device, _dump_pairs(point.axes), point.environment, point.reference)
    return (*texts, _dump_pairs(point.against), way, point.quantity)


def _hash_key(row: Row) -> int:
    """Return a number for a key that is the same in every index: 60 bits of the key's SHA-256."""
    return int(hashlib.sha256(json.dumps(row).encode()).hexdigest()[:15], 16)


def _make_key(row: Sequence[str]) -> Key:
    machine, scenario, device, axes, environment, reference, against, way, quantity = row
    return Key(
        machine, scenario, device, _load_pairs(axes), environment, reference, _load_pairs(against), way, quantity
    )


def _load_pairs(pairs: str) -> Pairs:
    return tuple((axis, value) for axis, value in json.loads(pairs))


def _make_point_row(point: CellPoint, summary: Summary, machine: str, driver: str) -> Row:
    """Return the columns of the table `points` after `place`."""
    numbers = (point.ratio, point.low, point.high, point.rounds)
    seconds = (point.seconds, point.seconds_low, point.seconds_high, point.status.value)
    all_software, scenario = summary.software, summary.scenarios.get(point.scenario)
    software = all_software.get(name_on(point.environment, point.device, all_software))
    reference = all_software.get(name_on(point.reference, point.against.get(DEVICE, point.device), all_software))
    driver = driver if point.device == Device.GPU else ""
    texts = (scenario.hash if scenario else "", *((software.lock, software.image) if software else ("", "")))
    reference_facts = (reference.lock, reference.version) if reference else ("", "")
    versions = software.version if software else "", reference_facts[1]
    return (*numbers, *seconds, machine, driver, *texts, reference_facts[0], *versions, point.reason)


def _matches(key: Key, scenario: Sequence[str], environment: Sequence[str], axes: Mapping[str, Sequence[str]]) -> bool:
    values = dict(key.axes)
    filters = [(key.scenario, scenario), (key.environment, environment)]
    filters += [(values.get(axis, ""), globs) for axis, globs in axes.items()]
    return all(not globs or any(fnmatchcase(value, glob) for glob in globs) for value, globs in filters)

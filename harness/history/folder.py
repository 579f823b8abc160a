"""The folder of a history: one JSON file for each recorded run, note and confirmation.

    2026-11/RUN.json           the summary of a run (`harness.history.summary`)
    notes/DATE-HASH.json       a note
    decisions/RUN-HASH.json    the result of a confirmation

No file depends on another one, and each is written at once. So two histories are merged by copying their files, and a
history can be on a file share, on a git branch, or in an artifact of CI.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from harness.files import get_data_dir, make_folder, read, suggest_remedy, write_atomically
from harness.history.series import convert_to_utc, make_series
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from harness.model.history import Decision, HistoryEntry, Key, Note, Series, Summary
from harness.model.texts import counted
from harness.store import codec
from harness.store.folder import pause_garbage_collection

Record = TypeVar("Record", Summary, Note, Decision)

#: The files of each kind, relative to the folder.
_FILES = {Summary: "[0-9][0-9][0-9][0-9]-[0-9][0-9]/*.json", Note: "notes/*.json", Decision: "decisions/*.json"}

#: The pattern of ids of runs and machines. A run's id becomes a file name.
_VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

#: The largest number of files that a message names.
_MOST_NAMED = 5


class History:
    """The runs of a history and their time series, its notes, and the results of confirmations.

    A file that is damaged, or that isn't part of a history, is skipped. `report` receives a sentence that names it, and
    `left_out` contains its path.
    """

    def __init__(self, path: Path, report: Callable[[str], object] = lambda sentence: None) -> None:
        """Use a folder, which is created when the first file is added to it."""
        self.path = path
        self.left_out: list[Path] = []
        self._report = report

    @classmethod
    def open(cls, report: Callable[[str], object] = lambda sentence: None) -> "History":
        """Return the history in the folder HARNESS_HISTORY. The default is `history` in the user's data folder.

        Raises UsageError for a file.
        """
        place = os.environ.get("HARNESS_HISTORY")
        path = Path(place) if place else get_data_dir() / "history"
        if path.exists() and not path.is_dir():
            raise UsageError(f"HARNESS_HISTORY is the file {path}, but a history is a folder.", "Set it to a folder.")
        return cls(path, report)

    @cached_property
    def _runs(self) -> "_UniqueRuns":
        runs = _UniqueRuns()
        with pause_garbage_collection():
            # merged runs first
            for summary in sorted(self._read(Summary), key=lambda summary: -len(summary.merged)):
                runs.add(summary)
        return runs

    def add(self, summary: Summary) -> bool:
        """Record a run. Return False if the history already has its results, in this run, its parts or a merged run."""
        if not self._runs.add(summary):
            return False
        self._write(f"{convert_to_utc(summary.started)[:7]}/{summary.run}.json", summary)
        return True

    def summaries(self) -> list[Summary]:
        """Return the summaries of the runs, in the order of their starts. No result is in two of them."""
        return sorted(self._runs.by_id.values(), key=lambda summary: (convert_to_utc(summary.started), summary.run))

    def summary(self, run: str) -> Summary | None:
        """Return the summary of a run; None if the run isn't in the history."""
        return self._runs.by_id.get(run)

    def runs(self) -> list[HistoryEntry]:
        """Return the runs, in the order of their starts."""
        return [
            HistoryEntry(
                summary.run,
                convert_to_utc(summary.started),
                [measurer.machine for measurer in summary.machines],
                summary.suite,
                summary.reference,
                len(summary.points),
            )
            for summary in self.summaries()
        ]

    def series(
        self,
        scenario: Sequence[str] = (),
        environment: Sequence[str] = (),
        axes: Mapping[str, Sequence[str]] | None = None,
        only: Collection[Key] | None = None,
    ) -> list[Series]:
        """Return the series that match globs of scenarios, environments and axis values, and whose key is in `only`.

        By default, all match. Series are in the order of their keys, and points in the order in which their runs
        started.
        """
        return make_series(self.summaries(), scenario, environment, axes or {}, only)

    def notes(self) -> list[Note]:
        """Return the notes, sorted by time."""
        return sorted(self._read(Note), key=lambda note: note.when)

    def note(self, when: str, text: str) -> None:
        """Add a note to a time (ISO 8601), unless the same note exists."""
        self._write(f"notes/{when[:10]}-{_hash([when, text])}.json", Note(when, text))

    def decisions(self) -> list[Decision]:
        """Return the results of confirmations, sorted by time."""
        return sorted(self._read(Decision), key=lambda decision: convert_to_utc(decision.when))

    def decide(self, decision: Decision) -> None:
        """Add the result of a confirmation. It replaces an earlier result of the same run about the same change."""
        change = [asdict(decision.key), decision.since]
        self._write(f"decisions/{decision.run}-{_hash(change)}.json", decision)

    def _read(self, kind: type[Record]) -> list[Record]:
        values, problems = [], []
        for path in sorted(self.path.glob(_FILES[kind])):
            try:
                value = codec.load(kind, read(path), path)
                _check(value, path)
                values.append(value)
            except (OSError, UsageError) as error:
                self.left_out.append(path)
                problems.append(
                    f"{path} cannot be read: {error.strerror}." if isinstance(error, OSError) else error.message
                )
        if problems:
            rest = f" And {len(problems) - _MOST_NAMED:,} more." if len(problems) > _MOST_NAMED else ""
            listing = " ".join(problems[:_MOST_NAMED])
            self._report(f"{counted(len(problems), 'file')} of the history left out: {listing}{rest}")
        return values

    def _write(self, name: str, value: Summary | Note | Decision) -> None:
        path = self.path / name
        try:
            make_folder(path.parent)
            write_atomically(path, codec.dump(value) + b"\n")
        except OSError as error:
            raise CannotRunHereError(
                f"{path} cannot be written: {error.strerror}.", f"{suggest_remedy(error)}, then run the command again."
            ) from None


class _UniqueRuns:
    """Runs by id, none of which has a result of another one: the parts of a merged run, or the merged run."""

    def __init__(self) -> None:
        self.by_id: dict[str, Summary] = {}
        self._known_ids: set[str] = set()

    def add(self, summary: Summary) -> bool:
        """Add a run. Return False if a run has its results already."""
        ids = {summary.run, *summary.merged}
        if not self._known_ids.isdisjoint(ids):
            return False
        self._known_ids |= ids
        self.by_id[summary.run] = summary
        return True


def _check(value: Summary | Note | Decision, path: Path) -> None:
    """Raise DamagedError if an id, a time or a machine is invalid."""
    when = value.started if isinstance(value, Summary) else value.when
    try:
        convert_to_utc(when)
    except (ValueError, OverflowError):
        raise DamagedError(path, f"{when[:100]!r} isn't a valid time") from None
    if isinstance(value, Summary):
        machines = {measurer.machine.id for measurer in value.machines}
        for name, ids in (("run", {value.run}), ("machine", machines)):
            for identity in ids:
                if not _VALID_ID.fullmatch(identity):
                    raise DamagedError(path, f"{identity[:100]!r} isn't a valid {name} id")
        if unknown := {point.machine for point in value.points} - machines:
            raise DamagedError(path, f"a point is from {min(unknown)[:100]!r}, which isn't a machine of the run")


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]

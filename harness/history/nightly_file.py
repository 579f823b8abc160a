"""The configuration of the nightly workflow, `.github/nightly.toml`: runs, machines, and rules for alerts.

`.github/nightly/plan` reads it without installed packages, so this module uses only the standard library.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.model.errors import UsageError
from harness.model.history import Key
from harness.model.texts import find_nearest
from harness.toml import hide_linked_file

#: The default path of the file.
PLACE = Path(".github/nightly.toml")

#: The default time limit of a job. GitHub ends a job after 360 minutes. The remaining minutes are for the upload.
MINUTES = 350

#: The default number of minutes that the results of other machines wait for a machine that hasn't started.
WAIT_MINUTES = 180

#: The largest number of minutes to wait. The job that waits runs on GitHub's machines, which end it after 360 minutes.
MOST_WAIT_MINUTES = 330

#: The largest number of nightly runs on one machine. GitHub keeps only the last of the jobs that wait for a machine.
MOST_RUNS = 2

#: Two dates are about the same change if they differ by at most this much. A later nightly run may find the change
#: some runs earlier or later.
NEAR = timedelta(days=7)

#: The key of the nightly runs in the file.
_RUNS_KEY = "night"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_REGISTRY = re.compile(r"[a-z0-9][a-z0-9._:-]*/([a-z0-9._-]+/)*")


class RuleKind(StrEnum):
    """The scope of a rule: one change (`accept`), or all changes of a series (`mute`)."""

    ACCEPT = "accept"
    MUTE = "mute"


@dataclass(frozen=True, slots=True)
class NightlyMachine:
    """A machine of a nightly run.

    `runs_on` selects its runner on GitHub: a label, a list or an object. `id` is the machine's id, or empty if it isn't
    known. `minutes` is the time limit of its job.
    """

    name: str
    runs_on: str | Sequence[str] | Mapping[str, Any]
    id: str = ""
    minutes: int = MINUTES


@dataclass(frozen=True, slots=True)
class NightlyPlan:
    """A nightly run: its name, the arguments of `harness matrix`, and the machines that share the work."""

    name: str
    arguments: str
    machines: Sequence[NightlyMachine]


@dataclass(frozen=True, slots=True)
class SuppressionRule:
    """A rule that prevents issues about changes until the day `until`, with its reason.

    `series` is a name as in issues and on pages (`step tf2.0 cpu mode=eager`), or a glob. For `accept`, `since` is the
    approximate day when the accepted change started; for `mute`, it is empty.
    """

    kind: RuleKind
    series: str
    reason: str
    until: date
    machine: str = "*"
    since: str = ""

    def applies(self, key: Key, started: str, machine: str, today: date) -> bool:
        """Return whether the rule applies today to a change of this series that started at the time `started`."""
        if self.since and abs(date.fromisoformat(started[:10]) - date.fromisoformat(self.since)) > NEAR:
            return False
        return today <= self.until and self.selects(key, machine)

    def selects(self, key: Key, machine: str) -> bool:
        """Return whether the rule applies to this series."""
        return fnmatchcase(key.cell, self.series) and any(
            fnmatchcase(name, self.machine) for name in (machine, key.machine)
        )


@dataclass(frozen=True, slots=True)
class NightlyFile:
    """The contents of the file. `wait` is `wait-minutes`; `registry` ends with a slash, or is empty."""

    nights: Sequence[NightlyPlan]
    rules: Sequence[SuppressionRule] = ()
    registry: str = ""
    wait: int = WAIT_MINUTES

    @property
    def machines(self) -> list[str]:
        """The names of all machines."""
        return [machine.name for night in self.nights for machine in night.machines]

    def select(self, night: str = "") -> "NightlyFile":
        """Return the file with only the nightly run of this name; without a name, with all runs. Raises UsageError."""
        nights = [plan for plan in self.nights if night in ("", plan.name)]
        if not nights:
            names = ", ".join(plan.name for plan in self.nights)
            raise UsageError(f"Unknown nightly run {night!r}.", f"The nightly runs in the file: {names}.")
        return replace(self, nights=nights)


def read_nightly_file(path: Path = PLACE) -> NightlyFile:
    """Return the contents of the file. Raises UsageError."""
    with hide_linked_file(path):
        return _read_file(path)


def _read_file(path: Path) -> NightlyFile:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"Can't read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(f"{path} isn't valid TOML: {reason}.") from None
    try:
        return _parse_file(_Table(document, "the file"))
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.advice) from None


def _parse_file(table: "_Table") -> NightlyFile:
    table.allow(_RUNS_KEY, "accept", "mute", "registry", "wait-minutes")
    nights = [_parse_plan(entry) for entry in table.tables(_RUNS_KEY)]
    names = [night.name for night in nights]
    if not nights:
        raise UsageError(
            "The file doesn't contain any runs.",
            f'Add a table [[{_RUNS_KEY}]] with name = "cpu", arguments and machines.',
        )
    _refuse_repeated(names, "Two nightly runs have the same name")
    for machine, count in Counter(machine.name for night in nights for machine in night.machines).items():
        if count > MOST_RUNS:
            raise UsageError(
                f"The machine {machine!r} is in {count} nightly runs, but GitHub would cancel all but {MOST_RUNS}.",
                "Measure more scenarios or environments in one run, or use another machine.",
            )
    registry = table.text("registry", "")
    if registry and not _REGISTRY.fullmatch(registry):
        raise UsageError(f"Invalid registry {registry!r}.", 'End it with a slash. Example: registry = "ghcr.io/me/".')
    rules = [_parse_rule(kind, entry) for kind in RuleKind for entry in table.tables(kind.value)]
    wait = table.minutes("wait-minutes", WAIT_MINUTES)
    if wait > MOST_WAIT_MINUTES:
        raise UsageError(
            f"Invalid wait-minutes {wait}: GitHub ends the job that waits.", f"Use at most {MOST_WAIT_MINUTES} minutes."
        )
    return NightlyFile(nights, rules, registry, wait)


def _parse_plan(table: "_Table") -> NightlyPlan:
    table.allow("name", "arguments", "machines")
    name = table.name()
    machines = [_parse_machine(entry) for entry in table.named(f"nightly run {name}").tables("machines")]
    if not machines:
        raise UsageError(
            f"{name} has no machines.", 'Example: machines = [{ name = "hosted", runs-on = "ubuntu-24.04" }]'
        )
    _refuse_repeated([entry.name for entry in machines], f"{table.place} lists a machine twice")
    return NightlyPlan(name, table.text("arguments"), machines)


def _parse_machine(table: "_Table") -> NightlyMachine:
    table.allow("name", "runs-on", "id", "minutes")
    identity = table.text("id", "")
    if identity and not _ID.fullmatch(identity):
        raise UsageError(
            f"Invalid id {identity!r} in {table.place}.", "Use at most 64 letters, digits, `.`, `_` and `-`."
        )
    return NightlyMachine(
        table.name(), _check_runner(table.required("runs-on"), table.place), identity, table.minutes("minutes", MINUTES)
    )


def _check_runner(labels: Any, place: str) -> Any:
    """Return the labels of a runner in one of the forms of GitHub's `runs-on`."""
    is_object = isinstance(labels, dict) and labels and labels.keys() <= {"group", "labels"}
    parts = [*labels.values()] if is_object else [labels]
    for part in parts:
        if not (isinstance(part, str) and part) and not (
            isinstance(part, list) and part and all(isinstance(label, str) and label for label in part)
        ):
            raise UsageError(
                f"Invalid runs-on {labels!r} in {place}.",
                'Use a label ("ubuntu-24.04"), a list (["self-hosted", "gpu"]) or { group = "…", labels = "…" }.',
            )
    return labels


def _parse_rule(kind: RuleKind, table: "_Table") -> SuppressionRule:
    extra_keys = ["since"] if kind is RuleKind.ACCEPT else []
    table.allow("series", "reason", "until", "machine", *extra_keys)
    reason = table.text("reason").strip()
    if not reason:
        raise UsageError(
            f"The reason in {table.place} is empty.", "Write the reason, so that others understand the rule later."
        )
    return SuppressionRule(
        kind, table.text("series"), reason, table.day("until"), table.text("machine", "*"),
        table.day("since").isoformat() if extra_keys else "",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Table:
    """A table in the file, and the name of its place in messages."""

    values: Mapping[str, Any]
    place: str

    def named(self, place: str) -> "_Table":
        return _Table(self.values, place)

    def allow(self, *keys: str) -> None:
        """Raise UsageError for a key that isn't one of these."""
        for key in self.values:
            if key not in keys:
                nearest_name = find_nearest(key, keys)
                raise UsageError(
                    f"Unknown key {key!r} in {self.place}.",
                    (f"Did you mean {nearest_name!r}? " if nearest_name else "") + f"Valid keys: {', '.join(keys)}.",
                )

    def required(self, key: str) -> Any:
        if key not in self.values:
            raise UsageError(f"{self.place[0].upper()}{self.place[1:]} has no {key!r}.", "Add the key.")
        return self.values[key]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.required(key) if default is None else self.values.get(key, default)
        if not isinstance(value, str) or "\n" in value:
            raise UsageError(f"Invalid {key} {value!r} in {self.place}.", "Use a text of one line, in quotes.")
        return value

    def name(self) -> str:
        """Return the value of `name`, which must be a valid name for artifacts and job groups. Raises UsageError."""
        value = self.text("name")
        if not _NAME.fullmatch(value) or "--" in value:
            raise UsageError(
                f"Invalid name {value!r} in {self.place}.",
                "Use at most 41 characters: letters, digits, `_` and `-`, but not `--`. Start with a letter or digit.",
            )
        return value

    def minutes(self, key: str, default: int) -> int:
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UsageError(
                f"Invalid {key} {value!r} in {self.place}.", f"Use a number of minutes, such as {default}."
            )
        return value

    def day(self, key: str) -> date:
        value = self.required(key)
        try:
            day = date.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            day = None
        if not isinstance(day, date) or isinstance(day, datetime):
            raise UsageError(f"Invalid {key} {value!r} in {self.place}.", f"Use a date, such as {key} = 2026-12-31.")
        return day

    def tables(self, key: str) -> Iterator["_Table"]:
        """Yield the tables of an array of tables. Messages name them by number."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise UsageError(f"{key!r} in {self.place} isn't a list of tables.", f"Write [[{key}]] above its keys.")
        for number, entry in enumerate(value, 1):
            yield _Table(entry, f"{key} {number}" if self.place == "the file" else f"{key} {number} of {self.place}")


def _refuse_repeated(names: Iterable[str], message: str) -> None:
    earlier_names: set[str] = set()
    for name in names:
        if name in earlier_names:
            raise UsageError(f"{message}: {name!r}.", "Rename one of them.")
        earlier_names.add(name)

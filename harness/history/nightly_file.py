"""The configuration of the nightly workflow, `.github/nightly.toml`: runs, machines, and rules for alerts.

`.github/nightly/plan` reads it without installed packages, so this module uses only the standard library.
"""

import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_origin

from harness.model.defaults import CONFIRMATIONS
from harness.model.errors import UsageError
from harness.model.history import Key
from harness.model.texts import find_nearest
from harness.session.request import Request, options
from harness.toml import hide_linked_file

#: The default path of the file.
PLACE = Path(".github/nightly.toml")

#: The default time limit of a job. GitHub ends a job after 360 minutes. The remaining minutes are for the upload.
MINUTES = 350

#: The largest time limit of a job on a machine of your own, five days.
MOST_MINUTES = 7_200

#: The default number of minutes that the results of other machines wait for a machine that hasn't started.
WAIT_MINUTES = 180

#: The largest number of minutes to wait. The job that waits runs on GitHub's machines, which end it after 360 minutes.
MOST_WAIT_MINUTES = 330

#: The largest number of confirmations per month.
MOST_CONFIRMATIONS = 1_000

#: The largest number of nightly runs on one machine. GitHub keeps only the last of the jobs that wait for a machine.
MOST_RUNS = 2

#: Two dates are about the same change if they differ by at most this much. A later nightly run may find the change
#: some runs earlier or later.
NEAR = timedelta(days=7)

#: The options of `harness matrix` that aren't part of a request, and the type of each.
OWN_OPTIONS: Mapping[str, type] = {
    **dict.fromkeys(("--fail-on", "--resume", "--base", "--head", "--package"), str),
    **dict.fromkeys(("--unsettled", "--history-rounds", "--wait", "--dry-run", "--json", "--exit-verdict"), bool),
}

#: Patterns of texts. Names are parts of the names of artifacts and of job groups.
_LINE = r"[^\n]*\S[^\n]*"
_LABEL = r"(?!.*--)[A-Za-z0-9][A-Za-z0-9_-]{0,40}"
_ID = r"[A-Za-z0-9._-]{1,64}"
_REGISTRY = r"[a-z0-9][a-z0-9._:-]*/([a-z0-9._-]+/)*"

_LABEL_ADVICE = "Use at most 41 characters: letters, digits, `_` and `-`, but not `--`. Start with a letter or digit."
_RUNNER_ADVICE = 'Use a label ("ubuntu-24.04"), a list (["self-hosted", "gpu"]) or { group = "…", labels = "…" }.'


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
    approximate day when the accepted change started; for `mute`, it is None.
    """

    kind: RuleKind
    series: str
    reason: str
    until: date
    machine: str = "*"
    since: date | None = None

    def applies(self, key: Key, started: str, machine: str, today: date) -> bool:
        """Return whether the rule applies today to a change of this series that started at the time `started`."""
        if self.since and abs(date.fromisoformat(started[:10]) - self.since) > NEAR:
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
    confirmations: int = CONFIRMATIONS

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
        try:
            return _parse_file(_Table(tomllib.loads(path.read_text(encoding="utf-8")), "the file"))
        except OSError as error:
            raise UsageError(f"Can't read {path}: {error.strerror}.") from None
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise UsageError(f"{path} isn't valid TOML: {reason}.") from None
        except UsageError as error:
            raise UsageError(f"{path}: {error.message}", error.advice) from None


def _parse_file(table: "_Table") -> NightlyFile:
    table.check_keys("night", "registry", "wait-minutes", "confirmations", *RuleKind)
    table.get("night", bool, 'Add such a table, with name = "cpu", arguments and machines.')
    nights = [_parse_plan(entry) for entry in table.list_tables("night")]
    _refuse_repeated((night.name for night in nights), "Two nightly runs have the same name")
    for machine, count in Counter(machine.name for night in nights for machine in night.machines).items():
        if count > MOST_RUNS:
            raise UsageError(
                f"The machine {machine!r} is in {count} nightly runs, but GitHub would cancel all but {MOST_RUNS}.",
                "Measure more scenarios or environments in one run, or use another machine.",
            )
    return NightlyFile(
        nights,
        [_parse_rule(kind, entry) for kind in RuleKind for entry in table.list_tables(kind)],
        table.get_text("registry", _REGISTRY, 'End it with a slash. Example: registry = "ghcr.io/me/".', ""),
        table.get_count("wait-minutes", WAIT_MINUTES, MOST_WAIT_MINUTES),
        table.get_count("confirmations", CONFIRMATIONS, MOST_CONFIRMATIONS),
    )


def _parse_plan(table: "_Table") -> NightlyPlan:
    table.check_keys("name", "arguments", "machines")
    table.get("machines", bool, 'Example: machines = [{ name = "hosted", runs-on = "ubuntu-24.04" }]')
    machines = [_parse_machine(entry) for entry in table.list_tables("machines")]
    _refuse_repeated((entry.name for entry in machines), f"{table.start} lists a machine twice")
    arguments = table.get_text("arguments", _LINE, "Write the options of `harness matrix` as a text of one line.")
    check_arguments(arguments, table.place)
    return NightlyPlan(table.get_text("name", _LABEL, _LABEL_ADVICE), arguments, machines)


def check_arguments(arguments: str, place: str) -> None:
    """Raise UsageError if `harness matrix` wouldn't accept these arguments, before a machine starts for them."""
    fields = {flag: field for field in options(Request).values() for flag in field.flags}
    try:
        words = iter(shlex.split(arguments))
    except ValueError as error:
        raise UsageError(f"Invalid arguments in {place}: {error}.", "Check the quotes.") from None
    for word in words:
        name, separator, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if name not in fields and name not in OWN_OPTIONS:
            nearest_name = find_nearest(name, [*fields, *OWN_OPTIONS])
            raise UsageError(
                f"`harness matrix` has no option {name!r}, which is in the arguments of {place}.",
                f"Did you mean {nearest_name}?" if nearest_name else "To list the options: harness matrix --help",
            )
        field = fields.get(name)
        if field.type is bool if field else OWN_OPTIONS[name] is bool:
            continue
        text = value if separator else next(words, None)
        if text is None:
            raise UsageError(f"{name} needs a value in the arguments of {place}.")
        if field:
            try:
                field.parse([text] if get_origin(field.type) in (Sequence, Mapping) else text)
            except UsageError as error:
                raise UsageError(f"In the arguments of {place}: {error.message}", error.advice) from None


def _parse_machine(table: "_Table") -> NightlyMachine:
    table.check_keys("name", "runs-on", "id", "minutes")
    return NightlyMachine(
        table.get_text("name", _LABEL, _LABEL_ADVICE),
        table.get("runs-on", _is_runner, _RUNNER_ADVICE),
        table.get_text("id", _ID, "Use at most 64 letters, digits, `.`, `_` and `-`.", ""),
        table.get_count("minutes", MINUTES, MOST_MINUTES),
    )


def _parse_rule(kind: RuleKind, table: "_Table") -> SuppressionRule:
    is_accept = kind is RuleKind.ACCEPT
    table.check_keys("series", "reason", "until", "machine", *(["since"] if is_accept else []))
    return SuppressionRule(
        kind,
        table.get_text("series", _LINE, 'Write a name or a glob, such as series = "load_model *".'),
        table.get_text("reason", _LINE, "Write the reason on one line, so that others understand the rule later."),
        table.get("until", _is_day, "Use a date, such as until = 2026-12-31."),
        table.get_text("machine", _LINE, "Write the name of a machine, or a glob.", "*"),
        table.get("since", _is_day, "Use a date, such as since = 2026-12-31.") if is_accept else None,
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table in the file, and the name of its place in messages."""

    values: Mapping[str, Any]
    place: str

    @property
    def start(self) -> str:
        """The name of the place at the start of a sentence."""
        return self.place[0].upper() + self.place[1:]

    def check_keys(self, *keys: str) -> None:
        """Raise UsageError for a key that isn't one of these."""
        for key in self.values:
            if key not in keys:
                nearest_name = find_nearest(key, keys)
                raise UsageError(
                    f"Unknown key {key!r} in {self.place}.",
                    (f"Did you mean {nearest_name!r}? " if nearest_name else "") + f"Valid keys: {', '.join(keys)}.",
                )

    def get(self, key: str, is_valid: Callable[[Any], bool], advice: str, default: Any = None) -> Any:
        """Return a value. Raises UsageError if it isn't valid, or if it is missing and there is no default."""
        value = self.values.get(key)
        if value is None and default is None:
            raise UsageError(f"{self.start} has no {key!r}.", advice)
        if value is not None and not is_valid(value):
            raise UsageError(f"Invalid {key} {value!r} in {self.place}.", advice)
        return default if value is None else value

    def get_text(self, key: str, pattern: str, advice: str, default: str | None = None) -> str:
        """Return a text that matches a pattern, as `get` does."""
        is_valid = re.compile(pattern).fullmatch
        return str(self.get(key, lambda value: isinstance(value, str) and bool(is_valid(value)), advice, default))

    def get_count(self, key: str, default: int, most: int) -> int:
        """Return a whole number from 1 to `most`, as `get` does."""
        advice = f"Use a whole number from 1 to {most:,}."
        return int(self.get(key, lambda value: type(value) is int and 0 < value <= most, advice, default))

    def list_tables(self, key: str) -> list["_Table"]:
        """Return the tables of an array of tables. Messages name them by number."""
        tables = self.values.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
            raise UsageError(f"{key!r} in {self.place} isn't a list of tables.", f"Write [[{key}]] above its keys.")
        suffix = "" if self.place == "the file" else f" of {self.place}"
        return [_Table(entry, f"{key} {number}{suffix}") for number, entry in enumerate(tables, 1)]


def _is_day(value: Any) -> bool:
    return type(value) is date  # a datetime is a date too


def _is_runner(value: Any) -> bool:
    """Return whether a value has one of the forms of GitHub's `runs-on`."""
    if isinstance(value, dict):
        return bool(value) and value.keys() <= {"group", "labels"} and all(map(_is_labels, value.values()))
    return _is_labels(value)


def _is_labels(value: Any) -> bool:
    labels = value if isinstance(value, list) else [value]
    return bool(labels) and all(isinstance(label, str) and label for label in labels)


def _refuse_repeated(names: Iterable[str], message: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(f"{message}: {name!r}.", "Rename one of them.")

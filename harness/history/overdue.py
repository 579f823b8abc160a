"""Alerts for machines that have sent no nightly run with a result for some days: one issue per machine."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from harness.files import read
from harness.history.alerts import Alert
from harness.history.nightly_file import PLACE, NightlyPlan
from harness.model.history import HistoryEntry
from harness.model.texts import remove_password
from harness.report.escape import make_fenced_block, markdown

#: A machine is overdue if its newest run is older than this. Two missed runs can have harmless reasons.
PATIENCE = timedelta(days=3)

#: The largest number of characters of an error in an issue.
_MOST_CHARACTERS = 2000


def find_overdue(
    machines: Iterable[str],
    entries: Sequence[HistoryEntry],
    failures: Mapping[str, str],
    now: datetime,
    file: str = str(PLACE),
) -> list[Alert]:
    """Return an alert for each machine without a result in the last days. A run in which every launch failed has none.

    `machines` are the machines that the nightly.toml `file` planned for this nightly run, and `failures` are their
    errors by machine. A machine that has never sent a result is overdue if it failed in this nightly run, or if the
    history is older than PATIENCE.
    """
    newest_runs: dict[str, HistoryEntry] = {}
    failing_machines: set[str] = set()
    for entry in entries:
        for machine in entry.machines:
            name = machine.name or machine.id
            if machine.id in entry.failed:
                failing_machines.add(name)
            else:
                newest_runs[name] = entry
                failing_machines.discard(name)
    return [
        _make_alert(
            machine, newest_runs.get(machine), failures.get(machine, ""), file, is_failing=machine in failing_machines
        )
        for machine in dict.fromkeys(machines)
        if _is_overdue(newest_runs.get(machine), entries, now, has_failed=machine in failures)
    ]


def _is_overdue(
    newest: HistoryEntry | None, entries: Sequence[HistoryEntry], now: datetime, *, has_failed: bool
) -> bool:
    if newest:
        return now - _parse_time(newest) > PATIENCE
    return has_failed or bool(entries and now - _parse_time(entries[0]) > PATIENCE)


def _parse_time(entry: HistoryEntry) -> datetime:
    return datetime.fromisoformat(entry.started)


def _make_alert(machine: str, newest: HistoryEntry | None, failure: str, file: str, *, is_failing: bool) -> Alert:
    newest_day = newest.started[:10] if newest else ""
    lines = [
        f"In the history, the newest run of the machine {markdown(machine)} with a result is {markdown(newest.run)} of "
        f"{newest_day}."
        if newest
        else f"The machine {markdown(machine)} is in `nightly.toml`, but the history has no result from it.",
        "",
    ]
    if failure:
        lines += ["Its last error:", "", make_fenced_block(failure[:_MOST_CHARACTERS], "text")]
    elif is_failing:
        lines += ["Later runs of the machine have no result. Their reports, in the artifacts of the jobs, show why."]
    else:
        lines += [
            "No job of the machine reported an error. Either the job did not start, or it was canceled, lost its "
            "runner, or could not check out the repository. Check that the runner is online (**Settings → Actions → "
            "Runners**), and that it has the labels in `nightly.toml`."
        ]
    lines += ["", "<sub>The next nightly run with a result from this machine closes the issue.</sub>"]
    return Alert(
        cause=f"overdue | {machine}",
        series=[],
        since=newest.started if newest else "",
        confirmed=(_parse_time(newest) + PATIENCE).isoformat() if newest else "",
        title=f"No nightly run of {machine} since {newest_day}" if newest else f"No nightly run of {machine} yet",
        body="\n".join(lines),
        overdue=machine,
        file=file,
    )


def find_idle_machines(folder: Path, nights: Sequence[NightlyPlan]) -> set[str]:
    """Return the machines that had nothing to measure: each of their jobs has a file `NIGHT--MACHINE/idle`."""
    marks: dict[str, list[Path]] = {}
    for night in nights:
        for machine in night.machines:
            marks.setdefault(machine.name, []).append(folder / f"{night.name}--{machine.name}" / "idle")
    return {machine for machine, paths in marks.items() if all(path.is_file() for path in paths)}


def read_failures(folder: Path) -> dict[str, str]:
    """Return the errors of jobs by machine, from the files `*--MACHINE/failure` in a folder.

    Passwords in addresses are removed: GitHub masks secrets in logs, but not in issues.
    """
    return {
        # the job cut long lines by bytes, which can end in the middle of a character
        path.parent.name.rpartition("--")[2]: remove_password(read(path).decode("utf-8", "replace").strip())
        for path in sorted(folder.glob("*--*/failure"))
        if path.is_file() and not path.is_symlink()
    }

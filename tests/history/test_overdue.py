"""Machines that send nothing: when there is an alert, and what it says."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.history.nightly_file import NightlyMachine, NightlyPlan
from harness.history.overdue import PATIENCE, find_idle_machines, find_overdue, find_recent_machines, read_failures
from harness.model.history import HistoryEntry
from harness.model.run import Machine

START = datetime.fromisoformat("2026-11-20T02:17:00+00:00")


def entry(machine: str, days: int) -> HistoryEntry:
    started = (START + timedelta(days=days)).isoformat()
    return HistoryEntry(f"run-{machine}-{days}", started, [Machine(f"m-{machine}", machine)], "", "tf2.15", 6)


ENTRIES = [entry("rack", 0), entry("office", 0), entry("office", 4)]


def test_only_the_machine_whose_newest_run_is_older_than_three_days_is_reported() -> None:
    assert find_overdue(["rack", "office"], ENTRIES, {}, START + PATIENCE) == []
    (alarm,) = find_overdue(["rack", "office"], ENTRIES, {}, START + PATIENCE + timedelta(days=1))
    assert alarm.overdue == "rack"
    assert alarm.title == "No nightly run of rack since 2026-11-20"
    assert "run-rack-0" in alarm.body
    assert "Check that the runner is online" in alarm.body


def test_the_text_stays_the_same_from_night_to_night() -> None:
    first, second = (find_overdue(["rack"], ENTRIES, {}, START + timedelta(days=days)) for days in (4, 5))
    assert first == second


def test_a_run_without_any_result_is_no_night() -> None:
    failed = [replace(entry("rack", days), failed=["m-rack"]) for days in (1, 2, 3, 4)]
    (alarm,) = find_overdue(["rack"], [entry("rack", 0), *failed], {}, START + timedelta(days=4))
    assert "run-rack-0" in alarm.body
    assert "Later runs of the machine have no result." in alarm.body
    # of a merged run, another machine may have the results
    merged = replace(failed[0], machines=[*failed[0].machines, Machine("m-office", "office")])
    assert find_overdue(["office"], [merged], {}, START + PATIENCE) == []
    assert find_overdue(["rack"], [*failed, entry("rack", 5)], {}, START + timedelta(days=6)) == []


def test_the_last_error_is_in_the_text() -> None:
    (alarm,) = find_overdue(
        ["rack"], ENTRIES, {"rack": "harness: Docker isn't running. ``` @all"}, START + timedelta(days=9)
    )
    assert "````text\nharness: Docker isn't running. ``` @all\n````" in alarm.body


@pytest.mark.parametrize(("failures", "days", "count"), [({}, 1, 0), ({"new": "no Docker"}, 1, 1), ({}, 9, 1)])
def test_a_machine_that_never_sent_a_run_is_reported_when_it_fails_or_after_some_days(
    failures: dict[str, str], days: int, count: int
) -> None:
    alarms = find_overdue(["new"], ENTRIES, failures, START + timedelta(days=days))
    assert [alarm.title for alarm in alarms] == ["No nightly run of new yet"] * count


def test_the_first_night_that_fails_is_reported() -> None:
    assert find_overdue(["new"], [], {}, START) == []
    assert len(find_overdue(["new"], [], {"new": "no Docker"}, START)) == 1


def test_recent_machines_are_those_of_the_last_week_of_the_history() -> None:
    assert find_recent_machines([]) == []
    assert find_recent_machines([entry("old", 0), *(entry(name, 9) for name in ("rack", "office"))]) == [
        "rack",
        "office",
    ]


def test_errors_are_read_by_machine(tmp_path: Path) -> None:
    # the last one ends in the middle of a character
    for name, text in {
        "cpu--hosted": b"",
        "gpu--rack-1": b"no GPU at https://me:secret@host/simple\n",
        "gpu--x": "1.1×".encode()[:-1],
    }.items():
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / "failure").write_bytes(text)
    assert read_failures(tmp_path) == {"rack-1": "no GPU at https://host/simple", "x": "1.1\N{REPLACEMENT CHARACTER}"}


def test_a_machine_is_idle_if_all_of_its_jobs_had_nothing_to_measure(tmp_path: Path) -> None:
    for name in ("cpu--rack", "gpu--rack", "cpu--office"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "idle").touch()
    machines = [NightlyMachine(name, "x") for name in ("rack", "office", "lab")]
    nights = [NightlyPlan("cpu", "", machines), NightlyPlan("gpu", "", machines)]
    assert find_idle_machines(tmp_path, nights) == {"rack"}

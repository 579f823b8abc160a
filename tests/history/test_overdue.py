"""Machines that send nothing: when there is an alert, and what it says."""

from dataclasses import replace
from datetime import datetime, timedelta

from harness.history.nightly_file import NightlyMachine, NightlyPlan
from harness.history.overdue import PATIENCE, find_idle_machines, find_overdue, read_failures
from harness.model.history import HistoryEntry
from harness.model.run import Machine

START = datetime.fromisoformat("2026-11-20T02:17:00+00:00")


def days(number: int) -> datetime:
    return START + timedelta(days=number)


def entry(machine: str, number: int) -> HistoryEntry:
    run = f"run-{machine}-{number}"
    return HistoryEntry(run, days(number).isoformat(), [Machine(f"m-{machine}", machine)], "", "tf2.15", 6)


ENTRIES = [entry("rack", 0), entry("office", 0), entry("office", 4)]


def test_only_the_machine_whose_newest_run_is_older_than_three_days_is_reported(golden):
    both = ["rack", "office"]
    assert find_overdue(both, ENTRIES, {}, START + PATIENCE) == []
    (alarm,) = find_overdue(both, ENTRIES, {}, START + PATIENCE + timedelta(days=1))
    assert alarm.overdue == "rack"
    # the text stays the same from night to night
    assert find_overdue(both, ENTRIES, {}, days(5)) == [alarm]
    failed = [replace(entry("rack", number), failed=["m-rack"]) for number in (1, 2, 3, 4)]
    (without_results,) = find_overdue(["rack"], [entry("rack", 0), *failed], {}, days(4))
    (with_error,) = find_overdue(["rack"], ENTRIES, {"rack": "harness: Docker isn't running. ``` @all"}, days(9))
    (never,) = find_overdue(["new"], ENTRIES, {}, days(9))
    (failing,) = find_overdue(["new"], ENTRIES, {"new": "no Docker"}, days(1))
    alarms = (alarm, without_results, with_error, never, failing)
    assert "\n\n".join(f"# {value.title}\n\n{value.body}" for value in alarms) == golden
    # a machine that never sent a run is reported if it fails, or after some days
    assert [find_overdue(["new"], known, {}, now) for known, now in ((ENTRIES, days(1)), ([], START))] == [[], []]
    assert len(find_overdue(["new"], [], {"new": "no Docker"}, START)) == 1
    # of a merged run, another machine may have the results
    merged = replace(failed[0], machines=[*failed[0].machines, Machine("m-office", "office")])
    assert find_overdue(["office"], [merged], {}, START + PATIENCE) == []
    assert find_overdue(["rack"], [*failed, entry("rack", 5)], {}, days(6)) == []


def test_errors_are_read_by_machine(tmp_path):
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


def test_a_machine_is_idle_if_all_of_its_jobs_had_nothing_to_measure(tmp_path):
    for name in ("cpu--rack", "gpu--rack", "cpu--office"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "idle").touch()
    machines = [NightlyMachine(name, "x") for name in ("rack", "office", "lab")]
    nights = [NightlyPlan("cpu", "", machines), NightlyPlan("gpu", "", machines)]
    assert find_idle_machines(tmp_path, nights) == {"rack"}

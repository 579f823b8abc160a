"""Slots of this machine, with launches that are made."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from harness import session
from harness.files import get_data_dir
from harness.fleet import check
from harness.fleet.check import SlotCheck
from harness.fleet.places import ShellPlace, make_stoppable
from harness.machine.lock import hold_lock, hold_machine
from harness.machine.slots import Slot
from harness.session.resuming import find_slot
from harness.store.folder import RunFolder
from tests import factories
from tests.cli.conftest import SHORT, stored
from tests.commands import read_until
from tests.fleet.conftest import counts

CORES = len(os.sched_getaffinity(0))
PLAN = ("-s", "ways", "-a", "way=fine", "-a", "speed=fast,slow", "--slots", "2", "--rounds", "3")


@pytest.fixture(autouse=True)
def _safe() -> None:
    check._save_check("cpu", SlotCheck(2, [], 0.03, "ways old fine", CORES, datetime.now(UTC).isoformat()))


def is_whole(folder: Path, rounds: int = 3) -> bool:
    # a shard that was stopped before its first launch has no group in the plan
    groups = {group.name for group in session.read(folder).run.plan.groups}
    launches = {(group, name, number) for group in groups for name in ("old", "new") for number in range(rounds + 1)}
    return len(groups) == 2 and counts(folder) == Counter(launches)


def find_shards(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    family = set(psutil.Process(process.pid).children(recursive=True))
    # `process_iter` leaves out processes that end meanwhile: a scenario's processes are short
    return [
        child
        for child in psutil.process_iter(["cmdline"])
        if child in family
        and "harness" in (words := child.info["cmdline"] or [])
        and {"--shard", "--resume"} & set(words)
        and "-m" in words[1:2]
    ]


@pytest.mark.slow
def test_groups_are_measured_beside_each_other_and_the_report_says_so(harness):
    shutil.rmtree(get_data_dir())
    process = harness.matrix("-s", "ways", "-a", "way=fine", "--slots", "2")
    assert process.returncode == 4
    assert "harness fleet check --slots 2" in process.stderr
    check._save_check("cpu", SlotCheck(2, [], 0.03, "ways old fine", CORES, datetime.now(UTC).isoformat()))
    # long launches, because a shard whose start is late would otherwise get the slot of one that has ended
    process = harness("matrix", *PLAN, "--backend", "local", "--warmup", "10ms", "--measure", "500ms")
    assert process.returncode == 0, process.stderr
    pinned = json.loads((harness.run / "run.json").read_text())["host"]["slots"]
    assert len(pinned) == 2
    assert f"(CPU {'; '.join(pinned)}" in (harness.run / "report.md").read_text()
    # one group of the machine has a control
    assert len([launch for launch in harness.launches if launch["role"] != "control"]) == 2 * (2 + 3 * 2)
    assert {launch["resources"]["slots"] for launch in harness.launches} == {2}
    with hold_machine():
        pass


@pytest.mark.slow
def test_an_interruption_ends_all_slots_and_what_is_missing_is_measured_later(harness):
    process = harness.start("matrix", *PLAN, *SHORT)
    read_until(process.stderr, "round 1")
    shards = find_shards(process)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert f": harness matrix --resume results/{harness.run.name}" in output
    assert not any(shard.is_running() for shard in shards)
    assert counts(harness.run)
    assert not is_whole(harness.run)
    with hold_machine():
        pass
    for words, rounds in (((), 3), (("--rounds", "4"), 4)):
        resumed = harness("matrix", "--resume", str(harness.run), *words)
        assert resumed.returncode == 0, resumed.stderr
        assert is_whole(harness.run, rounds)


@pytest.mark.slow
def test_a_machine_that_is_held_is_not_used_and_a_resumed_run_waits_for_its_own_shards_only(harness):
    with hold_machine():
        process = harness.matrix(*PLAN)
    assert process.returncode == 4
    assert not list((harness.root / "results").glob("*"))
    process = harness.matrix(*PLAN, *SHORT)
    assert process.returncode == 0, process.stderr
    shard = next((harness.run / "shards").glob("*/*/.lock"))
    with hold_machine():
        process = harness("matrix", "--resume", str(harness.run))
    assert process.returncode == 4
    with hold_machine(), hold_lock(shard, ""):
        waiting = harness.start("matrix", "--resume", str(harness.run))
        read_until(waiting.stderr, "Waiting for it.")
    with waiting:
        waiting.communicate(timeout=120)
    assert waiting.returncode == 0


@pytest.mark.slow
def test_a_shard_is_measured_in_a_free_slot(harness):
    process = harness.matrix(*PLAN, "--shard", "1/2", "--balance", "even")
    assert process.returncode == 0, process.stderr
    results = session.read(harness.run)
    assert (results.run.slots, len(results.run.plan.groups), len(results.run.plan.limits.cpus or ())) == (2, 1, 1)
    assert {launch.resources["slots"] for launch in results.launches} == {2.0}


@pytest.mark.slow
def test_a_command_ends_when_its_shell_is_left(harness, monkeypatch):
    """As Ctrl-C ends it: whoever asked for it may have died in any way."""
    for name, value in harness.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(harness.root)
    words = ["matrix", "-s", "ways", "-a", "way=endless", "--backend", "local", "--rounds", "1"]
    lines: list[str] = []
    shell = ShellPlace("slot 1", lambda line: lines.append(line) or ("Backend" in line and shell.stop()))  # type: ignore[func-returns-value]
    script = make_stoppable(shlex.join([sys.executable, "-m", "harness", *words])) + "\nexit $code"
    code, _ = shell.run(["sh", "-c", script])
    assert code == 130, lines
    # and a later one at once
    assert shell.run(["sh", "-c", script])[0] != 0


def test_a_run_goes_on_in_the_slot_that_it_was_begun_in(tmp_path):
    run = factories.run(slots=2)
    limits = replace(run.plan.limits, cpus=(2, 3), gpus=("1",))
    run = replace(run, plan=replace(run.plan, limits=limits))
    folder = RunFolder(stored(tmp_path, run, []))
    # who sends a folder does not say which CPUs are used here
    assert find_slot(folder.path) is None
    folder.write_run(run, signed=True)
    assert find_slot(folder.path) == Slot((2, 3), "1")  # as in an older run
    folder.write_run(replace(run, slot_cpus=(0, 1, 2, 3)), signed=True)
    assert find_slot(folder.path) == Slot((0, 1, 2, 3), "1")
    folder.write_run(replace(run, slots=1), signed=True)
    assert find_slot(folder.path) is None

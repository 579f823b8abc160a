"""Slots of this machine, with launches that are made."""

import json
import os
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from harness import session
from harness.files import data_dir
from harness.fleet import check, coordinator
from harness.fleet.check import Checked
from harness.fleet.slots import LocalSlots
from harness.fleet.unit import Started, Unit, packed
from harness.machine.lock import machine_to_itself
from harness.model.errors import CannotRunHereError
from harness.model.launch import Launch, Status
from harness.store.folder import RunFolder
from tests.cli.conftest import Harness

CORES = len(os.sched_getaffinity(0))


def test_groups_are_measured_beside_each_other_and_the_report_says_so(harness: Harness) -> None:
    refused = harness.matrix("-s", "ways", "-a", "way=fine", "--slots", "2")
    assert refused.returncode == 4
    assert "harness fleet check --slots 2" in refused.stderr
    safe = Checked(2, [], 0.03, "ways old fine", CORES, datetime.now(UTC).isoformat())
    check._remember("cpu", safe)
    done = harness.matrix("-s", "ways", "-a", "way=fine,raises", "-a", "speed=slow", "--slots", "2", "--rounds", "2")
    assert done.returncode == 1  # some cells fail, as they are to
    document = json.loads((harness.run / "run.json").read_text())
    pinned = document["host"]["slots"]
    assert len(pinned) == 2
    assert (
        "in 2 slots at once, each pinned to 1 core (CPU " + "; ".join(pinned) in (harness.run / "report.md").read_text()
    )
    fine = [launch for launch in harness.launches if launch["cell"]["axes"]["way"] == "fine"]
    assert len(fine) == 2 + 2 * 3
    assert {launch["resources"]["slots"] for launch in fine} == {2}
    # nothing is left: neither what units have kept nor a lock
    assert not list((data_dir() / "fleet").iterdir())
    with machine_to_itself():
        pass


class Interrupting(session.Listener):
    """Interrupts after the first launch."""

    def __init__(self) -> None:
        self.ended: list[Launch] = []

    def end(self, launch: Launch) -> None:
        self.ended.append(launch)
        if len(self.ended) == 1:
            raise KeyboardInterrupt


def test_an_interruption_ends_all_slots_and_keeps_what_was_finished(planned: session.Planned) -> None:
    ears = Interrupting()
    ended = coordinator.run(planned, LocalSlots(2), ears)
    assert ended.interrupted
    assert [each.cell for each in ears.ended] == [each.cell for each in ended.results.launches]
    assert 1 <= len(ended.results.launches) < 16
    with machine_to_itself():
        pass


def test_slots_of_a_machine_that_is_held_are_not_used(planned: session.Planned) -> None:
    with machine_to_itself(), pytest.raises(CannotRunHereError, match="Another run is measuring on this machine"):
        coordinator.run(planned, LocalSlots(2), session.Listener())


def test_a_unit_of_another_version_is_refused_and_one_that_nobody_listens_to_ends(planned: session.Planned) -> None:
    def unit(**changes: object) -> Unit:
        files, kit = packed(planned)
        one = planned.only([planned.plan.groups[0].name])
        return Unit(one, "run", "run-1", files, kit, 2, **changes)

    def told(started: Started) -> list[str]:
        names = []
        while not names or names[-1] not in ("over", "lost"):
            names += [name for name, _ in started.take(10.0)]
        return names

    with ExitStack() as stack:
        other = Started(unit(version="9.9"))
        stack.callback(other.close)
        ((name, (run, error, _)),) = other.take(60.0)
        assert (name, run) == ("over", None)
        assert "and the plan was made by 9.9" in error.message
    alone = Started(unit())
    while not any(name == "end" for name, _ in alone.take(10.0)):
        pass
    alone.close()
    folder = data_dir() / "fleet" / "run" / "run-1"
    kept = RunFolder.open(folder)
    finished = [each for each in kept.read_launches() if each.status is Status.OK]
    assert finished
    assert kept.read_run().stops
    # another unit goes on with what it has finished, and takes its place
    again = Started(replace(unit(finished=finished, replaces="run-1"), name="run-1-again1"))
    assert told(again)[-1] == "over"
    again.close()
    assert not folder.exists()
    whole = RunFolder.open(folder.with_name("run-1-again1")).read_launches()
    assert [each.started for each in whole[: len(finished)]] == [each.started for each in finished]
    assert len([each for each in whole if each.status is Status.OK]) >= 2 + 2 * 3

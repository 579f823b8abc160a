import contextlib
import getpass
import os
import re
import threading
import time
from pathlib import Path

import pytest

from harness.files import get_data_dir
from harness.history.folder import History
from harness.machine import lock
from harness.machine.identity import name_machine
from harness.machine.lock import (
    find_measuring,
    get_lock_path,
    hold_lock,
    hold_machine,
    hold_run_lock,
    hold_slot,
    is_held,
    record_end,
)
from harness.model.errors import CannotRunHereError
from harness.store.signature import sign


def refuse(held: contextlib.AbstractContextManager[object]) -> str:
    """Return the error of a lock that cannot be had, without what differs between runs."""
    with pytest.raises(CannotRunHereError) as caught, held:
        pytest.fail("the lock was free")
    text = re.sub(r"since \d\d:\d\d \(.*?\)", "since TIME (COMMAND)", str(caught.value))
    return text.replace(f"{getpass.getuser()}, process {os.getpid()}", "USER, process PID")


def test_a_lock_is_held_by_one_and_names_its_holder(tmp_path, snapshot):
    path = tmp_path / "lock"
    with hold_lock(path, "Busy."):
        assert refuse(hold_lock(path, "Busy.", "Wait.")) == snapshot
    with hold_lock(path, "Busy."):
        pass


def test_who_waits_hears_the_run_its_end_the_queue_and_a_new_holder(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_LOOK_SECONDS", 0.01)
    lines: list[str] = []
    is_waiting, has_changed = threading.Event(), threading.Event()

    def listen(line: str) -> None:
        lines.append(line)
        is_waiting.set()
        if "process 77" in line:
            has_changed.set()

    first = hold_machine()
    with first:
        record_end("2026-11-29T12-00-00Z-aaaa", time.time() + 250)
        assert "Its run 2026-11-29T12-00-00Z-aaaa takes about 5 more minutes." in refuse(hold_machine())
        assert [line.partition(",")[0] for line in find_measuring()] == [getpass.getuser()]
        waiter = threading.Thread(target=hold_machine(listen).__enter__)
        waiter.start()
        assert is_waiting.wait(10)
        # as if another process had it now
        get_lock_path().write_text("somebody, process 77, since 12:00 (harness matrix)")
        assert has_changed.wait(10)
    waiter.join(10)
    assert "more minutes" in lines[0]
    assert lines[-1].endswith("It is held by somebody, process 77, since 12:00 (harness matrix). Waiting for it.")


def test_the_place_in_the_queue_is_the_kernels(tmp_path):
    path, locks = tmp_path / "lock", tmp_path / "locks"
    path.write_text("")
    with path.open() as file:
        inode = path.stat().st_ino
        waits = [f"1: -> FLOCK  ADVISORY  WRITE {number} fe:00:{inode} 0 EOF" for number in (7, os.getpid(), 9)]
        for lines, place in ((waits, 2), ([waits[0], waits[2]], 3), ([], 1)):
            locks.write_text("\n".join([f"1: FLOCK  ADVISORY  WRITE 5 fe:00:{inode} 0 EOF", *lines]))
            assert lock._find_place(file.fileno(), locks) == place


def test_slots_share_the_machine_and_exclude_each_other_where_they_overlap(snapshot):
    slots = [["cpu0", "cpu1"], ["cpu2", "cpu3"]]
    with hold_slot(slots) as first, hold_slot(slots) as second:
        assert (first, second) == (0, 1)
        errors = [refuse(hold_slot([["cpu1", "cpu2"]])), refuse(hold_machine())]
    with hold_slot([["cpu1", "cpu2"]]), hold_slot([["cpu3"]]):
        pass
    with hold_machine():
        errors.append(refuse(hold_slot(slots)))
    assert errors == snapshot


def test_a_lock_whose_file_its_holder_removes_is_held_in_a_new_file(tmp_path):
    path = tmp_path / "lock"
    with contextlib.ExitStack() as first:
        first.enter_context(hold_lock(path, "Busy."))

        def let_go(_):
            path.unlink()
            first.close()

        with hold_lock(path, "Busy.", waiting=let_go):
            assert is_held(path)
            assert refuse(hold_lock(path, "Busy."))


def test_a_slot_whose_lock_cannot_be_opened_is_not_waited_for():
    with hold_slot([["cpu0"]]):
        pass
    get_lock_path().with_name(f"{get_lock_path().name}.cpu1").mkdir()
    assert "cpu1" in refuse(hold_slot([["cpu1"]], pytest.fail))


def test_who_waits_for_a_slot_gets_the_one_that_is_let_go():
    slots: list[list[str]] = [["cpu0"]]
    lines: list[str] = []
    with contextlib.ExitStack() as first:
        first.enter_context(hold_slot(slots))

        def let_go(line):
            lines.append(line)
            first.close()

        with hold_slot(slots, let_go) as place:
            assert place == 0
    assert len(lines) == 1


def test_a_lock_that_is_a_link_or_no_file_is_refused_and_nothing_is_changed(tmp_path, snapshot):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o600)
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "hanging").symlink_to(tmp_path / "none")
    (tmp_path / "second").hardlink_to(victim)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    names = ("link", "hanging", "second", "folder", "pipe", "no/lock")
    errors = {name: refuse(hold_lock(tmp_path / name, "Busy.")).replace(str(tmp_path), "") for name in names}
    assert errors == snapshot
    assert victim.read_text() == "mine"
    assert victim.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_only_the_user_can_access_the_data_folder_and_all_users_a_lock_that_they_share(tmp_path, monkeypatch):
    def read_modes(*paths: Path) -> dict[str, int]:
        return {path.name: path.stat().st_mode & 0o777 for path in paths}

    monkeypatch.setenv("HARNESS_DATA_DIR", str(tmp_path / "new" / "data"))
    monkeypatch.delenv("HARNESS_MACHINE_LOCK")
    (tmp_path / "shared").mkdir()
    before = os.umask(0o022)
    try:
        with hold_run_lock("run"), hold_slot([["cpu0"]]):
            name_machine("lab")
            sign(b"{\n}\n")
            History.open().note("2026-11-22", "x")
            modes = read_modes(get_data_dir(), *get_data_dir().rglob("*"))
        with hold_machine():
            assert get_lock_path().parent == get_data_dir()
            assert get_lock_path().is_file()
        monkeypatch.setenv("HARNESS_MACHINE_LOCK", str(tmp_path / "shared" / "lock"))
        with hold_slot([["cpu0"]]), hold_lock(tmp_path / "shared" / ".lock", "Busy."):
            shared = read_modes(*(tmp_path / "shared").iterdir())
    finally:
        os.umask(before)
    folders = {"data", "runs", "history", "notes"}
    assert {name for name, mode in modes.items() if mode != (0o700 if name in folders else 0o600)} == set()
    assert {"secret", "machine.json", "history", "notes", "run.lock"} <= set(modes)
    assert shared == {"lock": 0o666, "lock.cpu0": 0o666, ".lock": 0o644}

"""The watch over a plain script that doesn't end."""

import os
import threading
from types import SimpleNamespace

import pytest
from kit import launch_watch as watch
from kit.launch_watch import LaunchWatch


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "IDLE", 0.02)
    monkeypatch.setattr(watch, "BUSY", 1e9)


def test_a_script_that_waits_without_cpu_time_is_ended_with_the_frame_in_which_it_waits(monkeypatch):
    monkeypatch.setattr(watch, "is_waiting", lambda: True)
    end_event, frames = threading.Event(), []

    def end(seconds, frame):
        frames.append(watch.stack_text(frame, __file__))
        end_event.set()

    with LaunchWatch(end, look=0.005):
        assert end_event.wait(30)
    assert "assert end_event.wait(30)" in frames[0]


def test_the_memory_is_reported_once_before_the_time_limit():
    reported, reports = threading.Event(), []

    def report(points):
        reports.append(points)
        reported.set()

    with LaunchWatch(None, look=0.005, report=report, limit=watch.age() + watch.BEFORE):
        assert reported.wait(30)
    assert len(reports) == 1
    assert all(seconds >= 0 and held > 0 for seconds, held in reports[0])


def test_a_timed_sleep_is_no_endless_wait(tmp_path, monkeypatch):
    thread = tmp_path / str(os.getpid())
    thread.mkdir()
    monkeypatch.setattr(watch, "is_active", lambda process: False)
    for machine, futex, sleep in (("x86_64", 202, 230), ("aarch64", 98, 115)):
        monkeypatch.setattr(os, "uname", lambda machine=machine: SimpleNamespace(machine=machine))
        calls = {
            f"{futex} 0x1 0x189 0x0 0x0 0x0 0x0 0x1 0x2": True,
            f"{futex} 0x1 0x189 0x0 0x7ffd 0x0 0x0 0x1 0x2": False,
            f"{sleep} 0x0 0x0 0x7ffd 0x0 0x0 0x0 0x1 0x2": False,
            "": False,
        }
        for call, waits in calls.items():
            (thread / "syscall").write_text(call)
            assert watch.is_waiting(str(tmp_path)) is waits, call
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    assert not watch.is_waiting(str(tmp_path))

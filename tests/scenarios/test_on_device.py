"""The pass under TensorFlow's profiler: how much it calls, what it tells, and that nothing in it fails a launch."""

import signal
import subprocess
import sys
from types import SimpleNamespace as Thing

import pytest
from kit import on_device
from kit.bench import Bench
from kit.sampling import Document
from kit.telemetry import Telemetry
from kit.trace import Seen

from tests.scenarios.test_sampling import Work
from tests.scenarios.wire import COPY, KERNEL, trace

TF = Thing(__version__="2.15.0")
MS = 10**9  # in picoseconds


@pytest.fixture
def stage(monkeypatch):
    """A function that makes the pass with a step of so many seconds and a profiler that sees what it is given.

    It returns the calls that were made, and what was told: the observations' values and the resources.
    """

    def look(seconds=0.1, data=b"", *, steps=1, step=None, slower=1.0):
        work = Work(seconds)
        monkeypatch.setattr(on_device, "perf_counter", work.clock)
        profiled = []

        def session(step, calls):
            work.lengths = (seconds * slower,)
            taken = on_device.time_calls(step, calls)
            work.lengths = (seconds,)
            profiled.append(calls)
            return taken, data

        monkeypatch.setattr(on_device, "profiler", lambda tf: session)
        events = []
        emit = lambda event, **fields: events.append((event, fields))  # noqa: E731
        calls = on_device.look(TF, step or work.step, steps, emit)
        values = [fields["value"] for event, fields in events if event == "observation"]
        numbers = [fields for event, fields in events if event == "resources"]
        return Thing(calls=calls, profiled=profiled, values=values, numbers=numbers[0] if numbers else {})

    return look


BUSY = trace(
    {
        "/device:GPU:0": [
            ("k", 0, 30_000_000, KERNEL),
            ("k", 60_000_000, 20_000_000, KERNEL),
            ("MemcpyH2D", 0, 40_000_000, COPY),
        ]
    }
)


def test_a_pass_of_about_a_second_tells_what_ran_in_how_many_steps(stage):
    result = stage(seconds=0.05, data=BUSY, steps=4, slower=1.5)
    assert result.numbers == {
        "profiled_steps": 40,
        "profiled_seconds": pytest.approx(0.75),
        "profiled_plain_seconds": pytest.approx(0.5),
        "profiled_kernel_seconds": pytest.approx(0.05),
        "profiled_copy_seconds": pytest.approx(0.01),
        "profiled_kernels": 2,
        "profiled_copies": 1,
    }
    assert result.values == ["under way", "kernels ran in 6.67 % of a step, 0.05 of them; copies alone in 1.33 %"]
    for seconds, calls in {0.0001: 10, 0.1: 10, 0.3: 3, 0.9: 1, 4.9: 1}.items():
        result = stage(seconds=seconds, data=BUSY)
        assert result.profiled == [1, calls], "first a session of its own for what a first one does"
        assert result.calls == 1 + calls + 1 + calls, "every call of the step counts"


def test_what_is_not_profiled_or_not_read_is_told_and_no_zero(stage, monkeypatch, snapshot):
    def fail():
        raise RuntimeError("the iterator\nis at its end")

    passes = {
        "a call of many seconds": stage(seconds=6.0, data=BUSY),
        "no kernel": stage(data=trace({})),
        "an error": stage(step=fail),
        "no trace": stage(data=b"\x0f"),
    }
    monkeypatch.setattr(on_device, "LARGEST_BYTES", 10)
    passes["a large trace"] = stage(data=BUSY)
    assert (passes["a call of many seconds"].calls, passes["a call of many seconds"].profiled) == (1, [])
    assert passes["an error"].calls == 1, "its call counts"
    assert all(one.numbers == {} for one in passes.values())
    assert {case: one.values[-1] for case, one in passes.items()} == snapshot


def test_who_may_profile_is_told_with_what_changes_it(tmp_path, snapshot):
    driver = tmp_path / "params"
    driver.write_text("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    assert on_device.explain_no_kernel(driver) == snapshot
    driver.write_text("RmProfilingAdminOnly: 0\n")
    assert "NVreg_RestrictProfilingToAdminUsers" not in on_device.explain_no_kernel(driver)


def test_from_2_2_on_a_session_hands_over_what_it_saw(monkeypatch):
    started = []

    class Session:
        def start(self, *arguments):
            started.append(arguments)

        def stop(self):
            return b"seen"

    internal = Thing(_pywrap_profiler=Thing(ProfilerSession=Session))
    monkeypatch.setitem(sys.modules, "tensorflow.python.profiler.internal", internal)
    for name in ("tensorflow", "tensorflow.python", "tensorflow.python.profiler"):
        monkeypatch.setitem(sys.modules, name, Thing())
    for options in ({}, {"ProfilerOptions": lambda **options: Thing(_asdict=lambda: options)}):  # from 2.3 on
        session = on_device.profiler(Thing(profiler=Thing(experimental=Thing(**options))))
        assert session(lambda: None, 1)[1] == b"seen"
    assert started == [("",), ("", {"host_tracer_level": 1})]


def test_a_session_is_stopped_although_the_step_raises():
    stopped = []
    session = on_device.make_session_runner(lambda: Thing(start=lambda: None, stop=lambda: stopped.append(True)), ())
    with pytest.raises(ZeroDivisionError):
        session(lambda: 1 / 0, 1)
    assert stopped == [True]


def test_a_pass_that_is_stuck_ends_the_process_even_in_a_library():
    hang = "import ctypes; ctypes.PyDLL(None).sleep(60)"  # which keeps Python itself from running
    code = f"from kit import on_device; on_device.STUCK_SECONDS = 0.1\nwith on_device.end_if_stuck():\n    {hang}"
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=on_device.__file__[: -len("kit/on_device.py")], check=False
    )
    assert completed.returncode == -signal.SIGALRM


def test_the_parts_never_exceed_the_whole():
    activity = Seen([(0, 30 * MS)], [(10 * MS, 50 * MS)], None)
    numbers = on_device.resources(on_device.Pass(1, 0.001, 0.001, activity), 1)
    assert numbers["profiled_seconds"] == pytest.approx(0.05)
    assert (numbers["profiled_kernel_seconds"], numbers["profiled_copy_seconds"]) == pytest.approx((0.03, 0.02))


def test_a_first_launch_on_a_gpu_alone_looks_after_it_has_measured(monkeypatch):
    events = []
    monkeypatch.setitem(sys.modules, "tensorflow", TF)
    monkeypatch.setattr(on_device, "look", lambda tf, step, steps, emit: events.append("look") or 5)
    for device, thorough, looks in [("gpu", True, 1), ("gpu", False, 0), ("cpu", True, 0)]:
        events.clear()
        options = {"device_name": device, "thorough": thorough}
        bench = Bench(lambda event, **_: events.append(event), Document(), Telemetry(), axes={}, **options)
        taken = bench.measure(lambda: None, steps=3, document=6)
        assert events.count("look") == looks
        counting = 3 if thorough else 0
        assert taken == (2 + counting + 5 * looks) * 3, "the steps that the framework counts"
        assert "samples" not in events[events.index("look") :] if looks else True

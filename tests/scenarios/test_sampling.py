"""The timed loops, by a clock that moves only when a step does."""

import gc
import inspect
from contextlib import contextmanager

import pytest
from kit.sampling import FEWEST_SAMPLES, PATIENCE, Document, TimeBounded, fetch, time_calls


class Work:
    """A step and its clock: each call takes as long as `lengths` says, and in the end always as long as its last.

    It stands in for the telemetry too: `watched` is how many calls there were when that began, and when it ended.
    """

    def __init__(self, *lengths):
        self.now = 0.0
        self.calls = 0
        self.lengths = lengths
        self.phases = {}
        self.watched = []

    def clock(self):
        return self.now

    def step(self):
        self.now += self.lengths[min(self.calls, len(self.lengths) - 1)]
        self.calls += 1

    @contextmanager
    def phase(self, name):
        before = self.calls
        yield
        self.phases[name] = self.calls - before

    def __enter__(self):
        self.watched.append(self.calls)

    def __exit__(self, *_):
        self.watched.append(self.calls)

    def run(self, sampling, count=1):
        return sampling.run(self.step, count, self.phase, self, self.clock)


@pytest.mark.parametrize("length", [1e-6, 0.0002, 0.006, 0.049, 0.051, 3.0])
def test_a_sample_is_at_least_as_long_as_asked_or_one_call(length):
    measurement = Work(length).run(TimeBounded(0.5, 1.0, 0.05))
    assert all(seconds >= 0.05 for seconds in measurement.seconds)
    assert measurement.calls == 1 or measurement.calls * length < 2 * 0.05


def test_the_first_slow_calls_do_not_set_the_size_of_a_sample():
    measurement = Work(0.8, 0.3, 0.005).run(TimeBounded(0.5, 1.0, 0.05))
    assert measurement.calls in (11, 12)
    assert max(measurement.seconds) < 0.1


def test_what_was_left_before_is_not_collected_while_steps_are_timed():
    collections = []

    def note(when, info):
        if when == "stop" and info["generation"] == 2:
            collections.append(work.calls)

    work = Work(0.01)
    gc.callbacks.append(note)
    try:
        work.run(TimeBounded(0.5, 1.0, 0.05))
    finally:
        gc.callbacks.remove(note)
    assert collections == [0]


def test_a_step_that_is_slow_for_ever_is_not_warmed_up_for_ever():
    assert Work(8.0, 3.0, 1.0, 0.3, 0.1).run(TimeBounded(0.5, 1.0, 0.05)).before == 1


def test_sampling_goes_on_until_the_time_is_measured():
    measurement = Work(0.005).run(TimeBounded(0.5, 1.0, 0.05))
    assert 1.0 <= sum(measurement.seconds) < 1.0 + measurement.seconds[-1] + 1e-9


def test_the_calls_before_the_measurement_are_counted_and_warm_up_lasts():
    work = Work(0.005)
    measurement = work.run(TimeBounded(0.5, 1.0, 0.05))
    assert measurement.before == work.phases["warm up"] >= 100
    assert work.phases["steady state"] == measurement.calls * len(measurement.seconds)


def test_a_size_that_the_job_fixes_is_kept():
    measurement = Work(0.5, 0.001).run(TimeBounded(0.0, 0.1, 0.05, calls_per_sample=7))
    assert (measurement.calls, measurement.before) == (7, 7)
    assert measurement.seconds[0] == pytest.approx(0.007)


def test_a_slow_step_still_gives_the_fewest_samples():
    assert len(Work(2.0).run(TimeBounded(0.5, 1.0, 0.05)).seconds) == FEWEST_SAMPLES


def test_a_very_slow_step_ends_sooner():
    measurement = Work(60.0).run(TimeBounded(0.5, 1.0, 0.05))
    assert len(measurement.seconds) == 1
    assert PATIENCE * 1.0 < 60.0


def test_a_step_that_no_clock_sees_still_ends():
    class Coarse(Work):
        def clock(self):
            return self.now // 0.01 * 0.01

    assert Coarse(1e-6).run(TimeBounded(0.0, 0.1, 0.05)).calls > 10_000


def test_the_document_times_exactly_its_calls_one_by_one():
    work = Work(0.3, 0.001)
    measurement = work.run(Document(), count=200)
    assert (work.calls, measurement.calls, measurement.before) == (200, 1, 0)
    assert measurement.seconds[0] == pytest.approx(0.3)
    assert len(measurement.seconds) == 200


@pytest.mark.parametrize("sampling", [TimeBounded(0.5, 1.0, 0.05), Document()])
def test_telemetry_is_around_the_timed_calls_and_no_others(sampling):
    work = Work(0.005)
    measurement = work.run(sampling, count=20)
    assert work.watched == [measurement.before, work.calls]


class Frames(Work):
    """A step that keeps the names of the functions it stands on."""

    def step(self):
        super().step()
        self.names = [frame.function for frame in inspect.stack(context=0)]


@pytest.mark.parametrize("sampling", [TimeBounded(0.0, 0.1, 0.05), Document()])
def test_under_a_step_there_is_the_loop_and_nothing_else(sampling):
    """TensorFlow walks the stack for every operation, so frames are part of what is measured."""
    work = Frames(0.005)
    work.run(sampling, count=3)
    loop = ["_measure"] if isinstance(sampling, TimeBounded) else []
    names = work.names[: work.names.index("test_under_a_step_there_is_the_loop_and_nothing_else")]
    assert names == ["step", "time_calls", *loop, "run", "run"]


class Tensor:
    """A result whose way to the host takes a second."""

    def __init__(self, work):
        self.work = work

    def numpy(self):
        self.work.now += 1.0


class Holder:
    """An array of 2.4's NumPy API, which holds a tensor."""

    def __init__(self, data):
        self.data = data


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: [1.0, t], lambda t: (None, {"loss": t}), Holder])
def test_the_way_of_the_last_result_to_the_host_is_timed(wrap):
    work = Work(0.0)
    result = wrap(Tensor(work))
    assert time_calls(lambda: result, 3, work.clock) == (1.0, result)


@pytest.mark.parametrize("value", [None, 0.5, "text", object()])
def test_other_results_are_let_be(value):
    fetch(value)

"""The timed loops, by a clock that moves only when a step does."""

import math
import sys
from contextlib import contextmanager, nullcontext
from itertools import pairwise

import pytest
from kit import sampling as kit_sampling
from kit.fetching import fetch
from kit.sampling import (
    FEWEST_SAMPLES,
    MOST_SINGLE_STEPS,
    PATIENCE,
    Document,
    TimeBounded,
    count_slow_calls,
    sample_memory,
    time_calls,
)
from kit.words import END


class Work:
    """A step and its clock: each call takes as long as `lengths` says, and in the end always as long as its last.

    It stands in for the telemetry too: `watched` is how many calls there were when that began, and when it ended. And
    for whoever tells it its turns: `words` are what it is told, one after the other, `told` is what it tells, and the
    first calls after a word take `switched` times as long.
    """

    def __init__(self, *lengths, words=(), switched=()):
        self.now = 0.0
        self.calls = 0
        self.lengths = lengths
        self.phases = {}
        self.watched = []
        self.words = list(words)
        self.told = []
        self.switched = switched
        self.since = math.inf

    def clock(self):
        return self.now

    def step(self):
        slow = self.switched[self.since] if self.since < len(self.switched) else 1.0
        self.now += slow * self.lengths[min(self.calls, len(self.lengths) - 1)]
        self.calls += 1
        self.since += 1

    @contextmanager
    def phase(self, name):
        before = self.calls
        yield
        self.phases[name] = self.phases.get(name, 0) + self.calls - before

    def __enter__(self):
        self.watched.append(self.calls)

    def __exit__(self, *_):
        self.watched.append(self.calls)

    def wait(self, samples, calls):
        self.told.append((self.calls, [sample.seconds for sample in samples]))
        self.now += 3.0
        self.since = 0
        return self.words.pop(0)

    def run(self, sampling, count=1):
        return sampling.run(self.step, count, self.phase, lambda: self, self.wait, clock=self.clock)


def lengths(measurement):
    return [sample.seconds for sample in measurement.samples]


def test_a_sample_is_as_long_as_asked_whatever_the_first_calls_take():
    for length in (1e-5, 0.0002, 0.006, 0.049, 0.051, 3.0):
        measurement = Work(length).run(TimeBounded(0.5, 1.0, 0.05))
        assert all(seconds >= 0.05 for seconds in lengths(measurement))
        assert measurement.calls == 1 or measurement.calls * length < 2 * 0.05
    measurement = Work(0.8, 0.3, 0.005).run(TimeBounded(0.5, 1.0, 0.05))
    assert measurement.calls in (11, 12)
    assert max(lengths(measurement)) < 0.1


def test_how_many_calls_of_a_slow_step_warm_it_up():
    """One that is slow for ever; one without and with a known number of calls; and a fixed number."""
    for seconds, sampling, calls in [
        ((8.0, 3.0, 1.0, 0.3, 0.1), TimeBounded(0.5, 1.0, 0.05), 1),
        ((0.3,), TimeBounded(0.1, 1.0, 0.05), 2),
        ((0.3,), TimeBounded(0.1, 1.0, 0.05, calls_per_sample=1), 1),
        ((0.5, 0.001), TimeBounded(0.0, 0.1, 0.05, calls_per_sample=7), 7),
    ]:
        work = Work(*seconds)
        measurement = work.run(sampling)
        assert work.phases["warm up"] == calls
    assert measurement.calls == 7
    assert lengths(measurement)[0] == pytest.approx(0.007)


def test_the_calls_before_the_measurement_are_counted_and_sampling_goes_on_until_the_time_is_measured():
    work = Work(0.005)
    measurement = work.run(TimeBounded(0.5, 1.0, 0.05))
    assert work.phases["warm up"] >= 100
    assert (measurement.made, measurement.warm) == (work.calls, work.phases["warm up"])
    assert work.phases["steady state"] == measurement.calls * len(lengths(measurement))
    assert 1.0 <= sum(lengths(measurement)) < 1.0 + lengths(measurement)[-1] + 1e-9


def test_a_slow_step_gives_few_samples_and_one_that_no_clock_sees_still_ends():
    assert len(Work(2.0).run(TimeBounded(0.5, 1.0, 0.05)).samples) == FEWEST_SAMPLES
    assert len(Work(60.0).run(TimeBounded(0.5, 1.0, 0.05)).samples) == 1
    assert PATIENCE * 1.0 < 60.0

    class Coarse(Work):
        def clock(self):
            return self.now // 0.01 * 0.01

    assert Coarse(1e-6).run(TimeBounded(0.0, 0.1, 0.05)).calls > 10_000


def test_the_document_times_its_calls_one_by_one_and_telemetry_is_around_these():
    work = Work(0.3, 0.001)
    measurement = work.run(Document(), count=200)
    assert (work.calls, measurement.calls, measurement.made) == (200, 1, 200)
    assert lengths(measurement)[0] == pytest.approx(0.3)
    assert len(lengths(measurement)) == 200
    for sampling in (TimeBounded(0.5, 1.0, 0.05), Document()):
        work = Work(0.005)
        measurement = work.run(sampling, count=20)
        assert work.watched == [work.phases.get("warm up", 0), work.calls]
        assert measurement.made == work.calls


TURNS = TimeBounded(0.5, 1.0, 0.05, turns=7)


def test_a_turn_is_a_sample_that_is_told_before_the_next_word():
    work = Work(0.005, words=[1] * 6 + [3, 1, END])
    measurement = work.run(TURNS)
    begun, *turns = work.told
    assert begun == (work.phases["warm up"], [])
    seconds = pytest.approx(0.005 * measurement.calls)
    assert [samples for _, samples in turns] == [[seconds]] * 6 + [[seconds] * 3, [seconds]]
    assert lengths(measurement) == []
    assert measurement.made == work.calls
    in_samples = measurement.calls * (6 + 3 + 1)
    assert 8 <= measurement.untimed == work.calls - measurement.warm - in_samples
    nothing = Work(0.005, words=[END]).run(TURNS)
    assert (nothing.samples, nothing.result) == ([], None)
    # only the first sample of a turn is watched
    starts, ends = work.watched[::2], work.watched[1::2]
    assert [end - start for start, end in zip(starts, ends, strict=True)] == [measurement.calls] * 8
    assert ends == [calls - 2 * measurement.calls * (at == 6) for at, (calls, _) in enumerate(work.told[1:])]


def test_as_many_calls_are_left_out_as_the_first_turns_show_to_be_slow(monkeypatch):
    for length, switched, first, later in [
        (0.005, [], 8, 1),
        (0.005, [1.04], 8, 1),
        (0.005, [2.0, 1.5, 1.04], 8, 3),
        (0.005, [2.0, 1.0, 2.0], 8, 1),  # the third is no matter of the switch
        (0.005, [2.0] * 20, 8, 1),  # nothing is slower than the sample: all of it is
        (0.02, [2.0] * 4, 3, 3),  # no more of them than a sample holds
        (0.15, [2.0, 2.0], 1, 1),
        (0.25, [2.0], 0, 0),
    ]:
        work = Work(length, words=[1] * 8 + [END], switched=switched)
        monkeypatch.setattr(kit_sampling, "process_time", work.clock)
        work.run(TURNS)
        between = [start - before for start, (before, _) in zip(work.watched[::2], work.told, strict=False)]
        assert between == [first] * 5 + [later] * 3, (length, switched)


def test_a_call_is_slow_by_its_median_over_the_turns():
    leads = [[1.2, 1.0], [1.0, 1.0], [1.1, 9.0], [1.05, 1.0], [0.9, 1.02]]
    assert count_slow_calls(leads, [1.0, 1.0, 1.0, 5.0, 1.0]) == 1
    assert count_slow_calls([[1.2, 1.04], *leads[1:], [1.2, 1.04], [1.2, 1.04]], [1.0] * 7) == 2


def test_garbage_is_collected_before_steps_are_timed_and_at_no_other_time(monkeypatch):
    collected = []
    monkeypatch.setattr(kit_sampling.gc, "collect", lambda: collected.append(work.calls))
    for sampling, collects_warm in {TURNS: True, TimeBounded(0.5, 1.0, 0.05): False}.items():
        collected.clear()
        work = Work(0.005, words=[1, 3, END])
        work.run(sampling)
        assert collected == [0, work.phases["warm up"]][: 1 + collects_warm]


def remembered(work, calls):
    return sample_memory(work.step, calls, work.phase, lambda: work, lambda: 7 * work.calls, clock=work.clock)


def test_memory_is_read_at_points_that_lie_evenly_over_the_calls_after_the_warm_up():
    for calls, count in {2: 3, 19: 20, 20: 21, 1234: 21}.items():
        work = Work(0.005)
        measurement, points = remembered(work, calls)
        warm = math.ceil(calls / 10)
        assert work.phases == {"warm up": warm, "steady state": calls}
        assert (measurement.warm, measurement.made) == (warm, warm + calls)
        assert (len(points), points[-1][0]) == (count, calls)
        steps = [after - before for (before, _), (after, _) in pairwise(points)]
        assert max(steps) - min(steps) <= 1
        assert lengths(measurement) == pytest.approx([0.005 * step for step in steps])
        assert [held for _, held in points] == [7 * (warm + at) for at, _ in points]


def test_before_each_point_of_memory_garbage_is_collected_and_nothing_is_watched(monkeypatch):
    collected = []
    monkeypatch.setattr(kit_sampling.gc, "collect", lambda: collected.append((work.calls, len(work.watched) % 2)))
    work = Work(0.005)
    _, points = remembered(work, 40)
    assert collected == [(0, 0), *((4 + at, 0) for at, _ in points)]


class Frames(Work):
    def step(self):
        super().step()
        self.names, frame = [], sys._getframe()
        while frame:
            self.names.append(frame.f_code.co_name)
            frame = frame.f_back


def test_under_a_step_there_is_the_loop_and_nothing_else():
    """TensorFlow walks the stack for every operation, so frames are part of what is measured."""
    for sampling, words, loop in [
        (TimeBounded(0.0, 0.1, 0.05), [], ["_measure"]),
        (TURNS, [2, END], ["_take_turns"]),
        (TURNS, [1, END], ["_take_turns"]),
        (Document(), [], []),
    ]:
        work = Frames(0.005, words=words)
        work.run(sampling, count=3)
        names = work.names[: work.names.index("test_under_a_step_there_is_the_loop_and_nothing_else")]
        assert names == ["step", "time_calls", *loop, "run", "run"]


class Tensor:
    def __init__(self, work):
        self.work = work

    def numpy(self):
        self.work.now += 1.0


def test_the_way_of_the_last_result_to_the_host_is_timed():
    work = Work(0.0)
    result = None, {"loss": Tensor(work)}
    sample, last = time_calls(lambda: result, 3, fetch, work.clock)
    assert (sample.seconds, last) == (1.0, result)


def test_what_a_sample_used_of_cpus_is_read_outside_of_its_time(monkeypatch):
    work = Work(0.25)

    def used():
        work.now += 7.0
        return work.calls * 0.125

    monkeypatch.setattr(kit_sampling, "process_time", used)
    assert time_calls(work.step, 3, fetch, work.clock) == ((0.75, 0.375), None)


def test_single_steps_are_from_the_whole_measurement_and_not_too_many():
    for length, between in {1e-5: 50, 1e-3: 0}.items():
        work = Work(length)
        sampling = TimeBounded(0.0, 1.0, 0.05, calls_per_sample=1)
        measured = sampling.run(work.step, None, work.phase, nullcontext, work.wait, fetch=fetch, clock=work.clock)
        assert measured.calls == 1
        assert len(measured.samples) == pytest.approx(min(MOST_SINGLE_STEPS, 1.0 / length), rel=0.05)
        assert all(sample.seconds == pytest.approx(length) for sample in measured.samples)
        assert measured.untimed == between * len(measured.samples)
        assert measured.made == work.calls
        assert work.phases["steady state"] == len(measured.samples) + measured.untimed

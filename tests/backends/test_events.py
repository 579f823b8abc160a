import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.events import LINE_LIMIT, NAME_LIMIT, NAMED_LIMITS, RESOURCES, TOTAL_LIMIT, Events
from harness.model.gpu import UsedGpu
from harness.model.launch import Sample, Status


def line(**event):
    return json.dumps(event).encode() + b"\n"


def read(*chunks):
    events = Events()
    for chunk in chunks:
        events.feed(chunk)
    return events


def state(events):
    return {name: value for name, value in vars(events).items() if name != "_total"}


WELL_FORMED = [
    line(event="hello", schema=1, time=10.5, started=10.0, pid=7, python="3.7.16", affinity=[1]),
    line(event="pins", packages={"numpy": "1.16.4"}),
    line(event="phase", name="import", start=10.5, seconds=0.8),
    line(event="phase", name="import", start=12.5, seconds=0.2, cpu_seconds=0.25),
    line(event="phase", name="build", start=13.5, seconds=2, cpu_seconds=1),
    line(event="phase", name="build", start=15.5, seconds=1, cpu_seconds=0.5),
    line(event="samples", name="step", samples=[{"seconds": 0.05, "steps": 6}], calls_per_sample=6),
    line(event="memory", points=[[0, 10**9], [50, 10**9 + 4096]]),
    line(event="observation", name="traces", value=[1, {"a": None}]),
    line(event="fingerprint", values={"parameters": 162_945}),
    line(event="artifact", name="profile.json", bytes=3),
    line(event="resources", cpu_seconds=2.5, wall_seconds=3, max_rss_bytes=10**9, later="x"),
    line(event="gpus", gpus=[{"name": "NVIDIA A100", "capability": "8.0", "pci": "0000:3B:00.0", "later": 1}]),
    line(event="something newer", values=3),
    line(event="end", status="ok", reason="", traceback=None),
]


def test_every_event_is_taken():
    events = read(b"".join(WELL_FORMED))
    assert not events.error
    assert not events.torn
    assert events.hello["python"] == "3.7.16"
    assert events.pins == {"numpy": "1.16.4"}
    assert events.phases == {"import": 1.0, "build": 3.0}
    assert events.phases_cpu == {"import": 0.25, "build": 1.5}
    assert events.samples == [Sample(0.05, 6)]
    assert events.calls_per_sample == 6
    assert events.memory == [(0, 10**9), (50, 10**9 + 4096)]
    assert events.observations == {"traces": [1, {"a": None}]}
    assert events.fingerprint == {"parameters": 162_945}
    assert events.artifacts == {"profile.json"}
    assert events.resources == {"cpu_seconds": 2.5, "wall_seconds": 3.0, "max_rss_bytes": 1e9}
    assert events.gpus == (UsedGpu("NVIDIA A100", (8, 0), "0000:3b:00.0"),)
    assert events.status is Status.OK


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"hello\n", "a line is not JSON: hello"),
        (b"\n", "not JSON"),
        (b"\xff\n", r"not JSON: \xff"),
        (b"\x1b[31mred\n", r"not JSON: \x1b[31mred"),
        (b"[1]\n", "isn't an event"),
        (b"{}\n", "isn't an event"),
        (b'{"event": 3}\n', "isn't an event"),
        (b'{"event": "observation", "name": "x", "value": NaN}\n', "not JSON"),
        (b'{"event": "observation", "name": "x", "value": 1e999}\n', "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b'{"event": "x", "value": ' + b"[" * 40 + b"]" * 40 + b"}\n", "nested deeper"),
        (line(event="samples", samples=[{"seconds": 0, "steps": 1}]), "isn't positive"),
        (line(event="samples", samples=[{"seconds": -0.1, "steps": 1}]), "isn't positive"),
        (line(event="samples", samples=[{"seconds": 0.1, "steps": 0}]), "steps is not a positive"),
        *[
            (line(event="samples", samples=[{"seconds": seconds, "steps": 1}]), "seconds")
            for seconds in (1e200, 1e299, 1e-300, 5e-324, "nan")
        ],
        (line(event="samples", samples=[{"seconds": 1, "steps": 10**60}]), "steps is not a positive"),
        (line(event="samples", samples=[{"seconds": 1, "steps": 1, "cpu_seconds": 5e-324}]), "too close to zero"),
        (line(event="phase", name="x", seconds=1e200), "seconds is not"),
        (line(event="phase", name="x", seconds=5e-324), "too close to zero"),
        *[
            (line(event="observation", name="n", value=value), "a number is not within ±1.00·10¹⁰⁰")
            for value in (10**400, -(10**400), 1e200, [{"a": [1e200]}])
        ],
        (line(event="fingerprint", values={"parameters": 10**400}), "a number is not within ±1.00·10¹⁰⁰"),
        (line(event="samples", samples=[{"seconds": 0.1, "steps": 1.5}]), "steps is not a positive"),
        (line(event="samples", samples=[{"seconds": True, "steps": 1}]), "seconds is not a valid number"),
        (line(event="samples", samples={"seconds": 1}), "not a list of objects"),
        (line(event="samples", samples=[], calls_per_sample="many"), "calls_per_sample"),
        *[
            (line(event="memory", points=points), "points are not pairs of whole numbers")
            for points in (
                None,
                3,
                [3],
                [[1]],
                [[1, 2, 3]],
                [[0, 1.5]],
                [[0, -1]],
                [[True, 1]],
                [["0", 1]],
                [[0, 2**63]],
            )
        ],
        (line(event="pins", packages={"numpy": 1}), "numpy is not text"),
        (line(event="phase", name="x", seconds=-1), "seconds is negative"),
        (line(event="phase", name="x", seconds=1, cpu_seconds=-0.5), "cpu_seconds is negative"),
        (line(event="phase", name="x", seconds=1, cpu_seconds="1"), "cpu_seconds is not a valid number"),
        (line(event="phase", name="x", seconds=1, cpu_seconds=True), "cpu_seconds is not a valid number"),
        (b'{"event": "phase", "name": "x", "seconds": 1, "cpu_seconds": 1e999}\n', "not JSON"),
        *[(line(event="resources", **{key: -1}), f"{key} is negative") for key in RESOURCES],
        (line(event="resources", steady_all_cpus="two"), "steady_all_cpus is not a valid number"),
        (line(event="resources", load_before=10**301), "load_before is not a valid number"),
        (line(event="fingerprint", values=[1]), "not an object"),
        (line(event="gpus", gpus={"name": "x"}), "gpus is not a list of objects"),
        (line(event="gpus", gpus=[{"capability": "8.0"}]), "name is not text"),
        (line(event="gpus", gpus=[{"name": "x", "capability": 8.0}]), "capability is not text"),
        (
            line(event="gpus", gpus=[{"name": "x", "capability": "8"}]),
            "capability must be a compute capability such as 8.0",
        ),
        (line(event="gpus", gpus=[{"name": "x", "capability": "8.0", "pci": 1}]), "pci is not text"),
        (line(event="hello", time="now"), "time is not a valid number"),
        (line(event="end", status="splendid"), "unknown status"),
        (line(event="end", status=["ok"]), "unknown status"),
        (b"x" * (LINE_LIMIT + 1), "longer than 1 MiB: xxx"),
    ],
)
def test_a_line_that_is_no_event_is_the_error_and_the_last_that_is_read(bad, why):
    events = read(WELL_FORMED[1], bad, WELL_FORMED[-1])
    assert why in events.error
    assert len(events.error) < 300
    assert events.error.isprintable()
    assert events.pins == {"numpy": "1.16.4"}
    assert events.status is None


def test_what_the_worker_cannot_know_it_leaves_out():
    known = dict.fromkeys(RESOURCES, 0.5)
    assert read(line(event="resources", **known)).resources == known
    assert read(line(event="resources", load_before=None, wall_seconds=2)).resources == {"wall_seconds": 2.0}
    assert read(line(event="phase", name="x", seconds=1, cpu_seconds=None)).phases_cpu == {}


def test_what_the_driver_does_not_tell_of_a_gpu_is_empty():
    told = [{"name": "x" * 1000 + "\x1b", "capability": "12.0"}, {"name": "y", "capability": "7.5", "pci": "no"}]
    long, short = read(line(event="gpus", gpus=told)).gpus
    assert (len(long.name), long.capability, long.pci) == (100, (12, 0), "")
    assert short == UsedGpu("y", (7, 5))


def test_a_flood_of_events_ends_at_the_limit():
    flood = line(event="?", padding="x" * 1000) * 1000
    events = Events()
    fed = 0
    while not events.feed(flood):
        fed += len(flood)
    assert fed <= TOTAL_LIMIT
    assert "more than 16 MiB" in events.error


def test_half_a_surrogate_pair_can_be_written_to_a_file():
    events = read(b'{"event": "end", "status": "failed", "reason": "\\ud83d \\ud83d\\ude00"}\n')
    assert events.reason == "? 😀"


def test_a_launch_ends_once():
    events = read(line(event="end", status="failed", reason="first"), line(event="end", status="ok"))
    assert (events.status, events.reason) == (Status.FAILED, "first")


def turn(*seconds):
    return line(event="turn", samples=[{"seconds": second, "steps": 1, "cpu_seconds": 0.5} for second in seconds])


def test_turns_are_taken_when_they_are_asked_for():
    events = Events(takes_turns=True)
    assert events.feed(turn())
    for seconds in (1.0, 2.0):
        events.ask("turn")
        assert events.feed(turn(seconds))
    for count in (1, 2):
        events.ask(f"alone {count}")
        assert events.feed(turn(*[3.0] * count))
    assert events.samples == [Sample(1.0, 1, 0.5), Sample(2.0, 1, 0.5)]
    assert events.alone == [Sample(3.0, 1, 0.5)] * 3
    events.ask("end")
    assert events.feed(turn(4.0))
    assert "a turn that wasn't requested" in events.error


@pytest.mark.parametrize("early", [line(event="pins", packages={}), b"{", turn(1.0)])
def test_what_is_said_before_it_was_asked_for_is_no_event(early):
    events = Events(takes_turns=True)
    events.feed(turn())
    events.feed(early)
    events.ask("turn")
    assert "it wrote a line while it waited for an answer: {" in events.error
    assert not events.is_waiting


@pytest.mark.parametrize("word", ["turn", "alone 3"])
def test_a_turn_with_other_samples_than_were_asked_for_is_no_event(word):
    events = Events(takes_turns=True)
    events.feed(turn())
    events.ask(word)
    events.feed(turn(1.0, 2.0))
    assert "of this turn" in events.error


def samples():
    return line(event="samples", samples=[{"seconds": 1.0, "steps": 1}])


def test_a_launch_that_is_to_take_turns_may_measure_without_them():
    events = Events(takes_turns=True)
    assert not events.feed(samples())
    assert (events.error, events.samples, events.is_waiting) == ("", [Sample(1.0, 1)], False)


def test_a_launch_takes_turns_or_it_does_not():
    events = Events(takes_turns=True)
    events.feed(samples() + turn())
    assert "a line has samples before the first turn" in events.error
    events = Events(takes_turns=True)
    events.feed(turn())
    events.ask("end")
    events.feed(samples())
    assert "a line has samples that aren't from a turn" in events.error


def test_a_launch_may_wait_before_it_measures_in_turns_or_without():
    for told, asked in ((turn(), ["turn"]), (samples(), [])):
        events = Events(takes_turns=True)
        assert events.feed(line(event="ready"))
        events.ask("measure")
        assert events.feed(told) == bool(asked)
        for word in asked:
            events.ask(word)
            assert events.feed(turn(1.0))
        assert events.samples == [Sample(1.0, 1, 0.5 if asked else None)]
        assert not events.error


@pytest.mark.parametrize(
    ("said", "word"), [(line(event="ready"), "measure"), (turn(), "turn"), (samples(), ""), (b"", "")]
)
def test_a_launch_waits_once_and_before_it_measures(said, word):
    events = Events(takes_turns=bool(said))
    events.feed(said)
    if word:
        events.ask(word)
    events.feed(line(event="ready"))
    assert "without interleaving" in events.error
    assert not events.is_waiting


def test_a_launch_without_turns_has_none():
    assert "a turn that wasn't requested" in read(turn()).error


def test_a_line_without_its_end_is_torn():
    assert read(b'{"event"').torn


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
keys = st.sampled_from(
    ["name", "seconds", "cpu_seconds", "samples", "values", "packages", "status", "reason", "time", "steps"]
)
some_events = st.builds(
    lambda kind, rest: json.dumps({**rest, "event": kind}).encode(),
    st.sampled_from(
        ["hello", "pins", "phase", "samples", "observation", "fingerprint", "artifact", "resources", "end"]
    ),
    st.dictionaries(keys, values),
)
streams = st.lists(some_events | st.sampled_from(WELL_FORMED) | st.binary(max_size=40)).map(b"\n".join)


@given(streams, st.lists(st.integers(0, 2000)))
def test_however_the_bytes_are_cut_the_outcome_is_the_same(stream, cuts):
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[start:end] for start, end in pairwise(places)]
    assert state(read(*chunks)) == state(read(stream)) == state(read(*(bytes([byte]) for byte in stream)))


@given(streams)
def test_what_was_read_can_be_stored(stream):
    events = read(stream)
    numbers = [events.phases, events.phases_cpu, events.resources]
    text = json.dumps([events.observations, events.fingerprint, events.hello, events.pins, *numbers], allow_nan=False)
    text.encode("utf-8")


NAMED = {
    "phases": lambda name: line(event="phase", name=name, start=0, seconds=1),
    "observations": lambda name: line(event="observation", name=name, value=1),
    "artifacts": lambda name: line(event="artifact", name=name, bytes=1),
    "packages": lambda name: line(event="pins", packages={name: "1"}),
}


@pytest.mark.parametrize("kind", NAMED_LIMITS)
def test_a_launch_names_so_many_things_and_no_more(kind):
    events = read(*(NAMED[kind](f"name {i}") for i in range(NAMED_LIMITS[kind])), NAMED[kind]("name 0"))
    assert not events.error
    events.feed(NAMED[kind]("one more"))
    assert f"there are more than {NAMED_LIMITS[kind]:,} {kind}" in events.error


@pytest.mark.parametrize("kind", NAMED_LIMITS)
def test_a_name_is_so_long_and_no_longer(kind):
    assert not read(NAMED[kind]("n" * NAME_LIMIT)).error
    assert "a name is longer than 200 characters" in read(NAMED[kind]("n" * (NAME_LIMIT + 1))).error

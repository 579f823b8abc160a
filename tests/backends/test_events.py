import json
from itertools import pairwise

from hypothesis import given, settings
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


def samples(**changes):
    """Return an event with one sample."""
    return line(event="samples", samples=[{"seconds": 1, "steps": 1, **changes}])


def phase(**changes):
    return line(event="phase", **{"name": "x", "seconds": 1, **changes})


def gpu(**changes):
    return line(event="gpus", gpus=[{"name": "x", "capability": "8.0", **changes}])


BAD = [
    b"hello\n",
    b"\n",
    b"\xff\n",
    b"\x1b[31mred\n",
    b"[1]\n",
    b"{}\n",
    b'{"event": 3}\n',
    b'{"event": "observation", "name": "x", "value": NaN}\n',
    b'{"event": "observation", "name": "x", "value": 1e999}\n',
    b"[" * 100_000 + b"\n",
    b'{"event": "x", "value": ' + b"[" * 40 + b"]" * 40 + b"}\n",
    *(samples(seconds=seconds) for seconds in (0, -0.1, 1e200, 1e299, 1e-300, 5e-324, "nan", True)),
    *(samples(steps=steps) for steps in (0, 10**60, 1.5)),
    samples(cpu_seconds=5e-324),
    line(event="samples", samples={"seconds": 1}),
    line(event="samples", samples=[], calls_per_sample="many"),
    *(phase(seconds=seconds) for seconds in (1e200, 5e-324, -1)),
    *(phase(cpu_seconds=seconds) for seconds in (-0.5, "1", True)),
    b'{"event": "phase", "name": "x", "seconds": 1, "cpu_seconds": 1e999}\n',
    *(line(event="observation", name="n", value=value) for value in (10**400, -(10**400), 1e200, [{"a": [1e200]}])),
    line(event="fingerprint", values={"parameters": 10**400}),
    line(event="fingerprint", values=[1]),
    *(
        line(event="memory", points=points)
        for points in (None, 3, [3], [[1]], [[1, 2, 3]], [[0, 1.5]], [[0, -1]], [[True, 1]], [["0", 1]], [[0, 2**63]])
    ),
    line(event="pins", packages={"numpy": 1}),
    line(event="resources", cpu_seconds=-1),
    line(event="resources", steady_all_cpus="two"),
    line(event="resources", load_before=10**301),
    line(event="gpus", gpus={"name": "x"}),
    line(event="gpus", gpus=[{"capability": "8.0"}]),
    *(gpu(capability=capability) for capability in (8.0, "8")),
    gpu(pci=1),
    line(event="hello", time="now"),
    line(event="end", status="splendid"),
    line(event="end", status=["ok"]),
    b"x" * (LINE_LIMIT + 1),
]


def test_a_line_that_is_no_event_is_the_error_and_the_last_that_is_read(snapshot):
    errors = []
    for bad in BAD:
        events = read(WELL_FORMED[1], bad, WELL_FORMED[-1])
        assert events.error, bad[:100]
        assert len(events.error) < 300
        assert events.error.isprintable()
        assert events.pins == {"numpy": "1.16.4"}
        assert events.status is None
        errors.append(events.error[:150])
    assert errors == snapshot
    for key in RESOURCES:
        assert f"{key} is negative" in read(line(event="resources", **{key: -1})).error


def test_what_is_not_known_is_left_out_and_a_launch_ends_once():
    values = dict.fromkeys(RESOURCES, 0.5)
    assert read(line(event="resources", **values)).resources == values
    assert read(line(event="resources", load_before=None, wall_seconds=2)).resources == {"wall_seconds": 2.0}
    assert read(line(event="phase", name="x", seconds=1, cpu_seconds=None)).phases_cpu == {}
    twice = read(*[line(event="phase", name="x", seconds=1, cpu_seconds=1.5e19)] * 2)
    assert (twice.phases, twice.phases_cpu) == ({"x": 1.0}, {"x": 1.5e19})
    assert "cpu_seconds is not between" in twice.error
    gpus = [{"name": "x" * 1000 + "\x1b", "capability": "12.0"}, {"name": "y", "capability": "7.5", "pci": "no"}]
    long, short = read(line(event="gpus", gpus=gpus)).gpus
    assert (len(long.name), long.capability, long.pci) == (100, (12, 0), "")
    assert short == UsedGpu("y", (7, 5))
    first = b'{"event": "end", "status": "failed", "reason": "\\ud83d \\ud83d\\ude00"}\n'
    events = read(first, line(event="end", status="ok"))
    assert (events.status, events.reason) == (Status.FAILED, "? 😀")


def test_a_flood_of_events_ends_at_the_limit():
    flood = line(event="?", padding="x" * 1000) * 1000
    events = Events()
    size = 0
    while not events.feed(flood):
        size += len(flood)
    assert size <= TOTAL_LIMIT
    assert "more than 16 MiB" in events.error


def turn(*seconds):
    return line(event="turn", samples=[{"seconds": second, "steps": 1, "cpu_seconds": 0.5} for second in seconds])


def test_turns_are_taken_when_they_are_asked_for():
    events = Events(takes_turns=True)
    assert events.feed(turn())
    for seconds in (1.0, 2.0):
        events.ask("turn")
        assert events.feed(turn(seconds))
    for count in (1, 3):
        events.ask(f"turn {count}")
        assert events.feed(turn(*[3.0, 4.0, 5.0][:count]))
    assert events.samples == [Sample(seconds, 1, 0.5) for seconds in (1.0, 2.0, 3.0, 3.0)]
    # the others of a turn follow its sample
    assert (events.alone, events.follows) == ([Sample(4.0, 1, 0.5), Sample(5.0, 1, 0.5)], [3, 3])
    events.ask("end")
    assert events.feed(turn(4.0))
    assert "a turn that wasn't requested" in events.error


def test_what_is_said_before_it_was_asked_for_is_no_event():
    for early in (line(event="pins", packages={}), b"{", turn(1.0)):
        events = Events(takes_turns=True)
        events.feed(turn())
        events.feed(early)
        events.ask("turn")
        assert "it wrote a line while it waited for an answer: {" in events.error
        assert not events.is_waiting


def fail_in_turns(word, *chunks, takes_turns=True):
    """Return the error of a launch that gets this word after its first line, and then writes the other lines."""
    events = Events(takes_turns=takes_turns)
    first, *others = chunks
    events.feed(first)
    if word:
        events.ask(word)
    for chunk in others:
        events.feed(chunk)
    assert not events.is_waiting
    return events.error


def test_turns_and_samples_that_were_not_asked_for_are_errors(snapshot):
    ready = line(event="ready")
    errors = {
        "other samples than of one turn": fail_in_turns("turn", turn(), turn(1.0, 2.0)),
        "other samples than three": fail_in_turns("turn 3", turn(), turn(1.0, 2.0)),
        "samples before a turn": fail_in_turns("", samples() + turn()),
        "samples that no turn has": fail_in_turns("end", turn(), samples()),
        "turns without turns": fail_in_turns("", turn(), takes_turns=False),
        "ready twice": fail_in_turns("measure", ready, ready),
        "ready after a turn": fail_in_turns("turn", turn(), ready),
        "ready after samples": fail_in_turns("", samples(), ready),
        "ready without turns": fail_in_turns("", b"", ready, takes_turns=False),
    }
    assert errors == snapshot


def test_a_launch_may_wait_and_measure_in_turns_or_without():
    events = Events(takes_turns=True)
    assert not events.feed(samples())
    assert (events.error, events.samples, events.is_waiting) == ("", [Sample(1.0, 1)], False)
    for chunk, words in ((turn(), ["turn"]), (samples(), [])):
        events = Events(takes_turns=True)
        assert events.feed(line(event="ready"))
        events.ask("measure")
        assert events.feed(chunk) == bool(words)
        for word in words:
            events.ask(word)
            assert events.feed(turn(1.0))
        assert events.samples == [Sample(1.0, 1, 0.5 if words else None)]
        assert not events.error


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
streams = st.lists(some_events | st.sampled_from(WELL_FORMED) | st.binary(max_size=40), max_size=8).map(b"\n".join)


@settings(max_examples=30)
@given(streams, st.lists(st.integers(0, 2000)))
def test_however_the_bytes_are_cut_the_outcome_is_the_same_and_can_be_stored(stream, cuts):
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[start:end] for start, end in pairwise(places)]
    events = read(stream)
    assert state(read(*chunks)) == state(events) == state(read(*(bytes([byte]) for byte in stream)))
    numbers = [events.phases, events.phases_cpu, events.resources]
    text = json.dumps([events.observations, events.fingerprint, events.hello, events.pins, *numbers], allow_nan=False)
    text.encode("utf-8")


NAMED = {
    "phases": lambda name: line(event="phase", name=name, start=0, seconds=1),
    "observations": lambda name: line(event="observation", name=name, value=1),
    "artifacts": lambda name: line(event="artifact", name=name, bytes=1),
    "packages": lambda name: line(event="pins", packages={name: "1"}),
}


def test_a_launch_names_so_many_things_by_so_long_names_and_no_more():
    for kind, limit in NAMED_LIMITS.items():
        make = NAMED[kind]
        events = read(*(make(f"name {i}") for i in range(limit)), make("name 0"))
        assert not events.error
        events.feed(make("one more"))
        assert f"{limit:,} {kind}" in events.error
        assert not read(make("n" * NAME_LIMIT)).error
        assert "200 characters" in read(make("n" * (NAME_LIMIT + 1))).error

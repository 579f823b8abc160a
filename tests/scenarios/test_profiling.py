"""A worker that profiles: which calls, what it leaves, and that nothing of it is there where times are measured."""

import itertools
import json
import marshal
import operator
import signal
import time

import pytest
from kit.stacks import Stacks

SOURCE = """
def slow():
    return sum(range(200000))

def build():
    return sum(range(30000))

def scenario(bench):
    if {first}:
        with bench.phase("first call"):
            build()
    taken = bench.measure(lambda: slow(), steps=4)
    bench.observe("steps", taken)
    bench.observe("thorough", bench.thorough)
"""


@pytest.fixture
def profiled(launch, tmp_path):
    """A function that profiles: the launch, and the documents that it left by part."""

    def start(source, **changes):
        done = launch(source, profile={"calls": 10}, **changes)
        folder = tmp_path / "artifacts"
        documents = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        return done, {document["part"]: document for document in documents}, folder

    return start


def calls(document):
    return {function[2]: function[3] for function in document["functions"]}


def test_the_first_call_and_later_ones_are_profiled_apart(profiled):
    done, documents, _ = profiled(SOURCE.format(first=True))
    assert done.end["status"] == "ok", done.stderr
    assert set(documents) == {"first call", "steady"}
    assert calls(documents["first call"])["build"] == 1
    assert "slow" not in calls(documents["first call"])
    assert calls(documents["steady"])["slow"] == 10
    assert "build" not in calls(documents["steady"])
    assert (documents["steady"]["calls"], documents["steady"]["steps"]) == (10, 4)
    assert documents["steady"]["plain_seconds"] > 0


def test_without_a_phase_of_that_name_the_first_call_of_the_step_is_profiled(profiled):
    _, documents, _ = profiled(SOURCE.format(first=False))
    assert calls(documents["first call"])["slow"] == 1


@pytest.mark.parametrize(
    ("call", "parts"), [("once(slow)", {"first call"}), ("memory(slow, 9)", {"first call", "steady"})]
)
def test_what_is_measured_otherwise_is_profiled_as_well(profiled, call, parts):
    source = "def slow():\n    return sum(range(200000))\ndef scenario(bench):\n    bench." + call + "\n"
    done, documents, _ = profiled(source)
    assert done.end["status"] == "ok", done.stderr
    assert set(documents) == parts
    assert calls(documents["first call"])["slow"] == 1
    assert done.samples == []
    assert done.of("memory") == []


def test_a_profile_is_no_measurement(profiled):
    done, _, _ = profiled(SOURCE.format(first=True))
    assert done.samples == []
    steps = next(event["value"] for event in done.of("observation") if event["name"] == "steps")
    assert steps == 4 * (3 * 10 + 3), "those profiled, as many timed and as many sampled, and three before these"


def test_the_raw_profiles_are_left_as_pstats_has_them(profiled):
    done, documents, folder = profiled(SOURCE.format(first=True))
    assert {event["name"] for event in done.of("artifact")} == {
        f"{part}.{ending}" for part in ("first-call", "steady") for ending in ("pstats", "json")
    }
    raw = marshal.loads((folder / "steady.pstats").read_bytes())  # of our own
    mine = next(key for key in raw if key[2] == "slow")
    kept = next(function for function in documents["steady"]["functions"] if function[2] == "slow")
    assert (raw[mine][1], raw[mine][2]) == (kept[3], kept[5])


def test_the_kit_itself_is_not_in_a_profile(profiled):
    _, documents, _ = profiled(SOURCE.format(first=True))
    for document in documents.values():
        assert not [function for function in document["functions"] if "/kit/" in function[0]]
        assert not [function for function in document["functions"] if "_lsprof" in function[2]]


def test_callers_and_stacks_name_functions_by_their_place(profiled):
    _, documents, _ = profiled(SOURCE.format(first=True))
    functions = documents["steady"]["functions"]
    names = [function[2] for function in functions]
    (summed,) = (function for function in functions if function[2] == "<built-in method builtins.sum>")
    assert [names[caller[0]] for caller in summed[7]] == ["slow"]
    deepest = max((stack for _, stack in documents["steady"]["stacks"]), key=len)
    assert [names[place] for place in deepest] == ["<lambda>", "slow"]
    assert all(seconds > 0 for seconds, _ in documents["steady"]["stacks"])


@pytest.mark.parametrize("profile", [{"calls": 0}, {"calls": "many"}, {}])
def test_a_profile_of_no_count_of_calls_is_refused(launch, profile):
    end = launch(SOURCE.format(first=True), profile=profile).end
    assert end["status"] == "failed"
    assert "job" in end["reason"]


@pytest.mark.parametrize(("asked", "seen"), [({}, False), ({"thorough": True}, True)])
def test_a_launch_looks_closer_only_where_the_job_says_so(launch, asked, seen):
    done = launch(SOURCE.format(first=True), **asked)
    assert next(event["value"] for event in done.of("observation") if event["name"] == "thorough") is seen
    assert done.samples


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.11", "3.13"])
def test_every_interpreter_profiles(profiled, interpreter, version):
    done, documents, _ = profiled(SOURCE.format(first=True), python=interpreter(version))
    assert done.end["status"] == "ok", done.stderr
    assert calls(documents["steady"])["slow"] == 10


def test_all_the_time_of_a_block_is_some_stack_s():
    def inner(until):
        while time.perf_counter() < until:
            pass

    started = time.perf_counter()
    with Stacks() as stacks:
        inner(started + 0.05)
    taken = time.perf_counter() - started
    assert 0 < sum(stacks.seconds.values()) <= taken
    names = {tuple(stacks.codes[place].co_name for place in stack)[:1] for stack in stacks.seconds}
    assert ("inner",) in names


def test_a_signal_during_a_sample_counts_no_time_twice(monkeypatch):
    # A clock whose every reading raises the signal. It is written in C, as the real one: no frame of its own is seen.
    signals, seconds = map(signal.raise_signal, itertools.repeat(signal.SIGALRM)), map(float, itertools.count())
    clock = map(operator.itemgetter(1), zip(signals, seconds, strict=False))
    monkeypatch.setattr("kit.stacks.perf_counter", clock.__next__)
    monkeypatch.setattr("kit.stacks.INTERVAL", 3600)
    with Stacks() as stacks:
        signal.raise_signal(signal.SIGALRM)
    assert "_sample" not in {code.co_name for code in stacks.codes.values()}
    assert 0 < sum(stacks.seconds.values()) <= next(seconds)

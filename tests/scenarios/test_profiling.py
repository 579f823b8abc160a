"""A worker that profiles: which calls, what it leaves, and that nothing of it is there where times are measured."""

import itertools
import json
import marshal
import operator
import signal
import time

import pytest
from kit.stacks import Stacks

from tests.scenarios.conftest import VERSIONS, run_worker

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


def profile(folder, source, **changes):
    launched = run_worker(folder, source, profile={"calls": 10}, **changes)
    documents = [json.loads(path.read_text()) for path in sorted((folder / "artifacts").glob("*.json"))]
    return launched, {document["part"]: document for document in documents}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """A launch that was profiled, its documents by part, and its folder of artifacts."""
    folder = tmp_path_factory.mktemp("profiled")
    return *profile(folder, SOURCE.format(first=True)), folder / "artifacts"


def calls(document):
    return {function[2]: function[3] for function in document["functions"]}


def test_the_first_call_and_later_ones_are_profiled_apart(profiled):
    launched, documents, _ = profiled
    assert launched.end["status"] == "ok", launched.stderr
    assert launched.samples == []
    # those profiled, as many timed and as many sampled, and three before these
    assert launched.observed("steps") == 4 * (3 * 10 + 3)
    assert set(documents) == {"first call", "steady"}
    assert calls(documents["first call"])["build"] == 1
    assert "slow" not in calls(documents["first call"])
    assert calls(documents["steady"])["slow"] == 10
    assert "build" not in calls(documents["steady"])
    assert (documents["steady"]["calls"], documents["steady"]["steps"]) == (10, 4)
    assert documents["steady"]["plain_seconds"] > 0
    for document in documents.values():  # the kit itself is in no profile
        assert not [function for function in document["functions"] if "/kit/" in function[0]]
        assert not [function for function in document["functions"] if "_lsprof" in function[2]]


def test_what_is_measured_otherwise_is_profiled_as_well(tmp_path):
    for number, (call, parts) in enumerate(
        {
            "measure(slow)": {"first call", "steady"},
            "once(slow)": {"first call"},
            "memory(slow, 9)": {"first call", "steady"},
        }.items()
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = f"def slow():\n    return sum(range(200000))\ndef scenario(bench):\n    bench.{call}\n"
        launched, documents = profile(folder, source)
        assert launched.end["status"] == "ok", launched.stderr
        assert set(documents) == parts
        assert calls(documents["first call"])["slow"] == 1
        assert (launched.samples, launched.of("memory")) == ([], [])


def test_profiles_are_left_as_pstats_has_them_with_callers_and_stacks_by_place(profiled):
    launched, documents, folder = profiled
    assert {event["name"] for event in launched.of("artifact")} == {
        f"{part}.{ending}" for part in ("first-call", "steady") for ending in ("pstats", "json")
    }
    raw = marshal.loads((folder / "steady.pstats").read_bytes())  # of our own
    mine = next(key for key in raw if key[2] == "slow")
    stored = next(function for function in documents["steady"]["functions"] if function[2] == "slow")
    assert (raw[mine][1], raw[mine][2]) == (stored[3], stored[5])
    functions = documents["steady"]["functions"]
    names = [function[2] for function in functions]
    (summed,) = (function for function in functions if function[2] == "<built-in method builtins.sum>")
    assert [names[caller[0]] for caller in summed[7]] == ["slow"]
    deepest = max((stack for _, stack in documents["steady"]["stacks"]), key=len)
    assert [names[place] for place in deepest] == ["<lambda>", "slow"]
    assert all(seconds > 0 for seconds, _ in documents["steady"]["stacks"])


def test_a_launch_looks_closer_where_the_job_says_so_and_at_some_calls(perform):
    for wrong in ({"calls": 0}, {"calls": "many"}, {}):
        end = perform(SOURCE.format(first=True), profile=wrong).end
        assert end["status"] == "failed"
        assert "job" in end["reason"]
    for changes in ({}, {"thorough": True}):
        launched = perform(SOURCE.format(first=True), **changes)
        assert launched.observed("thorough") is bool(changes)
        assert launched.samples


@pytest.mark.parametrize("version", VERSIONS)
def test_every_interpreter_profiles(tmp_path, interpreter, version):
    launched, documents = profile(tmp_path, SOURCE.format(first=True), python=interpreter(version))
    assert launched.end["status"] == "ok", launched.stderr
    assert calls(documents["steady"])["slow"] == 10


def test_all_the_time_of_a_block_is_some_stack_s():
    def inner(until):
        while time.perf_counter() < until:
            pass

    started = time.perf_counter()
    with Stacks() as stacks:
        inner(started + 0.05)
    seconds = time.perf_counter() - started
    assert 0 < sum(stacks.seconds.values()) <= seconds
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

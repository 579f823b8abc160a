"""Whatever is printed, and however, the events stay whole."""

import json
import os
import threading
from decimal import Decimal

import pytest
from kit.events import LINE_LIMIT_BYTES, EventWriter, ReaderGone, plain

LOUD = """
import ctypes, os, subprocess, sys
print("at import")
def scenario(bench):
    def step():
        print("from python")
        os.write(1, b"from the descriptor\\n")
        sys.__stdout__.write("from the first stdout\\n")
    step()
    subprocess.check_call("echo from a child; echo from its errors >&2", shell=True)
    libc = ctypes.CDLL(None)
    libc.puts(b"from c")
    libc.fflush(None)
    sys.stdout.write("half a line")
    bench.observe("colour", "red")
    bench.measure(step)
"""


def test_prints_go_to_standard_error(launch):
    launched = launch(LOUD)
    assert launched.end["status"] == "ok"
    assert [event["event"] for event in launched.events] == (
        ["hello", "observation", "phase", "phase", "samples", "resources", "pins", "resources", "end"]
    )
    texts = ["at import", "from python", "from the descriptor", "from the first stdout", "from a child"]
    assert [text for text in [*texts, "from its errors", "from c", "half a line"] if text not in launched.stderr] == []


def test_a_forked_child_does_not_speak_for_the_worker(launch):
    source = """
import os
def scenario(bench):
    child = os.fork()
    if child == 0:
        raise ValueError("only in the child")
    os.waitpid(child, 0)
    bench.observe("done", True)
"""
    launched = launch(source)
    assert (launched.end["status"], len(launched.of("hello")), len(launched.of("pins"))) == ("ok", 1, 1)


def test_values_that_json_lacks_become_strings_and_others_are_refused():
    class Array:
        def tolist(self):
            return [1.0, float("nan")]

    assert plain(float("nan")) == "nan"
    values = {"a": [float("inf"), {1: -float("inf")}], "b": Decimal("1.5"), "c": (1, None, True), "d": Array()}
    assert plain(values) == {"a": ["inf", {"1": "-inf"}], "b": "1.5", "c": [1, None, True], "d": [1.0, "nan"]}
    reader, writer = os.pipe()
    with pytest.raises(ValueError, match=r"the observation 'log' has .* bench\.artifact"):
        EventWriter(writer).emit("observation", name="log", value="x" * LINE_LIMIT_BYTES)
    os.close(writer)
    assert os.read(reader, 1) == b""


def test_a_line_longer_than_the_pipe_arrives_whole():
    reader, writer = os.pipe()
    received = []
    with os.fdopen(reader) as file:
        thread = threading.Thread(target=lambda: received.append(file.read()))
        thread.start()
        EventWriter(writer).emit("observation", name="log", value="x" * 900_000)
        os.close(writer)
        thread.join()
    assert json.loads(received[0]) == {"event": "observation", "name": "log", "value": "x" * 900_000}


def test_a_reader_that_left_is_noticed():
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(ReaderGone):
        EventWriter(writer).emit("hello")
    os.close(writer)

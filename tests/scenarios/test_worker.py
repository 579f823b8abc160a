"""One job in, events out: the contents of each event, and every way in which a scenario ends."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from types import SimpleNamespace as Thing

import pytest
from kit.worker import load

from tests.scenarios.conftest import VERSIONS, run_worker, write_job

MEASURES = """
import time
def scenario(bench, model="small"):
    with bench.phase("build"):
        time.sleep(0.01)
    taken = bench.measure(lambda: time.sleep(0.001), steps=4, document=10)
    bench.observe("steps", taken)
    bench.observe("seen", [model, bench.axes, bench.environment, bench.device_name])
"""
BUSY = MEASURES.replace("time.sleep(0.001)", "sum(range(100000))")
DOCUMENT = {"mode": "document"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return the results of a measuring worker, and the times before and after."""
    before = time.time()
    launched = run_worker(tmp_path_factory.mktemp("measured"), BUSY, axes={"model": "large"})
    return launched, before, time.time()


def test_hello_phases_and_samples_follow_one_another(measured):
    launched, before, after = measured
    hello = launched.events[0]
    assert (hello["event"], hello["schema"], hello["executable"]) == ("hello", 1, sys.executable)
    assert hello["python"] == ".".join(map(str, sys.version_info[:3]))
    assert hello["implementation"] == "cpython"
    assert before - 0.02 <= hello["started"] <= hello["time"] <= after
    assert set(hello["affinity"]) <= set(range(os.cpu_count()))
    phases = measured[0].of("phase")
    assert [phase["name"] for phase in phases] == ["build", "warm up", "steady state"]
    assert phases[0]["seconds"] >= 0.01
    assert all(0 <= phase["cpu_seconds"] <= phase["seconds"] + 0.02 for phase in phases)
    for earlier, later in pairwise(phases):
        assert 0 <= earlier["start"] < earlier["start"] + earlier["seconds"] <= later["start"]
    launched, *_ = measured
    (event,) = launched.of("samples")
    assert event["name"] == "step"
    assert {sample["steps"] for sample in launched.samples} == {event["calls_per_sample"] * 4}
    assert all(0 < sample["cpu_seconds"] < sample["seconds"] + 0.01 for sample in launched.samples)
    assert launched.observed("steps") > sum(sample["steps"] for sample in launched.samples)
    assert launched.observed("seen") == ["large", {"model": "large"}, "here", "cpu"]


def test_pins_and_resources_come_last(measured):
    launched, *_ = measured
    pins, resources, end = launched.events[-3:]
    assert pins["packages"]["pytest"] == pytest.__version__
    assert 0 < resources["cpu_seconds"] < 60
    assert 0 < resources["wall_seconds"] < 60
    assert 1e6 < resources["max_rss_bytes"] < 1e10
    assert end == {"event": "end", "status": "ok", "reason": None, "traceback": None}
    assert launched.status == 0
    (steady,) = [phase for phase in launched.of("phase") if phase["name"] == "steady state"]
    assert sum(sample["seconds"] for sample in launched.samples) <= resources["steady_seconds"] <= steady["seconds"]
    assert 0 < resources["steady_cpu_seconds"] <= steady["cpu_seconds"]
    assert 1 <= resources["steady_own_cpus"] == len(launched.events[0]["affinity"]) <= resources["steady_all_cpus"]
    assert resources["steady_own_cpus_busy_seconds"] <= resources["steady_all_cpus_busy_seconds"]
    assert {"load_before", "steady_own_cpus_steal_seconds", "steady_waited_seconds"} <= set(resources)


def test_many_samples_come_in_lines_that_are_short_enough(perform):
    source = "def scenario(bench):\n    bench.measure(lambda: None, steps=4, document=100000)\n"
    launched = perform(source, sampling=DOCUMENT)
    assert [len(event["samples"]) for event in launched.of("samples")] == [10000, 10000, 5000]
    assert [phase["name"] for phase in launched.of("phase")] == ["steady state"]


TURNS = {"mode": "time", "warmup_seconds": 0.02, "measure_seconds": 0.05, "sample_seconds": 0.01, "turns": 2}


def test_a_launch_that_takes_turns_says_when_it_waits_and_what_it_measured(launch):
    launched = launch(MEASURES, sampling=TURNS, words="turn\nturn 3\nturn\nend\n")
    begun, *turns = launched.of("turn")
    assert begun == {"event": "turn", "samples": [], "calls_per_sample": turns[0]["calls_per_sample"]}
    assert launched.of("samples") == []
    for event in turns:
        assert event["calls_per_sample"] == begun["calls_per_sample"]
        for sample in event["samples"]:
            assert sample["steps"] == begun["calls_per_sample"] * 4
            assert sample["seconds"] >= 0.001 * begun["calls_per_sample"]
            assert sample["cpu_seconds"] >= 0
    assert [len(event["samples"]) for event in turns] == [1, 3, 1]
    assert (launched.status, launched.end["status"]) == (0, "ok")
    names = [event.get("name", event["event"]) for event in launched.events]
    assert names[2:9] == ["warm up", "turn", *["steady state", "turn"] * 3][:7]
    *_, resources = launched.of("resources")
    steady = [phase["seconds"] for phase in launched.of("phase") if phase["name"] == "steady state"]
    assert resources["steady_pieces"] == 3
    assert sum(event["samples"][0]["seconds"] for event in turns) <= resources["steady_seconds"] <= sum(steady)
    assert resources["between_seconds"] > 0 <= resources["between_cpu_seconds"]


def test_a_launch_waits_for_words_and_ends_without_them_or_with_an_unknown_one(perform):
    launched = perform(MEASURES, sampling=TURNS, waits=True, words="measure\nturn\nend\n")
    assert (launched.status, launched.end["status"]) == (0, "ok")
    names = [event.get("name", event["event"]) for event in launched.events]
    assert names[:7] == ["hello", "build", "ready", "warm up", "turn", "steady state", "turn"]
    nobody = perform(MEASURES, sampling=TURNS, waits=True)
    assert (nobody.status, nobody.of("end"), nobody.events[-1]) == (130, [], {"event": "ready"})
    for words in ("", "turn\nturn 2"):
        launched = perform(MEASURES, sampling=TURNS, words=words)
        assert (launched.status, launched.of("end")) == (130, []), words
        assert len(launched.of("turn")) == 1 + words.count("turn\n"), words
    unknown = perform(MEASURES, sampling=TURNS, words="turn\nstop\nturn\n")
    assert (unknown.status, unknown.end["status"], len(unknown.of("turn"))) == (1, "failed", 2)
    early = perform(MEASURES, sampling=TURNS, waits=True, words="turn\nturn\n")
    assert (early.status, early.end["status"], early.of("turn")) == (1, "failed", [])
    assert early.of("phase")[-1]["name"] == "build"


def test_a_scenario_cannot_read_what_the_launch_is_told(launch):
    source = body(
        "import os, subprocess",
        "child = subprocess.run([sys.executable, '-c', 'print(input())'], stderr=subprocess.DEVNULL)",
        "bench.observe('read', [sys.stdin.read(), os.read(0, 10).decode(), child.returncode])",
        "bench.measure(lambda: sum(range(1000)))",
    )
    launched = launch(source, sampling=TURNS, words="turn\nend\n")
    assert launched.observed("read") == ["", "", 1]
    assert (len(launched.of("turn")), launched.end["status"]) == (2, "ok")


ONCE = """
def scenario(bench):
    seen = []
    def step():
        seen.append(len(seen))
        return "result"
    bench.observe("returned", bench.once(step))
    bench.observe("calls", len(seen))
"""
MEMORY = """
def scenario(bench):
    kept = []
    taken = bench.memory(lambda: kept.append(bytearray(100_000)), calls=400, steps=3)
    bench.observe("seen", [taken, len(kept)])
"""


def test_once_is_one_call_and_one_sample(perform):
    # with turns too, it is told nothing but when to measure
    for changes in ({"sampling": TURNS, "waits": True, "words": "measure\n"}, {"sampling": DOCUMENT}):
        launched = perform(ONCE, **changes)
        assert launched.end["status"] == "ok"
        assert [event["event"] for event in launched.of("ready")] == ["ready"] * ("waits" in changes)
        assert (launched.observed("returned"), launched.observed("calls")) == ("result", 1)
        ((sample,),) = [event["samples"] for event in launched.of("samples")]
        assert (sample["steps"], sample["seconds"] > 0.0) == (1, True)
        assert "calls_per_sample" not in launched.of("samples")[0]
        assert [phase["name"] for phase in launched.of("phase")] == ["steady state"]
        assert launched.of("turn") == []


def test_memory_tells_what_the_process_held_and_times_the_calls_between(launch):
    launched = launch(MEMORY, sampling=TURNS, waits=True, words="measure\n")
    assert launched.end["status"] == "ok", launched.stderr
    names = [event["event"] for event in launched.events]
    assert names.index("ready") < names.index("phase") < names.index("samples")
    assert launched.observed("seen") == [440 * 3, 440]
    ((event),) = launched.of("memory")
    points = event["points"]
    assert [calls for calls, _ in points] == list(range(0, 401, 20))
    # of what is kept no byte is ever touched but by the allocator, which fills it with zeros
    assert (points[-1][1] - points[0][1]) / 400 == pytest.approx(100_000, rel=0.2)
    assert [sample["steps"] for sample in launched.samples] == [60] * 20
    resources = {key: value for event in launched.of("resources") for key, value in event.items()}
    assert (resources["warmup_steps"], resources["steady_pieces"]) == (120, 20)
    assert launched.of("turn") == []


def test_a_worker_without_a_standard_input_measures_as_well(tmp_path, scenarios):
    job = write_job(tmp_path, MEASURES)
    command = f"exec {sys.executable} -m kit {job} <&-"
    completed = subprocess.run(["sh", "-c", command], cwd=scenarios, capture_output=True, timeout=60, check=False)
    assert completed.returncode == 0


def body(*lines):
    return "import sys\ndef scenario(bench):\n" + "".join(f"    {line}\n" for line in lines)


#: The message of a graph's error in TensorFlow 2.10 and 2.15, up to what went wrong.
GRAPH_ERRORS = {
    "2.10": "Detected at node 'step/MatMul' defined at (most recent call last):\n"
    '    File "x.py", line 8, in <module>\n      return fn(*args)\n'
    "Node: 'step/MatMul'\n",
    "2.15": "Detected at node step/MatMul defined at (most recent call last):\n"
    '  File "x.py", line 8, in <module>\n\n  File "y.py", line 9, in call\n\n',
}
FAILURES = {
    "error": body("raise ValueError('two\\nlines')"),
    "exit 0": body("sys.exit(0)"),
    "exit": body("sys.exit()"),
    "memory": body("raise MemoryError"),
    "generator": body("raise GeneratorExit"),
    "nothing": body("pass"),
    "twice": body("bench.measure(int)", "bench.measure(int)"),
    "artifact": body("bench.artifact('nowhere')"),
    "device": body("bench.device()"),
    "no Python": "this is no Python",
    "exit at import": "import sys; sys.exit(3)",
    "no scenario": "x = 1",
    **{
        f"graph of {release}, {kind}": body(f"raise ValueError({f'Graph execution error:{chr(10) * 2}{text}{end}'!r})")
        for release, text in GRAPH_ERRORS.items()
        for kind, end in {"one": "launch failure", "two": "2 root error(s) found.\n  (0) INTERNAL: no room"}.items()
    },
}
#: Jobs that ask for what cannot be, and of a document what it has no use for.
JOBS = {
    "schema": {"schema": 2},
    "mode": {"sampling": {"mode": "guess"}},
    "no warm-up": {"sampling": {"mode": "time"}},
    "no time": {"sampling": {**TURNS, "measure_seconds": 0}},
    "cell": {"cell": {"axes": {}}},
    "script": {"script": "/nowhere.py"},
    "axes": {"axes": {"colour": "red"}},
    "time limit": {"limits": {"seconds": 0}},
    "turns of a document": {"sampling": {"mode": "document", "turns": 20}},
    **{f"{turns!r} turns": {"sampling": {**TURNS, "turns": turns}} for turns in (0, -1, 1.5, True, "many", [2])},
}


def test_failures_and_bad_jobs_are_told_in_one_line(perform, tmp_path, snapshot):
    launches = {case: perform(source) for case, source in FAILURES.items()}
    launches |= {f"job: {case}": perform(MEASURES, words="turn\n", **changes) for case, changes in JOBS.items()}
    for case, launched in launches.items():
        assert (launched.status, launched.end["status"], launched.of("turn")) == (1, "failed", []), case
        assert "\n" not in launched.end["reason"], case
    assert {case: run.end["reason"].replace(str(tmp_path), "FOLDER") for case, run in launches.items()} == snapshot
    assert perform(MEASURES, sampling={**DOCUMENT, "turns": None}).end["status"] == "ok"


def test_a_failure_keeps_the_end_of_its_traceback_and_what_was_measured(launch):
    launched = launch(body("bench.measure(int)", "raise ValueError('x' * 20000)"))
    assert launched.end["status"] == "failed"
    assert launched.end["traceback"].endswith("x\n")
    assert len(launched.end["traceback"]) == 8000
    assert "Traceback" in launched.stderr
    assert launched.samples


def test_launches_that_are_not_available_or_that_no_gpu_did_have_statuses_of_their_own(perform):
    launched = perform("from kit import NotAvailable\n" + body("raise NotAvailable('no GPU here')"))
    assert (launched.status, launched.end["status"], launched.end["reason"]) == (0, "not available", "no GPU here")
    on_a_gpu = {"axes": {}, "environment": "here", "device": "gpu"}
    launched = perform(body("bench.measure(int)"), cell=on_a_gpu)
    assert (launched.status, launched.end["status"]) == (1, "cpu fallback")
    assert launched.end["reason"] == "the scenario never imported TensorFlow"
    for failing in ("raise ValueError", "pass"):
        assert perform(body(failing), cell=on_a_gpu).end["status"] == "failed"


def test_what_a_driver_compiled_is_told_where_it_keeps_it(perform, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path / "cache"))
    make = "folder = pathlib.Path(os.environ['CUDA_CACHE_PATH']); folder.mkdir()"
    source = body("import os, pathlib", make, "(folder / 'code').write_text('x' * 10)", "bench.observe('done', 1)")
    *_, resources = perform(source).of("resources")
    assert (resources["ptx_cache_bytes"], resources["ptx_cache_filled_bytes"]) == (0, 10)


def test_a_launch_ends_with_its_work_whatever_the_scenario_left_for_the_exit(launch):
    launched = launch(
        body(
            "import atexit, os, threading",
            "atexit.register(os.abort)",
            "threading.Thread(target=threading.Event().wait).start()",
            "print('half a line', end='')",
            "bench.observe('left', True)",
        )
    )
    assert (launched.status, launched.events[-1]["status"]) == (0, "ok")
    assert "half a line" in launched.stderr


def test_artifacts_are_copied_and_a_scenario_named_like_a_module_hides_nothing(perform, tmp_path):
    (tmp_path / "trace.txt").write_text("a trace")
    launched = perform(body(f"bench.artifact({str(tmp_path / 'trace.txt')!r})", "bench.observe('done', 1)"))
    assert launched.of("artifact") == [{"event": "artifact", "name": "trace.txt", "bytes": 7}]
    assert (tmp_path / "artifacts" / "trace.txt").read_text() == "a trace"
    source = body("import json", "bench.observe('json', json.dumps([1]))")
    (tmp_path / "json.py").write_text(source)
    assert perform("", script=str(tmp_path / "json.py")).end["status"] == "ok"


def test_two_versions_of_a_scenario_that_are_as_long_and_from_the_same_second_are_both_run(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "given.py"
    for name in ("first", "other"):
        path.write_text(f"def scenario(bench): return {name!r}\n")
        os.utime(path, (1e9, 1e9))
        assert load(str(path))(None) == name


@pytest.mark.parametrize("version", VERSIONS)
def test_every_interpreter_speaks_the_same(launch, interpreter, version):
    launched = launch(MEASURES, python=interpreter(version), sampling=TURNS, words="turn\nturn 3\nend\n")
    assert launched.end == {"event": "end", "status": "ok", "reason": None, "traceback": None}
    assert launched.events[0]["python"].startswith(version + ".")
    assert launched.events[0]["started"] is not None
    assert launched.of("pins")[0]["packages"] is not None
    assert len(launched.of("turn")) == 3


def test_a_worker_dies_with_the_process_that_started_it(tmp_path, scenarios):
    """The one that starts it is killed, as `kill -9` kills a harness; a worker that waits for ever must go too."""
    source = body("import time", "bench.observe('waits', 1)", "time.sleep(60)")
    job = write_job(tmp_path, source, limits={"die_with_parent": True})
    starter = "import subprocess, sys, time\nsubprocess.Popen(sys.argv[1:])\ntime.sleep(60)"
    command = [sys.executable, "-c", starter, sys.executable, "-m", "kit", job]
    with subprocess.Popen(command, cwd=scenarios, stdout=subprocess.PIPE) as parent:
        assert b'"hello"' in parent.stdout.readline()
        assert b'"waits"' in parent.stdout.readline()
        parent.send_signal(signal.SIGKILL)
        # The worker holds the pipe's other end: it ends when, and only when, the worker does.
        assert parent.stdout.read() == b""


def test_the_commit_that_tensorflow_was_built_from_is_observed(perform, monkeypatch):
    versions = [Thing(GIT_VERSION="v2.16.1-19-g810f233968c"), Thing(GIT_VERSION=b"v1.14.0-rc1"), Thing()]
    for version, commits in zip(versions, [["v2.16.1-19-g810f233968c"], ["v1.14.0-rc1"], []], strict=True):
        monkeypatch.setitem(sys.modules, "tensorflow", Thing(version=version))
        events = perform(body("bench.fingerprint(seen=1)", "bench.measure(int)")).of("observation")
        assert [event["value"] for event in events if event["name"] == "git version"] == commits

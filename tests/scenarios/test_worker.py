"""One job in, events out: the contents of each event, and every way in which a scenario ends."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from kit.worker import load

MEASURES = """
import time
def scenario(bench, model="small"):
    with bench.phase("build"):
        time.sleep(0.01)
    taken = bench.measure(lambda: time.sleep(0.001), steps=4, document=10)
    bench.observe("steps", taken)
    bench.observe("document", bench.document)
    bench.observe("seen", [model, bench.axes, bench.environment, bench.device_name])
"""
# The oldest release's, the project's own, and the newest interpreter of the list.
VERSIONS = ["3.6", "3.7", "3.8", "3.11", "3.13"]


def test_hello_says_who_speaks(launch):
    before = time.time()
    hello = launch(MEASURES).events[0]
    assert (hello["event"], hello["schema"], hello["executable"]) == ("hello", 1, sys.executable)
    assert hello["python"] == ".".join(map(str, sys.version_info[:3]))
    assert hello["implementation"] == "cpython"
    assert before - 0.02 <= hello["started"] <= hello["time"] <= time.time()
    assert set(hello["affinity"]) <= set(range(os.cpu_count()))


def test_phases_follow_one_another(launch):
    phases = launch(MEASURES).of("phase")
    assert [phase["name"] for phase in phases] == ["build", "warm up", "steady state"]
    assert phases[0]["seconds"] >= 0.01
    assert all(0 <= phase["cpu_seconds"] <= phase["seconds"] + 0.02 for phase in phases)
    for earlier, later in pairwise(phases):
        assert 0 <= earlier["start"] < earlier["start"] + earlier["seconds"] <= later["start"]


def test_samples_carry_their_steps(launch):
    done = launch(MEASURES)
    (event,) = done.of("samples")
    assert event["name"] == "step"
    assert {sample["steps"] for sample in done.samples} == {event["calls_per_sample"] * 4}
    assert all(sample["seconds"] >= 0.01 for sample in done.samples)
    steps = next(event["value"] for event in done.of("observation") if event["name"] == "steps")
    assert steps > sum(sample["steps"] for sample in done.samples)


def test_the_document_is_counted_in_steps(launch):
    done = launch(MEASURES, sampling={"mode": "document"})
    assert [sample["steps"] for sample in done.samples] == [4, 4, 4]
    assert [event["value"] for event in done.of("observation")][:2] == [12, True]
    assert [phase["name"] for phase in done.of("phase")] == ["build", "steady state"]


def test_many_samples_come_in_lines_that_are_short_enough(launch):
    source = "def scenario(bench):\n    bench.measure(lambda: None, document=25000)\n"
    done = launch(source, sampling={"mode": "document"})
    assert [len(event["samples"]) for event in done.of("samples")] == [10000, 10000, 5000]


def test_a_scenario_knows_its_cell(launch):
    done = launch(MEASURES, axes={"model": "large"})
    assert done.of("observation")[-1]["value"] == ["large", {"model": "large"}, "here", "cpu"]


TURNS = {"mode": "time", "warmup_seconds": 0.02, "measure_seconds": 0.05, "sample_seconds": 0.01, "turns": 2}


def test_a_launch_that_takes_turns_says_when_it_waits_and_what_it_measured(launch):
    done = launch(MEASURES, sampling=TURNS, words="turn\nturn\nalone 3\nalone 1\nend\n")
    begun, *turns = done.of("turn")
    assert begun == {"event": "turn", "samples": [], "calls_per_sample": turns[0]["calls_per_sample"]}
    assert done.of("samples") == []
    for event in turns:
        assert event["calls_per_sample"] == begun["calls_per_sample"]
        for sample in event["samples"]:
            assert sample["steps"] == begun["calls_per_sample"] * 4
            assert sample["seconds"] >= 0.01
            assert sample["cpu_seconds"] >= 0
    assert [len(event["samples"]) for event in turns] == [1, 1, 3, 1]
    assert (done.status, done.end["status"]) == (0, "ok")
    names = [event.get("name", event["event"]) for event in done.events]
    assert names[2:9] == ["warm up", "turn", "steady state", "turn", "steady state", "turn", "turn"]


def test_what_a_launch_did_in_its_turns_is_told_apart_from_its_waits(launch):
    done = launch(MEASURES, sampling=TURNS, words="turn\nturn\nend\n")
    *_, resources = done.of("resources")
    measured = sum(sample["seconds"] for event in done.of("turn") for sample in event["samples"])
    steady = [phase for phase in done.of("phase") if phase["name"] == "steady state"]
    assert resources["steady_pieces"] == 2
    assert measured <= resources["steady_seconds"] <= sum(phase["seconds"] for phase in steady)
    assert resources["between_seconds"] > 0
    assert resources["between_cpu_seconds"] >= 0


def test_a_launch_that_starts_beside_others_waits_until_it_is_to_measure(launch):
    done = launch(MEASURES, sampling=TURNS, waits=True, words="measure\nturn\nend\n")
    assert (done.status, done.end["status"]) == (0, "ok"), done.stderr
    names = [event.get("name", event["event"]) for event in done.events]
    assert names[:7] == ["hello", "build", "ready", "warm up", "turn", "steady state", "turn"]


@pytest.mark.parametrize("word", ["turn", "end", "measure now", ""])
def test_before_it_measures_it_knows_one_word(launch, word):
    done = launch(MEASURES, sampling=TURNS, waits=True, words=f"{word}\nturn\n")
    assert (done.status, done.end["status"]) == (1, "failed")
    assert "instead of 'measure'" in done.end["reason"]
    assert done.of("phase")[-1]["name"] == "build"


def test_one_that_nobody_tells_to_measure_ends_without_an_end(launch):
    done = launch(MEASURES, sampling=TURNS, waits=True)
    assert (done.status, done.of("end"), done.events[-1]) == (130, [], {"event": "ready"})


@pytest.mark.parametrize("words", ["", "turn\n", "turn\nturn\n", "turn\nalo", "turn\nen", "turn\nalone 2"])
def test_a_launch_that_nobody_tells_anything_any_more_ends_without_an_end(launch, words):
    done = launch(MEASURES, sampling=TURNS, words=words)
    assert done.status == 130
    assert len(done.of("turn")) == 1 + words.count("turn")
    assert done.of("end") == []


@pytest.mark.parametrize(
    "word",
    ["", "stop", "turn 2", "end 1", "alone", "alone two", "alone -1", "alone 1 2", "TURN", "\u00b2", "x" * 500],
)
def test_a_word_that_is_not_known_is_a_failure_with_a_sentence(launch, word):
    done = launch(MEASURES, sampling=TURNS, words=f"turn\n{word}\nturn\n")
    assert (done.status, done.end["status"]) == (1, "failed")
    assert "unknown command" in done.end["reason"]
    assert len(done.of("turn")) == 2


def test_a_scenario_cannot_read_what_the_launch_is_told(launch):
    source = body(
        "import os, subprocess",
        "child = subprocess.run([sys.executable, '-c', 'print(input())'], stderr=subprocess.DEVNULL)",
        "bench.observe('read', [sys.stdin.read(), os.read(0, 10).decode(), child.returncode])",
        "bench.measure(lambda: sum(range(1000)))",
    )
    done = launch(source, sampling=TURNS, words="turn\nend\n")
    assert done.of("observation")[0]["value"] == ["", "", 1]
    assert (len(done.of("turn")), done.end["status"]) == (2, "ok")


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


# with turns too, nobody tells it anything: it asks for no word
@pytest.mark.parametrize("sampling", [TURNS, {"mode": "document"}])
def test_once_is_one_call_and_one_sample(launch, sampling):
    done = launch(ONCE, sampling=sampling)
    assert done.end["status"] == "ok", done.stderr
    assert [event["value"] for event in done.of("observation")] == ["result", 1]
    ((sample,),) = [event["samples"] for event in done.of("samples")]
    assert (sample["steps"], sample["seconds"] > 0.0) == (1, True)
    assert "calls_per_sample" not in done.of("samples")[0]
    assert [phase["name"] for phase in done.of("phase")] == ["steady state"]
    assert done.of("turn") == []


def test_once_and_memory_wait_before_they_measure_too_and_take_no_turns(launch):
    for source in (ONCE, MEMORY):
        done = launch(source, sampling=TURNS, waits=True, words="measure\n")
        assert done.end["status"] == "ok", done.stderr
        names = [event["event"] for event in done.events]
        assert names.index("ready") < names.index("phase") < names.index("samples")
        assert done.of("turn") == []


@pytest.mark.parametrize("sampling", [TURNS, {"mode": "document"}])
def test_memory_tells_what_the_process_held_and_times_the_calls_between(launch, sampling):
    done = launch(MEMORY, sampling=sampling)
    assert done.end["status"] == "ok", done.stderr
    assert done.of("observation")[0]["value"] == [440 * 3, 440]
    ((event),) = done.of("memory")
    points = event["points"]
    assert [calls for calls, _ in points] == list(range(0, 401, 20))
    # of what is kept no byte is ever touched but by the allocator, which fills it with zeros
    assert (points[-1][1] - points[0][1]) / 400 == pytest.approx(100_000, rel=0.2)
    assert [sample["steps"] for sample in done.samples] == [60] * 20
    told = {key: value for event in done.of("resources") for key, value in event.items()}
    assert (told["warmup_steps"], told["steady_pieces"]) == (120, 20)
    assert done.of("turn") == []


def test_where_the_system_does_not_tell_what_is_held_memory_is_not_available(launch):
    source = "from kit import bench as kit\nkit.resident_bytes = lambda: None\n" + MEMORY
    done = launch(source)
    assert done.end["status"] == "not available"
    assert "/proc/self/statm" in done.end["reason"]


def test_a_worker_without_a_standard_input_measures_as_well(tmp_path, scenarios, launch):
    launch(MEASURES)
    command = f"exec {sys.executable} -m kit {tmp_path / 'job.json'} <&-"
    done = subprocess.run(["sh", "-c", command], cwd=scenarios, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("turns", [0, -1, 1.5, True, "many", [2]])
@pytest.mark.parametrize("mode", ["time", "document"])
def test_turns_that_are_no_count_are_refused(launch, turns, mode):
    done = launch(MEASURES, sampling=dict(TURNS, mode=mode, turns=turns), words="turn\n")
    assert done.end["status"] == "failed"
    assert "is malformed" in done.end["reason"]
    assert done.of("turn") == []


def test_the_document_takes_no_turns(launch):
    assert "can't be interleaved" in launch(MEASURES, sampling={"mode": "document", "turns": 20}).end["reason"]
    assert launch(MEASURES, sampling={"mode": "document", "turns": None}).end["status"] == "ok"


@pytest.mark.parametrize("changes", [{}, {"sampling": {"mode": "document"}}])
def test_samples_say_what_they_used_of_cpus(launch, changes):
    done = launch(MEASURES.replace("time.sleep(0.001)", "sum(range(100000))"), **changes)
    assert all(0 < sample["cpu_seconds"] < sample["seconds"] + 0.01 for sample in done.samples)


def test_pins_and_resources_come_last(launch):
    done = launch(MEASURES)
    pins, resources, end = done.events[-3:]
    assert pins["packages"]["pytest"] == pytest.__version__
    assert 0 < resources["cpu_seconds"] < 60
    assert 0 < resources["wall_seconds"] < 60
    assert 1e6 < resources["max_rss_bytes"] < 1e10
    assert end == {"event": "end", "status": "ok", "reason": None, "traceback": None}
    assert done.status == 0


@pytest.mark.parametrize("changes", [{}, {"sampling": {"mode": "document"}}])
def test_resources_say_what_the_cpus_did_while_steps_were_timed(launch, changes):
    done = launch(MEASURES.replace("time.sleep(0.001)", "sum(range(10000))"), **changes)
    *_, resources = done.of("resources")
    measured = sum(sample["seconds"] for sample in done.samples)
    (steady,) = [phase for phase in done.of("phase") if phase["name"] == "steady state"]
    assert measured <= resources["steady_seconds"] <= steady["seconds"]
    assert 0 < resources["steady_cpu_seconds"] <= steady["cpu_seconds"]
    assert resources["steady_own_cpus"] == len(done.events[0]["affinity"])
    assert {"load_before", "steady_own_cpus_steal_seconds", "steady_all_cpus_busy_seconds"} <= set(resources)


def test_what_was_not_measured_has_no_resources_of_its_own(launch):
    (resources,) = launch(body("bench.observe('traces', 3)")).of("resources")
    assert set(resources) == {"event", "cpu_seconds", "wall_seconds", "max_rss_bytes", "load_before"}


def body(*lines):
    return "import sys\ndef scenario(bench):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (body("raise ValueError('two\\nlines')"), "ValueError: two lines"),
        (body("sys.exit(0)"), "the scenario called sys.exit(0)"),
        (body("sys.exit()"), "the scenario called sys.exit()"),
        (body("raise MemoryError"), "MemoryError: "),
        (body("raise GeneratorExit"), "GeneratorExit: "),
        (body("pass"), "the scenario measured nothing"),
        (body("bench.measure(int)", "bench.measure(int)"), "RuntimeError: bench measured twice"),
        (body("bench.artifact('nowhere')"), "ValueError: the artifact 'nowhere' isn't a file"),
        (body("bench.device()"), "RuntimeError: bench.device() was called before"),
        (body("def recurse(): recurse()", "recurse()"), "RecursionError: "),
        ("this is no Python", "cannot be loaded: SyntaxError: "),
        ("import sys; sys.exit(3)", "cannot be loaded: the scenario called sys.exit(3)"),
        ("x = 1", "cannot be loaded: AttributeError: "),
    ],
)
def test_failures_are_told_in_one_line(launch, source, reason):
    done = launch(source)
    assert (done.status, done.end["status"]) == (1, "failed")
    assert reason in done.end["reason"]
    assert "\n" not in done.end["reason"]


GRAPH_ERRORS = {
    "2.10": "Detected at node 'step/MatMul' defined at (most recent call last):\n"
    '    File "x.py", line 8, in <module>\n      return fn(*args)\n'
    "Node: 'step/MatMul'\n",
    "2.15": "Detected at node step/MatMul defined at (most recent call last):\n"
    '  File "x.py", line 8, in <module>\n\n  File "y.py", line 9, in call\n\n',
}


@pytest.mark.parametrize("made_at", GRAPH_ERRORS.values(), ids=GRAPH_ERRORS)
@pytest.mark.parametrize("said", ["unspecified launch failure", "2 root error(s) found.\n  (0) INTERNAL: no room"])
def test_of_a_graphs_error_what_went_wrong_is_told_and_not_where_its_node_was_made(launch, made_at, said):
    message = f"Graph execution error:\n\n{made_at}{said}"
    reason = launch(body(f"raise ValueError({message!r})")).end["reason"]
    assert "Graph execution error: " in reason
    assert " ".join(said.split()) in reason
    assert ".py" not in reason
    assert "Detected" not in reason


def test_a_failure_keeps_the_end_of_its_traceback(launch):
    done = launch(body("raise ValueError('x' * 20000)"))
    assert done.end["traceback"].endswith("x\n")
    assert len(done.end["traceback"]) == 8000
    assert "Traceback" in done.stderr


def test_what_a_failed_scenario_measured_is_kept(launch):
    done = launch(body("bench.measure(int)", "raise ValueError"))
    assert done.end["status"] == "failed"
    assert done.samples


def test_not_available_is_no_failure(launch):
    done = launch("from kit import NotAvailable\n" + body("raise NotAvailable('no GPU here')"))
    assert (done.status, done.end["status"], done.end["reason"]) == (0, "not available", "no GPU here")


ON_A_GPU = {"axes": {}, "environment": "here", "device": "gpu"}


def test_work_that_no_gpu_did_has_a_status_of_its_own(launch):
    done = launch(body("bench.measure(int)"), cell=ON_A_GPU)
    assert (done.status, done.end["status"]) == (1, "cpu fallback")
    assert done.end["reason"] == "the scenario never imported TensorFlow"


def test_what_failed_on_a_gpu_has_failed(launch):
    assert launch(body("raise ValueError"), cell=ON_A_GPU).end["status"] == "failed"
    assert launch(body("pass"), cell=ON_A_GPU).end["status"] == "failed"


def test_what_a_driver_compiled_is_told_where_it_keeps_it(launch, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path / "cache"))
    source = body("import os", "path = os.environ['CUDA_CACHE_PATH']", "os.mkdir(path)")
    source += "    open(path + '/code', 'w').write('x' * 10)\n    bench.observe('done', 1)\n"
    *_, resources = launch(source).of("resources")
    assert (resources["ptx_cache_bytes"], resources["ptx_cache_filled_bytes"]) == (0, 10)


def test_an_observation_is_enough(launch):
    assert launch(body("bench.observe('traces', 3)")).end["status"] == "ok"


def test_a_launch_ends_with_its_work_whatever_the_scenario_left_for_the_exit(launch):
    done = launch(
        body(
            "import atexit, os, threading",
            "atexit.register(os.abort)",
            "threading.Thread(target=threading.Event().wait).start()",
            "print('half a line', end='')",
            "bench.observe('left', True)",
        )
    )
    assert (done.status, done.events[-1]["status"]) == (0, "ok")
    assert "half a line" in done.stderr


def test_axes_that_the_scenario_does_not_take(launch):
    done = launch(body("pass"), axes={"colour": "red"})
    assert "does not take these axes: got an unexpected keyword argument 'colour'" in done.end["reason"]


def test_ctrl_c_ends_without_an_end(launch):
    done = launch(body("raise KeyboardInterrupt"))
    assert (done.status, done.of("end")) == (130, [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema": 2}, "doesn't have the schema 1"),
        ({"sampling": {"mode": "guess"}}, "unknown sampling 'guess'"),
        ({"sampling": {"mode": "time"}}, "has no 'warmup_seconds'"),
        ({"cell": {"axes": {}}}, "has no 'environment'"),
        ({"script": "nowhere.py"}, "nowhere.py cannot be loaded: FileNotFoundError"),
    ],
)
def test_a_bad_job_is_a_failure_with_a_sentence(launch, changes, reason):
    done = launch(MEASURES, **changes)
    assert (done.status, done.end["status"]) == (1, "failed")
    assert reason in done.end["reason"]


def test_artifacts_are_copied(launch, tmp_path):
    (tmp_path / "trace.txt").write_text("a trace")
    done = launch(body(f"bench.artifact({str(tmp_path / 'trace.txt')!r})", "bench.observe('done', 1)"))
    assert done.of("artifact") == [{"event": "artifact", "name": "trace.txt", "bytes": 7}]
    assert (tmp_path / "artifacts" / "trace.txt").read_text() == "a trace"


def test_a_scenario_named_like_a_module_hides_nothing(launch, tmp_path):
    source = body("import json", "bench.observe('json', json.dumps([1]))")
    (tmp_path / "json.py").write_text(source)
    assert launch("", script=str(tmp_path / "json.py")).end["status"] == "ok"


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
    done = launch(MEASURES, python=interpreter(version))
    assert done.end == {"event": "end", "status": "ok", "reason": None, "traceback": None}
    assert done.events[0]["python"].startswith(version + ".")
    assert done.events[0]["started"] is not None
    assert done.of("pins")[0]["packages"] is not None
    done = launch(MEASURES, python=interpreter(version), sampling=TURNS, words="turn\nalone 1\nend\n")
    assert (len(done.of("turn")), done.end["status"]) == (3, "ok")


@pytest.mark.parametrize("version", VERSIONS[:2])
def test_the_oldest_interpreters_compile_every_file(interpreter, version, scenarios):
    code = "import sys\nfor path in sys.argv[1:]: compile(open(path, encoding='utf-8').read(), path, 'exec')"
    files = [str(path) for path in scenarios.rglob("*.py")]
    subprocess.run([interpreter(version), "-c", code, *files], check=True)


def test_a_worker_dies_with_the_process_that_started_it(tmp_path, scenarios):
    """The one that starts it is killed, as `kill -9` kills a harness; a worker that waits for ever must go too."""
    (tmp_path / "given.py").write_text(body("import time", "bench.observe('waits', 1)", "time.sleep(60)"))
    (tmp_path / "job.json").write_text(
        '{"schema": 1, "cell": {"axes": {}, "environment": "here", "device": "cpu"}, "script": "%s",'
        ' "sampling": {"mode": "document"}, "limits": {"die_with_parent": true}}' % (tmp_path / "given.py")
    )
    starter = "import subprocess, sys, time\nsubprocess.Popen(sys.argv[1:])\ntime.sleep(60)"
    command = [sys.executable, "-c", starter, sys.executable, "-m", "kit", str(tmp_path / "job.json")]
    with subprocess.Popen(command, cwd=scenarios, stdout=subprocess.PIPE) as parent:
        assert b'"hello"' in parent.stdout.readline()
        assert b'"waits"' in parent.stdout.readline()
        parent.send_signal(signal.SIGKILL)
        # The worker holds the pipe's other end: it ends when, and only when, the worker does.
        assert parent.stdout.read() == b""


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("version = types.SimpleNamespace(GIT_VERSION='v2.16.1-19-g810f233968c')", ["v2.16.1-19-g810f233968c"]),
        ("version = types.SimpleNamespace(GIT_VERSION=b'v1.14.0-rc1')", ["v1.14.0-rc1"]),
        ("version = types.SimpleNamespace()", []),
        ("__version__ = '2.0.0'", []),
    ],
)
def test_the_commit_that_tensorflow_was_built_from_is_observed(launch, module, told):
    name, _, value = module.partition(" = ")
    made = "import sys, types\nsys.modules['tensorflow'] = types.ModuleType('tensorflow')\n"
    made += f"sys.modules['tensorflow'].{name} = {value}\n"
    done = launch(made + "def scenario(bench):\n    bench.observe('seen', 1)\n")
    assert [event["value"] for event in done.of("observation") if event["name"] == "git version"] == told

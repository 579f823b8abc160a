"""A plain script in a launch: what is told of it."""

import gc
import io
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as thread_executors
from types import SimpleNamespace

import pytest
from kit.outcome import ScriptFailed
from kit.script import observe_numbers, wait_for_others
from kit.steps import ImportClock, Steps

from tests.errors import catch_text

GIVEN = """\
import os
from kit.script import run_script
def scenario(bench):
    os.chdir({folder!r})
    run_script(bench, "mine.py", {source!r}, **{options!r})
"""


@pytest.fixture
def script(launch, tmp_path):
    return lambda source, **options: launch(GIVEN.format(folder=str(tmp_path), source=source, options=options))


@pytest.fixture
def failing(perform, tmp_path, monkeypatch, capfd):
    def run(source, **options):
        error = io.StringIO()
        with monkeypatch.context() as patch, capfd.disabled():
            patch.chdir(tmp_path)
            patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
            patch.setattr(sys, "argv", sys.argv)
            patch.setattr(sys, "stdin", io.StringIO())
            patch.setattr(sys, "stderr", error)
            (tmp_path / "mine.py").unlink(missing_ok=True)
            launched = perform(GIVEN.format(folder=str(tmp_path), source=source, options=options))
        launched.stderr = error.getvalue()
        return launched

    return run


def phases(launched):
    return {event["name"]: event["seconds"] for event in launched.of("phase")}


def test_the_whole_script_is_one_step_and_its_output_is_told(script, tmp_path):
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    source = (
        "import os, subprocess, sys\n"
        "print('hello', sys.argv, input(), sys.stdin.readlines())\n"
        "print('x' * 500)\nprint(__name__)\n"
        "sys.stdout.flush()\nos.write(1, b'raw\\n')\n"
        "subprocess.call([sys.executable, '-c', 'print(1)'])\n"
        "for i in range(3000): print('y' * 1000)\n"
        "sys.stdout = None\nsys.exit(0)"
    )
    launched = script(source, arguments=["--fast", "1"], stdin="in.txt")
    assert launched.end["status"] == "ok", launched.stderr
    ((sample,), output) = launched.samples, launched.observed("output")
    assert sample["steps"] == 1
    first = "hello ['mine.py', '--fast', '1'] one ['two\\n']"
    assert output["lines"][:6] == [first, "x" * 200, "__main__", "raw", "1", "y" * 200]
    assert (output["count"], len(output["lines"])) == (3005, 100)
    assert "yyy" not in launched.stderr
    assert phases(launched)["import"] == 0
    assert phases(launched)["own work"] <= sample["seconds"]


def test_threads_and_processes_are_waited_for(script):
    source = """
import multiprocessing, threading, time
def work():
    print("process", flush=True)
if __name__ == "__main__":
    threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
    multiprocessing.get_context("fork").Process(target=work).start()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(abs, (-3,)))
"""
    launched = script(source)
    assert launched.end["status"] == "ok", launched.stderr
    assert sorted(launched.observed("output")["lines"]) == ["3", "process", "thread"]


def test_executors_end_although_the_script_does_not_end_them_and_threads_can_start_others(script):
    source = """
import multiprocessing, sys, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
sys.path.append(None)
fork = multiprocessing.get_context("fork")
executors = ThreadPoolExecutor(1), ProcessPoolExecutor(1, mp_context=fork)
print(*(executor.submit(abs, -3).result() for executor in executors), flush=True)
def start():
    time.sleep(0.05)
    first = threading.current_thread()
    threading.Thread(target=lambda: (first.join(), print("started later"))).start()
threading.Thread(target=start).start()
"""
    launched = script(source)
    assert launched.end["status"] == "ok", launched.stderr
    assert launched.observed("output")["lines"] == ["3 3", "started later"]


def test_executors_are_possible_again_after_a_script_but_not_while_it_ends():
    refusals = []

    def start_executor():
        try:
            ThreadPoolExecutor(1).submit(abs, -3)
        except RuntimeError as error:
            refusals.append(str(error))

    def wait_and_start():
        while not thread_executors._shutdown:
            pass
        start_executor()

    threading.Thread(target=wait_and_start).start()
    wait_for_others()
    assert len(refusals) == 1
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(abs, -3).result() == 3


FAILURES = {
    "missing file": "x = 1\nopen('absent.csv')",
    "missing module": "import absent.module",
    "missing package of a package": "raise ModuleNotFoundError('jax requires jaxlib to be installed. See https://a.b.')",
    "name of Python 2": "xrange(3)",
    "module of Python 2": "import urllib2",
    "no input": "input()",
    "no network": "raise OSError(-3, 'Temporary failure in name resolution')",
    "no GPU": "raise RuntimeError('/job:localhost/replica:0/task:0/device:GPU:0 unknown device.')",
    "no network for Keras": "raise Exception('URL fetch failure on https://a.b/tf-keras-datasets/mnist.npz: None')",
    "error": "print('before')\ndef f():\n    raise ValueError('no.')\nf()",
    "exit": "import sys\nsys.exit(3)",
    "missing arguments": "import argparse\np = argparse.ArgumentParser()\n"
    "p.add_argument('--steps', type=int, required=True)\np.add_argument('-o', '--out', required=True)\np.parse_args()",
    "exit with words": "import sys\nprint('no GPU', file=sys.stderr)\nsys.exit(1)",
    "exit with a text": "import sys\nsys.exit('bad')",
    "no Python": "x = = 1",
    "misspelled main": "if __name__ == 'main':\n    print(1)",
    "cell of a notebook": "# cell 2\nx = 1\n# cell 5\ny = 2\n1 / 0",
    "step that never runs": "# harness: step\ndef f():\n    pass",
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its output is closed with its process
def test_a_script_that_fails_is_told_by_its_own_error_and_what_to_do(failing, snapshot):
    reasons = {}
    for case, source in FAILURES.items():
        launched = failing(source)
        assert (launched.end["status"], launched.samples) == ("failed", []), case
        assert "kit" not in (launched.end["traceback"] or ""), case
        assert launched.stderr.count("Traceback") <= 1, case
        reasons[case] = launched.end["reason"]
    assert reasons == snapshot
    assert "before" in failing(FAILURES["error"]).stderr
    gc.collect()


@pytest.mark.slow
def test_a_script_of_which_nothing_ran_after_its_imports_has_no_result(script, tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("sum(range(3 * 10 ** 7))")
    source = "import sys\nsys.path.insert(0, '')\nimport keras\n"
    end = script(source + "def main():\n    keras.run()\n").end
    assert end["status"] == "not available"
    assert end["reason"].startswith("its own code did nothing: ")
    assert script(source + "print(sum(range(3 * 10 ** 6)))").end["status"] == "ok"


def observe(output, grep, compare=(), errors=""):
    values = {}
    observe_numbers(SimpleNamespace(observe=values.__setitem__), (output, errors), grep, compare)
    return values


STEPS = "".join(f"step {i}: 1,20{i}.5ms\n" for i in range(3)) + "late 7\n"
GREP = [[r"step (\d+): (\S+)", ["step", "took"]]]
HALVES = [[r"half (\S+)", ["half"]], [r"single (\S+)", ["single"]]]
COMPARE = [["half/single", "half", "single"]]


def test_numbers_that_it_prints_are_taken_and_their_ratios():
    observed = observe(STEPS, GREP)
    assert (observed["step"], observed["took"]) == (1.0, 1.2015)
    assert observed["printed"] == {"step": [0, 1, 2], "took": [1.2005, 1.2015, 1.2025]}
    assert observed["printed units"] == {"step": "", "took": "s"}
    logged = observe("load 3", [[r"took (\S+)", ["took"]], [r"load (\S+)", ["load"]]], errors="INFO took 2 ms")
    assert logged["printed"] == {"took": [0.002], "load": [3.0]}
    assert observe("half 6 ms\nsingle 2 ms", HALVES, COMPARE)["half/single"] == pytest.approx(3.0)
    assert "half/single" not in observe("half 6\nsingle 0", HALVES, COMPARE)


def test_what_is_no_number_or_no_ratio_is_told(snapshot):
    # the whole match where there is no group: its first number, of which there is none here
    wrong = {
        "no number": (STEPS, [*GREP, [r"late \d", ["late"]]]),
        "no match": ("hello", [[r"took (\d+)", ["took"]]]),
        "no output": ("", [[r"took (\d+)", ["took"]]]),
        "one unit": ("half 6 ms\nsingle 2", HALVES, COMPARE),
    }
    assert {case: catch_text(ScriptFailed, observe, *arguments) for case, arguments in wrong.items()} == snapshot


def test_files_are_beside_a_script_with_the_name_of_its_scenario(script, tmp_path):
    (tmp_path / "mine.py").write_text("# the scenario")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("7")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("size = 5")
    source = (
        "import os\nfrom own import size\nhere = os.path.dirname(os.path.abspath(__file__))\n"
        "print(size, open(os.path.join(here, 'data', 'a.csv')).read(), open('data/a.csv').read())\n"
    )
    assert script(source).observed("output")["lines"] == ["5 7 7"]
    assert (tmp_path / "mine.py").read_text() == "# the scenario"
    missing = script(source + "open(os.path.join(here, 'b.csv'))").end["reason"]
    assert missing.endswith(" --with b.csv")


def test_steps_are_the_samples_and_numbers_are_read_from_what_a_terminal_shows_and_from_a_log(script):
    source = (
        "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('load 2 ms')\n"
        "def show(i):\n    print('\\r%d/2 took %d ms' % (i, i), end='')\nfor i in range(3):\n    show(i)"
    )
    launched = script(source, functions=["show"], grep=[[r"took (\d+)", ["took"]], [r"load (\S+)", ["load"]]])
    assert [sample["steps"] for sample in launched.samples] == [1] * 2
    assert phases(launched)["first call"] > 0
    assert launched.observed("printed") == {"took": [0.002], "load": [0.002]}
    assert launched.observed("output")["lines"] == ["2/2 took 2 ms"]


def test_time_to_import_is_of_the_outermost_modules_of_some_packages(tmp_path, monkeypatch):
    (tmp_path / "outer_mod").mkdir()
    (tmp_path / "outer_mod" / "__init__.py").write_text("from . import inner\nimport other_mod\n")
    (tmp_path / "outer_mod" / "inner.py").write_text("loader = __loader__, __spec__.loader\n")
    (tmp_path / "outer_mod" / "lazy.py").write_text("")
    (tmp_path / "other_mod.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    clock = ImportClock(("outer_mod",))
    with clock:
        import outer_mod

        first = clock.seconds
        assert first > 0
        import outer_mod  # noqa: F811 - once more

        assert clock.seconds == first
        import outer_mod.lazy

        assert clock.seconds > first
    assert clock not in sys.meta_path
    inner = outer_mod.inner
    assert inner.loader == (inner.__spec__.loader,) * 2
    assert type(inner.__loader__).__module__ != "kit.steps"


def test_a_timed_function_keeps_all_else_of_it():
    steps = Steps(lambda result: None)

    class Traced:
        def __call__(self, x):
            return x + 1

        def traces(self):
            return 7

    timed = steps.timed(Traced())
    assert (timed(1), timed.traces(), len(steps.samples)) == (2, 7, 1)
    with pytest.raises(ZeroDivisionError):
        steps.timed(lambda: 1 / 0)()
    assert len(steps.samples) == 1
    plain = steps.timed(types.FunctionType(compile("0", "a", "eval"), {}, "named"))
    assert plain.__name__ == "named"
    model = type("Model", (), {"size": steps.timed(property(lambda self: 3))})
    assert (model().size, len(steps.samples)) == (3, 2)

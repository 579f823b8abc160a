"""A plain script in a launch: what is told of it."""

import sys
import types

import pytest
from kit.steps import ImportClock, Steps

GIVEN = """\
import os
from kit.script import run_script
def scenario(bench):
    os.chdir({folder!r})
    run_script(bench, "mine.py", {source!r}, **{asked!r})
"""


@pytest.fixture
def script(launch, tmp_path):
    """A function that has a worker run a plain script in a folder of the test's own."""
    return lambda source, **asked: launch(GIVEN.format(folder=str(tmp_path), source=source, asked=asked))


def observed(launched):
    return {event["name"]: event["value"] for event in launched.of("observation")}


def phases(launched):
    return {event["name"]: event["seconds"] for event in launched.of("phase")}


def test_the_whole_script_is_one_step_and_its_output_is_told(script):
    done = script("import sys\nprint('hello', sys.argv)\nprint('x' * 500)\nprint(__name__)", arguments=["--fast", "1"])
    assert done.end["status"] == "ok", done.stderr
    ((sample,), told) = done.samples, observed(done)["output"]
    assert sample["steps"] == 1
    assert told["lines"] == ["hello ['mine.py', '--fast', '1']", "x" * 200, "__main__"]
    assert told["count"] == 3
    spent = phases(done)
    assert spent["import"] == 0
    assert spent["own work"] <= sample["seconds"]


def test_what_others_print_is_caught_and_megabytes_are_no_trouble(script):
    source = (
        "import os, subprocess, sys\n"
        "os.write(1, b'raw\\n')\n"
        "subprocess.call([sys.executable, '-c', 'print(1)'])\n"
        "for i in range(3000): print('y' * 1000)"
    )
    done = script(source)
    told = observed(done)["output"]
    assert told["lines"][:2] == ["raw", "1"]
    assert (told["count"], len(told["lines"])) == (3002, 100)
    assert "yyy" not in done.stderr


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
    done = script(source)
    assert done.end["status"] == "ok", done.stderr
    assert sorted(observed(done)["output"]["lines"]) == ["3", "process", "thread"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "x = 1\nopen('absent.csv')",
            "No such file or directory: 'absent.csv' (mine.py, line 2). To pass the file: --with absent.csv",
        ),
        (
            "import absent.module",
            "No module named 'absent' (mine.py, line 1). If absent is your own file or folder, pass it: --with",
        ),
        ("xrange(3)", "name 'xrange' is not defined (mine.py, line 1). Only Python 2 has this name. Write range"),
        ("import urllib2", "No module named 'urllib2' (mine.py, line 1). Only Python 2 has this module. Write urllib"),
        (
            "input()",
            "EOFError: EOF when reading a line (mine.py, line 1). The script's standard input is empty. To pass a "
            "file: --stdin FILE",
        ),
        ("raise OSError(-3, 'Temporary failure in name resolution')", "(mine.py, line 1). A launch has no network"),
        ("def f():\n    raise ValueError('no.')\nf()", "ValueError: no. (mine.py, line 2)"),
        ("import sys\nsys.exit(3)", "it ended with exit status 3"),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--steps', type=int, required=True)\n"
            "p.add_argument('-o', '--out', required=True)\np.parse_args()",
            "error: the following arguments are required: --steps, -o/--out. Pass the script's arguments at "
            "the end of the command: -- --steps N --out OUT",
        ),
        ("import sys\nprint('no GPU', file=sys.stderr)\nsys.exit(1)", "it ended with exit status 1: no GPU"),
        ("import sys\nsys.exit('bad')", "it ended with exit status 1: bad"),
        ("x = = 1", "SyntaxError: invalid syntax (mine.py, line 1)"),
        ("# cell 2\nx = 1\n# cell 5\ny = 2\n1 / 0", "ZeroDivisionError: division by zero (cell 5, line 2)"),
    ],
)
def test_a_script_that_fails_is_told_by_its_own_error_and_what_to_do(script, source, reason):
    done = script(source)
    assert done.end["status"] == "failed"
    assert reason.lower() in done.end["reason"].lower()
    assert done.samples == []
    assert "kit" not in (done.end["traceback"] or "")
    assert done.stderr.count("Traceback") <= 1


def test_exit_status_0_is_no_failure_and_what_was_printed_before_a_failure_is_kept(script):
    assert script("import sys\nprint(1)\nsys.exit(0)").end["status"] == "ok"
    assert script("import sys\nsys.exit()").end["status"] == "ok"
    assert "before" in script("print('before')\n1 / 0").stderr


def test_a_script_of_which_nothing_ran_after_its_imports_has_no_result(script, tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("sum(range(10 ** 8))")
    source = "import sys\nsys.path.insert(0, '')\nimport keras\n"
    done = script(source + "def main():\n    keras.run()\n")
    assert done.end["status"] == "not available"
    assert done.end["reason"].startswith("its own code did nothing: ")
    assert script(source + "print(sum(range(10 ** 7)))").end["status"] == "ok"


def test_standard_input_is_empty_or_a_file(script, tmp_path):
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    done = script("import sys\nprint(input(), sys.stdin.readlines())", stdin="in.txt")
    assert observed(done)["output"]["lines"] == ["one ['two\\n']"]


def test_numbers_that_it_prints_are_taken(script):
    source = "for i in range(3): print('step %d: 1,20%d.5ms' % (i, i))\nprint('late 7')"
    done = script(source, grep=[[r"step (\d+): (\S+)", ["step", "took"]], [r"late \d", ["late"]]])
    # the whole match where there is no group: its first number, of which there is none here
    assert "--grep 'late \\d' found 'late 7', which isn't a number" in done.end["reason"]
    done = script(source, grep=[[r"step (\d+): (\S+)", ["step", "took"]]])
    found = observed(done)
    assert (found["step"], found["took"]) == (1.0, 1.2015)
    assert found["printed"] == {"step": [0, 1, 2], "took": [1.2005, 1.2015, 1.2025]}
    assert found["printed units"] == {"step": "", "took": "s"}
    nothing = script("print('hello')", grep=[[r"took (\d+)", ["took"]]])
    assert nothing.end["reason"] == "--grep 'took (\\d+)' finds nothing in the script's output. It printed: 'hello'"


def test_numbers_are_read_from_what_a_terminal_shows(script):
    done = script("for i in range(3): print('\\r%d/2 took %d ms' % (i, i), end='')", grep=[[r"took (\d+)", ["took"]]])
    assert observed(done)["printed"] == {"took": [0.002]}
    assert observed(done)["output"]["lines"] == ["2/2 took 2 ms"]


def test_numbers_in_a_log_or_a_progress_bar_on_standard_error_are_taken(script):
    source = "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('took 2 ms')\nprint('load 3')"
    done = script(source, grep=[[r"took (\S+)", ["took"]], [r"load (\S+)", ["load"]]])
    assert observed(done)["printed"] == {"took": [0.002], "load": [3.0]}


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
    assert observed(script(source))["output"]["lines"] == ["5 7 7"]
    assert (tmp_path / "mine.py").read_text() == "# the scenario"
    missing = script(source + "open(os.path.join(here, 'b.csv'))").end["reason"]
    assert missing.endswith("To pass the file: --with b.csv")


def test_the_ratio_of_two_numbers_is_one_more_and_only_of_the_same_kind(script):
    grep = [[r"half (\S+)", ["half"]], [r"single (\S+)", ["single"]]]
    compare = [["half/single", "half", "single"]]
    done = script("print('half 6 ms')\nprint('single 2 ms')", grep=grep, compare=compare)
    assert observed(done)["half/single"] == pytest.approx(3.0)
    done = script("print('half 6 ms')\nprint('single 2')", grep=grep, compare=compare)
    assert "only one of the two numbers has a unit of time" in done.end["reason"]
    done = script("print('half 6')\nprint('single 0')", grep=grep, compare=compare)
    assert "half/single" not in observed(done)


def test_steps_are_the_samples_and_the_first_call_is_told_apart(script):
    done = script("def f(x):\n    return x\nfor i in range(5):\n    f(i)", functions=["f"])
    assert [sample["steps"] for sample in done.samples] == [1] * 4
    assert phases(done)["first call"] > 0
    never = script("# harness: step\ndef f():\n    pass")
    assert never.end["reason"] == "the code that should be timed as a step never ran"


def test_a_script_that_replaces_what_it_prints_to_loses_nothing(script):
    done = script("import io, sys\nprint(1)\nsys.stdout = io.StringIO()\nprint(2)")
    assert observed(done)["output"]["lines"] == ["1"]


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


def test_a_property_is_a_step_and_has_its_value():
    steps = Steps(lambda result: None)

    class Model:
        size = steps.timed(property(lambda self: 3))

    assert (Model().size, len(steps.samples)) == (3, 1)


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

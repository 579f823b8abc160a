import ast
import re
from dataclasses import replace
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.errors import FileError, UsageError
from harness.model.settings import find_thread_setting
from harness.scenarios import script_files, script_sources, scripts
from harness.scenarios.catalog import load_scenario
from harness.scenarios.scripts import Script
from tests.errors import catch, catch_text


def script(text: str, name: str = "mine.py", **options: object) -> Script:
    return Script(path=Path(name), name=name, text=text, **options)


@given(st.text())
@example("'''\\'''")
@example("a'")
@example("# /// script\n# [tool.harness]\n# ///\n")
@example("\r\n\t\x0c\0\udc80\\N{DEGREE SIGN}")
def test_a_literal_is_the_text_and_begins_no_header(text):
    literal = scripts.format_literal(text)
    assert ast.literal_eval(literal) == text
    assert literal.isascii()
    assert "\n# ///" not in literal


def test_a_script_becomes_a_scenario_that_the_catalogue_reads_and_the_same_script_the_same_file():
    first, *others = [
        script('print("""a\\n""")\n', "My script-2 🔥.py"),
        script("x = 2"),
        script("x = 2", arguments=["-f"]),
    ]
    path = scripts.write(first, "scripts")
    scenario = load_scenario(path)
    assert (scenario.name, scenario.script, scenario.title) == ("my_script_2", "My script-2 🔥.py", "My script-2 🔥.py")
    assert [entry.along for entry in scenario.compare] == ["environment"] * len(scenario.compare)
    assert scripts.write(first, "scripts") == path
    assert len({path, *(scripts.write(other, "scripts") for other in others)}) == 3


def test_options_of_a_script_are_axes_of_its_scenario():
    scan = {"batch-size": ["32", "64"], "lr": ["0.1", "0.2"]}
    path = scripts.write(script("x = 1", arguments=["-v"], scan=scan, grep=["(?P<took>.*)"]), "scripts")
    scenario = load_scenario(path)
    assert scenario.axes == {"batch_size": ["32", "64"], "lr": ["0.1", "0.2"]}
    compared = {(entry.along, entry.plus, entry.against, entry.of) for entry in scenario.compare if entry.plus}
    assert ("batch_size", "64", "32", "step") in compared
    assert ("lr", "0.2", "0.1", "printed: took") in compared
    namespace = {"__name__": "x"}
    code = path.read_text().partition("def scenario")
    exec(
        "SCRIPT = ''\ndef run_script(*_, **options): seen.update(options)\nseen = {}\ndef scenario" + code[2], namespace
    )
    namespace["scenario"](None, batch_size="64", lr="0.1")
    assert namespace["seen"]["arguments"] == ["-v", "--batch-size", "64", "--lr", "0.1"]


def test_settings_of_threads_are_noticed():
    texts = {
        "tf.config.threading.set_intra_op_parallelism_threads(2)": "set_intra_op_parallelism_threads",
        "config = ConfigProto(inter_op_parallelism_threads=1)": "inter_op_parallelism_threads",
        "dataset.map(f, num_parallel_calls=4)": "num_parallel_calls",
        "tf.map_fn(f, x, parallel_iterations=4)": "parallel_iterations",
        "fit_generator(x, workers = 4)": "workers",
        "os.environ['OMP_NUM_THREADS'] = '1'": "OMP_NUM_THREADS",
        "coworkers_of = 3": "",
    }
    assert {text: find_thread_setting(text) for text in texts} == texts


def test_a_scenario_s_name_is_not_taken_twice_and_hides_no_module(tmp_path):
    assert scripts.write(script("x = 1", "keras_step.py"), "scripts", ["keras_step"]).stem == "keras_step_script"
    assert script("", "tensorflow.py").scenario == "script_tensorflow"
    assert script("", "2.py").scenario == "script_2"
    (tmp_path / "timeit.py").write_text("x = 1")
    assert script_sources.read(tmp_path / "timeit.py").name == "script_timeit.py"
    # nor does it replace a module that is brought with it
    (tmp_path / "my_step.py").write_text("x = 1")
    path = scripts.write(script("import my_step", "my-step.py", files=[tmp_path / "my_step.py"]), "scripts")
    assert path.stem == "my_step_script"


def test_files_are_brought_beside_it_and_what_keras_downloads_to_where_it_looks(tmp_path):
    data, digits = tmp_path / "data.csv", tmp_path / ".keras" / "datasets" / "mnist.npz"
    digits.parent.mkdir(parents=True)
    data.write_bytes(b"1,2\n")
    digits.write_bytes(b"npz")
    path = scripts.write(script("x = 1", files=[data, digits]), "scripts")
    assert load_scenario(path).files == ["data.csv", ".keras/datasets/mnist.npz"]
    assert (path.parent / "data.csv").read_bytes() == b"1,2\n"
    assert (path.parent / ".keras" / "datasets" / "mnist.npz").read_bytes() == b"npz"
    absent = script("x = 1", files=[tmp_path / "absent.csv"])
    assert "absent.csv" in catch_text(UsageError, scripts.write, absent, "scripts")


def test_a_folder_is_brought_with_its_files_and_the_paths_are_kept(tmp_path, monkeypatch):
    for name in ("data/a/train.csv", "data/.git/config", "data/__pycache__/x.pyc", "other/b.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    here = replace(script("x = 1"), path=tmp_path / "mine.py")
    assert list(script_files.map_files([Path("data")], here.path)) == ["data/a/train.csv"]
    assert list(script_files.map_files([tmp_path / "data/a/train.csv"], here.path)) == ["data/a/train.csv"]
    elsewhere = replace(here, path=Path("/elsewhere/mine.py"))
    assert list(script_files.map_files([Path("other/b.csv")], elsewhere.path)) == ["other/b.csv"]
    files = [tmp_path / "other/b.csv", Path("b.csv")]
    assert script_files.map_files(files, elsewhere.path) == {"b.csv": files[0]}


def test_local_modules_and_named_data_are_found_and_nothing_outside_of_the_folder(tmp_path):
    folder = tmp_path / "work"
    for name, text in {
        "mine.py": "",
        "helpers.py": "import deeper\nopen('data/names.txt')",
        "deeper.py": "",
        "unused.py": "",
        "queue.py": "",
        "random.py": "",
        "time.py": "",
        "package/__init__.py": "",
        "data/names.txt": "",
        ".secret": "",
        "../outside.csv": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    names = ["../outside.csv", "link.csv", ".secret", "", ".", "/", "absent"]
    text = f"import helpers, package.inner, numpy, time, queue\nnames = {names}"
    for script_name, standard in {"mine.py": ["queue.py"], "issue.md": []}.items():  # `time` is built in
        paths = script_files.find_beside(folder / script_name, text)
        found = [path.relative_to(folder).as_posix() for path in paths]
        assert found == ["helpers.py", "package", *standard, "deeper.py", "data/names.txt"]


def test_numbers_are_called_by_their_groups_or_the_text_around_them():
    names = {
        r"predict: (\S+) ms": ["predict: … ms"],
        r"^loss (?:is )?(\d+\.\d+)$": ["loss …"],
        r"(?P<load>\d+) then (?P<run>\d+)": ["load", "run"],
        r"(\d+) of (\d+)": ["… of … (1)", "… of … (2)"],
        r"\d+": ["print"],
        r"^(\S+)$": ["print"],
        r"num_calls = \S+, cost: (\S+)": ["num_calls = …, cost: …"],
        r"(?P<label>\w+) took (\S+)": ["… took …"],
        r"a\.b = (.*)": ["a.b = …"],
    }
    assert {pattern: scripts.find_labels(pattern) for pattern in names} == names


@given(st.text(alphabet="a()\\d+*?P<n>.^$| :", max_size=12))
def test_every_regular_expression_has_names_and_every_other_text_is_told(pattern):
    try:
        re.compile(pattern)
    except re.error:
        catch(UsageError, scripts.find_labels, pattern)
        return
    names = scripts.find_labels(pattern)
    assert names
    assert len(set(names)) == len(names)


def test_two_named_numbers_are_compared_or_those_that_are_requested(snapshot):
    def ratios(*patterns, compare=()):
        return script("", grep=[*patterns], compare=[*compare]).ratios

    assert ratios(r"(?P<half>\d+)", r"(?P<single>\d+)") == {"half/single": ("half", "single")}
    assert ratios(r"(?P<half>\d+)", r"(\d+)") == {}
    assert ratios(r"(?P<a>.) (?P<b>.) (?P<c>.)") == {}
    named = r"(?P<a>.) (?P<b>.)"
    requested = ["b/a", "\u2026 ms/step/a"]
    assert ratios(named, r"(.) ms/step", compare=requested) == {
        "b/a": ("b", "a"),
        "\u2026 ms/step/a": ("\u2026 ms/step", "a"),
    }
    errors = {text: catch_text(UsageError, ratios, named, compare=[text]) for text in ("a/c", "a", "a/a", "/")}
    errors["no group"] = catch_text(UsageError, ratios, r"(\d+)", compare=["a/b"])
    errors["no name"] = catch_text(UsageError, ratios, r"took (\d+)", compare=["a/b"])
    errors["one name"] = catch_text(UsageError, lambda: script("", grep=[r"a (\d+)", r"a (\S+)"]).numbers)
    errors["a pattern"] = catch_text(UsageError, scripts.find_labels, "(")
    assert errors == snapshot


def test_benchmarks_of_tensorflow_are_run_by_their_runner_and_compared_by_name():
    text = (
        "import tensorflow as tf\nclass A(tf.test.Benchmark):\n    def benchmarkB(self):\n        pass\n"
        "    def benchmarkC(self):\n        pass\nif __name__ == '__main__':\n    tf.test.main()\n"
    )
    run, (sentence,) = scripts.add_runner(script(text))
    assert run.arguments == ["--benchmarks=."]
    assert run.ratios == {}
    printed = 'entry {\n  name: "A.benchmarkC"\n  iters: 2\n  wall_time: 0.25\n}\n'
    assert [re.findall(pattern, printed) for pattern in run.grep] == [[], ["0.25"]]
    assert "--benchmarks=." in sentence
    assert scripts.add_runner(script(text, arguments=["x"]))[1] == []


def test_tests_of_pytest_benchmark_are_run_by_pytest():
    text = "def test_a(benchmark):\n    benchmark(sum, [1])\n"
    run, _ = scripts.add_runner(script(text))
    assert run.text.startswith(text)
    assert re.findall(run.grep[0], "test_a: median 0.25 s\ntest_a[2]: median 0.5 s", re.MULTILINE) == ["0.25", "0.5"]
    assert scripts.add_runner(script(f"x = sum([1])\n{text}"))[0].has_runner
    for plain in (script("print(1)"), script(f"{text}import pytest\npytest.main([__file__])")):
        assert scripts.add_runner(plain) == (plain, [])


def test_what_is_wrong_in_a_script_is_told_before_anything_is_launched(tmp_path, snapshot):
    wrong = [
        script("x = = 1"),
        script('x = 1\nprint "a", x'),
        script("x = \u201ca\u201d"),
        script("x = 1\n# harness: step"),
        script("f()", functions=["g"]),
        script("# cell 4\nx = 1\nx = = 1", "a.ipynb"),
    ]
    errors = [catch_text(FileError, scripts.check, text) for text in wrong]
    path = tmp_path / "latin.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\nx = 'caf\xe9'\n")
    errors.append(catch_text(FileError, script_sources.read, path).replace(str(tmp_path), ""))
    assert errors == snapshot
    deep = "x = " + "+".join(["1"] * 1500)
    assert not scripts.check(script(deep))
    assert scripts.add_runner(script(deep)) == (script(deep), [])
    assert "deep" in catch_text(FileError, scripts.check, script(f"{deep}\n# harness: step\nx = 2"))
    for line in ("print `x`", "print x", "raise E, 'no'", "if x <> 1: pass", "x = 10L", "x = 0755"):
        assert "Python 2" in catch_text(FileError, scripts.check, script(line)), line


def test_a_scenario_is_known_by_its_header(tmp_path):
    plain, scenario = tmp_path / "plain.py", tmp_path / "scenario.py"
    plain.write_text("# /// script\n# dependencies = []\n# ///\n")
    scenario.write_text('# /// script\n# [tool.harness]\n# title = "x"\n# ///\n')
    assert [scripts.has_header(path) for path in (plain, scenario, tmp_path / "absent.py")] == [False, True, False]

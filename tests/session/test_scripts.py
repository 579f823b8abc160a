"""Requests to measure a plain script."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from harness.cli import options
from harness.model.errors import UsageError
from harness.scenarios.catalog import load_scenario
from harness.scenarios.scripts import Script
from harness.session.request import Request
from harness.session.scripts import find_v1_names, make_request, read_scan


def test_packages_of_a_file_are_added_to_each_release_if_they_apply_in_its_python(tmp_path):
    script, packages = tmp_path / "mine.py", tmp_path / "requirements.txt"
    script.write_text("x = 1\n")
    packages.write_text('numpy==1.16.4\ntyping-extensions==4.0.0 ; python_version < "3.8"\n')
    request, _ = make_request(Script(path=script), Request(environments=["tf1.14", "tf2.15", str(packages)]))
    assert request.environments == ["tf1.14+numpy==1.16.4+typing-extensions==4.0.0", "tf2.15+numpy==1.16.4"]
    packages.write_text("numpy<2\n")  # which both have
    request, _ = make_request(Script(path=script), Request(environments=["tf1.14", "tf2.15", str(packages)]))
    assert request.environments == ["tf1.14", "tf2.15"]
    packages.write_text("numpy==1.16.4\nobjgraph\n")
    request, _ = make_request(Script(path=script), Request(environments=["tf2.15", "tf2.15+six==1", str(packages)]))
    assert request.environments == ["tf2.15+objgraph+numpy==1.16.4", "tf2.15+six==1+numpy==1.16.4+objgraph>=0"]
    with pytest.raises(UsageError, match="doesn't contain TensorFlow"):
        make_request(Script(path=script), Request(environments=[str(packages)]))


def test_well_known_packages_that_a_script_imports_are_added_where_they_are_missing(tmp_path):
    script, names = tmp_path / "mine.py", ["tf1.14", "tf2.1[56]", "tf2.17+psutil", "tf1.15-ngc"]
    script.write_text("import h5py\nimport PIL\nimport pandas as pd\ndef plot():\n    import matplotlib\n")
    request, sentences = make_request(Script(path=script), Request(environments=names))
    added = [f"{name}+pillow+pandas" for name in ("tf1.14", "tf2.15", "tf2.16")]
    assert request.environments == [*added, "tf2.17+psutil", "tf1.15-ngc"]
    assert sentences[0] == (
        "mine.py needs pillow and pandas, which tf1.14 doesn't have. So the environment is tf1.14+pillow+pandas."
    )
    script.write_text("def test_it(benchmark):\n    benchmark(print)\n")
    request, _ = make_request(Script(path=script), Request(environments=["tf2.15", "tensorflow==2.7.1"]))
    assert [name.partition("+")[2] for name in request.environments] == ["pytest-benchmark==4.0.0"] * 2
    script.write_text("import torch\nimport pandas\n")  # gigabytes, so only on request
    assert make_request(Script(path=script), Request(environments=["tf2.15"]))[0].environments == ["tf2.15"]


def test_the_default_budget_can_be_exceeded_also_by_the_command_of_a_shard(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("x = 1\n")
    request, _ = make_request(Script(path=script), Request(environments=["tf2.15"], slots="2"))
    assert request.budget_is_wish
    requests: list[Request] = []
    command = typer.Typer()

    @command.command()
    @options.of(Request)
    def matrix(request: Request) -> None:
        requests.append(request)

    assert CliRunner().invoke(command, request.command()[2:]).exit_code == 0
    assert [(entry.budget, entry.budget_is_wish) for entry in requests] == [(90.0, True)]
    assert "--budget-is-wish" not in CliRunner().invoke(command, ["--help"]).stdout
    for strict in ({"budget": 90.0}, {"rounds": 3}):
        request, _ = make_request(Script(path=script), Request(environments=["tf2.15"], **strict))
        assert not request.budget_is_wish


def test_a_function_without_a_name_is_refused(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("print(1)\n")
    for name in ("", " "):
        with pytest.raises(UsageError, match="--function ''"):
            make_request(Script(path=script, functions=["print", name]), Request(environments=["tf2.15"]))


def test_a_file_of_the_user_comes_before_a_file_beside_the_script(tmp_path):
    folders = [tmp_path / name for name in ("one", "other", "script")]
    for folder in folders:
        folder.mkdir()
        (folder / "helper.py").write_text(f"NAME = {folder.name!r}\n")
    script = folders[2] / "mine.py"
    script.write_text("import helper, package\n")
    (folders[2] / "package").mkdir()
    (folders[2] / "package" / "__init__.py").write_text("")

    def request(*files: Path):
        return make_request(Script(path=script, files=files), Request(environments=["tf2.15"]))

    package = folders[2] / "package"
    made, sentences = request(folders[0] / "helper.py", folders[0] / "../one/helper.py", package)
    assert Path(made.scenarios[0]).with_name("helper.py").read_text() == "NAME = 'one'\n"
    assert not any("also get" in sentence for sentence in sentences)
    with pytest.raises(UsageError, match="as the same file"):
        request(*(folder / "helper.py" for folder in folders[:2]))


def test_a_thread_setting_on_one_core_is_said_before_the_run(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("workers = 4\nprint(dict(workers=workers))\n")

    def sentences(**options):
        return [
            text
            for text in make_request(Script(path=script), Request(environments=["tf2.15"], **options))[1]
            if "pinned" in text
        ]

    (sentence,) = sentences()
    assert "workers" in sentence
    assert "--cpus all" in sentence
    assert not any(sentences(**options) for options in ({"cpus": "all"}, {"axes": {"cpus": ["1", "2"]}}, {"gpu": True}))


def test_values_of_an_option_are_an_axis_or_refused(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("print(1)\n")
    request, _ = make_request(
        Script(path=script, scan=read_scan(["--batch-size=32,64,32"])), Request(environments=["tf2.15"])
    )
    assert "batch_size = ['32', '64']" in Path(request.scenarios[0]).read_text().replace('"', "'")
    for text in ("batch_size", "batch_size=32", "=1,2", "a b=1,2"):
        with pytest.raises(UsageError, match="Invalid --scan"):
            read_scan([text])


def test_programs_of_a_file_are_compared_if_its_text_does_or_if_they_are_chosen(tmp_path):
    path = tmp_path / "issue.md"
    program = "```\nimport tensorflow as tf\nprint(tf.add({}, 1))\n```\n"
    path.write_text(f"One:\n{program.format(1)}Two:\n{program.format(2)}")

    def plan(*chosen: str) -> tuple[object, ...]:
        axes = {"program": chosen} if chosen else {}
        request, _ = make_request(Script(path=path), Request(environments=["tf2.15"], axes=axes))
        scenario = load_scenario(Path(request.scenarios[0]))
        along = {(entry.along, entry.plus, entry.against) for entry in scenario.compare} - {("environment", "", "")}
        return dict(request.axes), scenario.axes, along

    for wrong in ((), ("4",), ("3", "99")):
        with pytest.raises(UsageError, match="2 programs, which start at lines 3 and 8") as raised:
            plan(*wrong)
        assert "-a program=3,8" in raised.value.advice
    assert plan("8") == ({}, {}, set())
    compared = ({}, {"program": ["3", "8"]}, {("program", "8", "3")})
    assert plan("*") == compared
    path.write_text(path.read_text() + "Two is slower.\n")
    assert plan() == compared


def test_tensorflow_1_is_offered_through_compat_v1_if_an_environment_has_tensorflow_2(tmp_path):
    path = tmp_path / "old.py"
    path.write_text("import tensorflow as tf\ntf.Session()\n")
    for environments, is_offered in ((["tf1.14"], False), (["tf1.14", "tf2.15"], True)):
        request, _ = make_request(Script(path=path), Request(environments=environments))
        assert bool(find_v1_names(request)) is is_offered
    request, _ = make_request(Script(path=path, compat_v1=True), Request(environments=["tf2.15"]))
    scenario = load_scenario(Path(request.scenarios[0]))
    assert (scenario.needs, "tensorflow.compat.v1" in scenario.title, find_v1_names(request)) == ([], True, "")

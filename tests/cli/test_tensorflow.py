"""The real thing without an engine: a real TensorFlow in a local environment, started by the real command."""

import json
import os
from pathlib import Path

import pytest

from tests.commands import run_harness
from tests.lacking import python

STEP = ["-s", "keras_step", "-a", "model=small", "-a", "data=small", "-a", "call=train_on_batch", "-a", "inputs=numpy"]
SHORT = ["--rounds", "1", "--warmup", "10ms", "--measure", "50ms", "--seed", "1", "--backend", "local"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Local environments of this file's tests, each made once."""
    return tmp_path_factory.mktemp("cache")


def launches(results: Path) -> list[dict[str, object]]:
    (folder,) = results.iterdir()
    return [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_tensorflow_1_14_trains_in_a_local_environment_made_from_its_lock(cache, tmp_path):
    python("3.7")
    selected = [*STEP, "-e", "tf1.14", "-a", "api=tf.keras,keras", "-a", "mode=graph"]
    process = run_harness("matrix", *selected, *SHORT, "--results", str(tmp_path), HARNESS_CACHE_DIR=str(cache))
    assert process.returncode == 0, process.stderr
    measured = [launch for launch in launches(tmp_path) if launch["role"] != "pilot"]
    assert {launch["status"] for launch in measured} == {"ok"}
    # a round that others disturbed is done again
    assert len([launch for launch in measured if launch["attempt"] == 0]) == 2
    for launch in measured:
        assert launch["observations"]["tensorflow"] == "1.14.0"  # type: ignore[index]
        assert launch["fingerprint"]["steps_counted"] == launch["fingerprint"]["steps_called"]  # type: ignore[index]
        assert launch["pins"]["keras"] == "2.2.5"  # type: ignore[index]


@pytest.mark.slow
def test_an_environment_whose_python_is_hidden_is_not_available_and_the_report_shows_what_ran(cache, tmp_path):
    """The machine of most users: Python 3.11 is there, 3.7 is not, and uv has none."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3.11").symlink_to(python("3.11"))
    hidden = {
        "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "HOME": str(tmp_path),
        "HARNESS_CACHE_DIR": str(cache / "hidden"),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
        **{name: value for name, value in os.environ.items() if name.startswith(("SSL_CERT", "HARNESS_MACHINE"))},
    }
    results = tmp_path / "results"
    selected = [*STEP, "-e", "tf1.14", "-e", "tf2.15", "-a", "api=tf.keras", "-a", "mode=eager"]
    process = run_harness("matrix", *selected, *SHORT, "--results", str(results), environ=hidden)
    assert process.returncode == 0, process.stderr
    assert {(launch["cell"]["environment"], launch["status"]) for launch in launches(results)} == {("tf2.15", "ok")}  # type: ignore[index]
    (folder,) = results.iterdir()
    report = (folder / "report.md").read_text()
    assert "Python 3.7 isn't installed on this machine" in report
    assert "pyenv install 3.7" in report
    assert "--backend docker" in report

"""What a command loads: nothing of fleets, of an engine or of GPUs unless it needs that."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, SHORT, stored
from tests.lacking import for_a_campaign
from tests.report.formats.examples import example

#: Does commands, and writes what is loaded then: the modules, without packages, to the file of the first argument.
LOADED = """
import shlex, sys
path, *lines = sys.argv[1:]
from harness.cli import main
for line in lines:
    sys.argv = ["harness", *shlex.split(line)]
    try:
        main()
    except SystemExit as ending:
        assert not ending.code, line
names = [name for name, module in sys.modules.items() if not hasattr(module, "__path__")]
open(path, "w").write("\\n".join(names))
"""

FLEET, ENGINE = ("harness.fleet.", "ray."), ("harness.backends.docker.", "docker.")
NUMBERS = ("harness.analysis.", "harness.runner.", "numpy.")


def load(folder: Path, *lines: str) -> set[str]:
    """Return the modules that commands load in a process of their own; they must end well."""
    path = folder / "loaded"
    environ = {**os.environ, "HARNESS_PROJECT": str(folder)}
    command = [sys.executable, "-c", LOADED, str(path), *lines]
    process = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return set(path.read_text().splitlines())


def select(packages: tuple[str, ...], names: set[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(packages))


@pytest.mark.slow
def test_help_and_a_dry_run_load_no_numbers_no_engine_and_no_fleet(harness):
    dry_run = "matrix -s ways -a way=fine --backend local --dry-run"
    names = load(harness.root, "--help", "--version", "matrix --help", "bisect --help", dry_run)
    assert not select((*FLEET, *ENGINE, *NUMBERS), names)
    assert len(select(("harness.",), names)) <= 101


@pytest.mark.slow
def test_a_search_of_stored_results_loads_no_parser_of_headers(harness):
    (harness.root / "scenarios" / "ways.py").unlink()
    for name in ("keras_step", "upstream/predict_memory"):
        copy = harness.root / "scenarios" / f"{name}.py"
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "scenarios" / f"{name}.py", copy)
    names = load(harness.root, "ask predict memory", "repro list memory")
    assert "harness.upstream.stored" in names
    assert not select((*FLEET, *ENGINE, *NUMBERS, "pydantic.", "harness.scenarios.models"), names)


@pytest.mark.slow
def test_a_report_of_a_run_in_containers_and_a_local_run_load_no_fleet_and_no_engine(harness, tmp_path):
    run = stored(tmp_path / "results", *example())
    names = load(harness.root, f"report {run}")
    assert not select((*FLEET, *ENGINE, "harness.runner."), names)
    assert len(select(("harness.",), names)) <= 109
    names = load(harness.root, f"matrix -s ways -a way=fine -e old --rounds 1 {' '.join(SHORT)}")
    assert not select((*FLEET, *ENGINE), names)


#: Sends this process SIGINT when a module is first imported, and runs the command.
INTERRUPTED = """
import os, signal, sys
from harness.__main__ import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(finder)
            os.kill(os.getpid(), signal.SIGINT)

module, finder = sys.argv.pop(1), Finder()
sys.meta_path.insert(0, finder)
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modules"),
    [["typing", "harness.cli.scenarios"], *for_a_campaign(["typer", "harness.cli.messages", "tomllib"])],
    ids=["some", "others"],
)
def test_an_interruption_while_modules_load_prints_no_traceback(modules):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for module in modules:
        command = [sys.executable, "-S", "-c", INTERRUPTED, module, "scenarios", "list"]
        process = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert process.returncode in (-signal.SIGINT, 130), process.stderr
        assert process.stderr.strip() in ("", "harness: interrupted.")


def test_an_ignored_interruption_stays_ignored_while_modules_load():
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN){INTERRUPTED}"
    command = [sys.executable, "-c", ignoring, "typer", "--help"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr

"""What a command loads: nothing of fleets, of an engine or of GPUs unless it needs that."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Harness, stored
from tests.report.formats.examples import example

ROOT = Path(__file__).parents[2]

#: Does a command, and writes what is loaded then: the modules, without packages, to the file of the first argument.
LOADED = """
import atexit, sys
at = sys.argv.pop(1)
def write():
    names = [name for name, module in sys.modules.items() if not hasattr(module, "__path__")]
    open(at, "w").write("\\n".join(names))
atexit.register(write)
from harness.cli import main
main()
"""

FLEET, ENGINE = ("harness.fleet.", "ray."), ("harness.backends.docker.", "docker.")
NUMBERS = ("harness.analysis.", "harness.runner.", "numpy.")


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command loads in a process of its own; it must end well."""
    at = folder / "loaded"
    environ = {**os.environ, "HARNESS_PROJECT": str(folder)}
    command = [sys.executable, "-c", LOADED, str(at), *arguments]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(at.read_text().splitlines())


def of(packages: tuple[str, ...], names: set[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(packages))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["matrix", "--help"], ["bisect", "--help"]])
def test_help_loads_no_numbers_no_engine_and_no_fleet(harness: Harness, arguments: list[str]) -> None:
    assert not of((*FLEET, *ENGINE, *NUMBERS), loaded(harness.root, *arguments))


def test_a_dry_run_loads_no_numbers_and_of_backends_its_own(harness: Harness) -> None:
    asked = ("matrix", "-s", "ways", "-a", "way=fine", "--backend", "local", "--dry-run")
    found = loaded(harness.root, *asked)
    assert not of((*FLEET, *ENGINE, *NUMBERS), found)
    assert len(of(("harness.",), found)) <= 90


def test_a_report_of_a_run_in_containers_loads_no_engine(harness: Harness, tmp_path: Path) -> None:
    run = stored(tmp_path / "results", *example())
    found = loaded(harness.root, "report", str(run))
    assert "harness bundle" in (run / "report.md").read_text() + (run / "details.md").read_text()
    assert not of((*FLEET, *ENGINE, "harness.runner."), found)
    assert len(of(("harness.",), found)) <= 110


@pytest.mark.parametrize(("more", "is_loaded"), [([], False), (["--slots", "1"], True)])
def test_a_run_loads_fleets_for_slots_alone(harness: Harness, more: list[str], is_loaded: bool) -> None:
    asked = ("matrix", "-s", "ways", "-a", "way=fine", "--backend", "local", "--rounds", "1")
    found = loaded(harness.root, *asked, "--warmup", "1ms", "--measure", "5ms", *more)
    assert bool(of(FLEET, found)) is is_loaded
    assert not of(ENGINE, found)


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


@pytest.mark.parametrize("module", ["typing", "typer", "harness.cli.messages", "harness.cli.scenarios", "tomllib"])
def test_an_interruption_while_modules_load_prints_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", INTERRUPTED, module, "scenarios", "list"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode in (-signal.SIGINT, 130), done.stderr
    assert done.stderr.strip() in ("", "harness: interrupted.")


def test_an_ignored_interruption_stays_ignored_while_modules_load() -> None:
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN){INTERRUPTED}"
    command = [sys.executable, "-c", ignoring, "typer", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

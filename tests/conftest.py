"""Fixtures of all tests. No test reads or writes a file of the user."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TypeGuard

import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import settings
from syrupy.assertion import SnapshotAssertion

from harness.project import Project
from harness.store.folder import RunFolder
from tests.forked import Forks
from tests.golden import use_files
from tests.lacking import campaign
from tests.runs import run
from tests.stand_in.gpus import build

pytest_plugins = ["tests.tiers"]

# a test asserts nothing about time, and a shared machine may be slow at any moment
settings.register_profile("harness", deadline=None)
settings.load_profile("harness")

ROOT = Path(__file__).parents[1]


def copy_part(name: str, root: Path) -> None:
    """Copy a folder of this checkout, without bytecode: other tests write its temporary files at the same time."""
    shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


# in a shell's background job Ctrl-C is ignored, and under nohup SIGHUP: by all that a test starts and interrupts, too
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Set the machine lock of fixtures of a session or a module, which isn't the user's."""
    os.environ["HARNESS_MACHINE_LOCK"] = str(Path(tempfile.gettempdir()) / f"harness-tests-{os.getpid()}.lock")


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print the numbers of a campaign, for tests/security-tests.md."""
    reports_by_test = {
        report.nodeid: report
        for reports in terminalreporter.stats.values()
        for report in reports
        if _has_properties(report)
    }
    counter: Counter[str] = Counter()
    for entry in reports_by_test.values():
        counter.update({name: int(str(value)) for name, value in entry.user_properties})
    if counter and (campaign() or "HARNESS_FUZZ" in os.environ):
        counts = ", ".join(f"{count:,} {name}" for name, count in counter.items())
        failures = len(terminalreporter.stats.get("failed", []))
        seed = os.environ.get("HARNESS_FUZZ_SEED", "0")
        terminalreporter.write_line(f"Tried: {counts}; found: {failures}; HARNESS_FUZZ_SEED={seed}")


def _has_properties(report: object) -> TypeGuard[pytest.TestReport]:
    return isinstance(report, pytest.TestReport) and bool(report.user_properties)


def make_docs(project: Path, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `make docs` of this clone on the pages of a project, without the address of a repository."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "HARNESS_REPOSITORY"))}
    variables = [f"BIN={Path(sys.executable).parent}", f"SITE={folder}", "-o", ".venv/.ready"]
    return subprocess.run(
        ["make", "-f", ROOT / "Makefile", "docs", *variables],
        cwd=project, env={**clean, **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the documentation site, built once."""
    # one for all processes of pytest-xdist
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "docs"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            process = make_docs(ROOT, folder / "site")
            assert process.returncode == 0, process.stderr
            (folder / "built").touch()
    return folder / "site"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set folders and a machine lock for each test, unless the environment names a cache to share (CI's warm one)."""
    folder = tmp_path_factory.mktemp("machine")
    if "HARNESS_TEST_CACHE_DIR" in os.environ:
        monkeypatch.setenv("HARNESS_CACHE_DIR", os.environ["HARNESS_TEST_CACHE_DIR"])
    else:
        monkeypatch.setenv("HARNESS_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("HARNESS_MACHINE_LOCK", str(folder / "lock"))
    monkeypatch.setenv("HARNESS_DATA_DIR", str(folder / "data"))
    for name in ("HARNESS_HISTORY", "HARNESS_MACHINE", "HARNESS_MACHINE_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Return what equals the golden Markdown file of the test. `make golden` writes the files."""
    return use_files(snapshot, "md")


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the fake NVIDIA libraries."""
    return build(tmp_path_factory.mktemp("stand-ins"))


@pytest.fixture(scope="session")
def forks() -> Forks:
    """Return the process whose forks run commands."""
    return Forks()


@pytest.fixture
def project() -> Project:
    """Return the project of the checkout that the tests are in."""
    return Project(ROOT)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Return the folder of a run without a launch."""
    run_folder = RunFolder.create(tmp_path, "run")
    run_folder.write_run(run())
    return run_folder

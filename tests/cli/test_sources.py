"""Packages from sources in local environments: `-e new+mine@PLACE`, `matrix --package` and `bisect --repository`."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.files import get_cache_dir
from tests.cli.conftest import CLAIMS, NOWHERE, Harness
from tests.sources import SourceRepository

SCENARIO = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "A package of one's own"
# source = "https://example.org/question"
#
# [[tool.harness.compare]]
# name = "versions"
# along = "environment"
# ///
def scenario(bench):
    import mine
    bench.measure(lambda: sum(range(mine.CALLS * 1000)))
"""
SHORT = ("--backend", "local", "--warmup", "1ms", "--measure", "20ms", "--clock", "cpu")
PLAN = ("-s", "own", "--backend", "local", "--dry-run")


@pytest.fixture
def repository(harness: Harness, write_scenario: Callable[[str, str], Path]) -> SourceRepository:
    """Return the repository `mine`, with one commit."""
    write_scenario("own", SCENARIO)
    repository = SourceRepository(harness.root / "mine")
    repository.commit("CALLS = 1\n")
    return repository


@pytest.mark.slow
def test_two_commits_of_a_package_are_compared(harness, repository):
    repository.commit("CALLS = 3\n")
    sides = ("--package", "mine", "--base", "HEAD~", "--head", "HEAD", "--repository", "mine", "-e", "new")
    process = harness("matrix", *sides, "-s", "own", *SHORT, "--rounds", "3", "--fail-on", "slower")
    assert process.returncode == 5, process.stderr + process.stdout
    assert process.stderr.count("Building mine from commit") == 2
    first, last = repository.git("log", "--reverse", "--format=%h").split()
    report = (harness.run / "report.md").read_text()
    assert f"new-mine-{last} is new with mine 1.0 from commit {last}" in report
    assert f"new-mine-{first} is new with" in report
    assert "don't differ in anything" not in report
    # the environments are there: nothing is built again
    for arguments in (("--resume", str(harness.run), "--rounds", "4"), (*sides, *PLAN)):
        repetition = harness.call("matrix", *arguments)
        assert (repetition.returncode, "Building" in repetition.stderr) == (0, False), repetition.stderr


@pytest.mark.slow
def test_a_source_is_a_folder_a_commit_a_pull_request_or_a_wheel(harness, repository, write_scenario):
    def plan(*options: str) -> str:
        process = harness.call("matrix", *options, *PLAN)
        assert process.returncode == 0, process.stderr
        return process.stdout

    commit = repository.git("rev-parse", "HEAD")
    repository.git("update-ref", "refs/pull/5/head", commit)
    repository.git("clone", "--quiet", f"file://{repository.folder}", str(harness.root / "clone"))
    for place in ("clone", f"git+file://{repository.folder}"):
        assert f"new-mine-{commit[:7]}" in plan("-e", "new+mine@pr/5", "--repository", place)
    wheel = next((get_cache_dir() / "wheels").glob("*/mine-1.0-py3-none-any.whl"))
    text = plan("-e", f"new+mine@{wheel}")
    assert "mine 1.0 from the file mine-1.0-py3-none-any.whl" in text
    # with its changes
    (repository.folder / "mine.py").write_text("CALLS = 2\n")
    text = plan("-e", "new+mine@mine")
    assert ("with 1 changed file (diff " in text, "-dirty-" in text) == (True, True)
    # a relative folder is the working copy although a branch has its name
    repository.git("branch", "mine")
    last = repository.commit("CALLS = 2\n")
    assert last[:7] in plan("--package", "mine", "--base", "HEAD~", "--repository", "mine")
    # a build is announced when a claim is measured too
    write_scenario("sums", CLAIMS)
    repository.commit("CALLS = 4\n")
    options = ("--no-nightly", "-e", "new+mine@mine", "--backend", "local", "--wait")
    process = harness.call("repro", "K#7", *options)
    assert (process.returncode, "Building mine from commit" in process.stderr) == (4, True), process.stderr


@pytest.mark.slow
def test_what_comes_from_a_source_needs_a_container_in_a_run_and_in_a_search(harness, repository):
    process = harness.call("matrix", "-e", "new+mine@mine", "-s", "own", **NOWHERE)
    assert (process.returncode, "--backend local" in process.stderr) == (4, True)
    process = harness.call("matrix", "-e", "new+mine@mine", *PLAN)
    name = next(word for word in process.stdout.split() if word.startswith("new-mine-"))
    for command in (("matrix", "-e", name), ("bisect", "--good", "old", "--bad", name)):
        process = harness.call(*command, "-s", "own", **NOWHERE)
        assert (process.returncode, f"{name} is from outside" in process.stderr) == (4, True), process.stderr
    process = harness.call("bisect", "-s", "own", "--good", name, "--bad", "new")
    assert (process.returncode, "harness matrix -s own -e new+mine@" in process.stderr) == (2, True), process.stderr


@pytest.mark.slow
def test_what_cannot_be_measured_is_told(harness, repository, snapshot):
    errors, commit = {}, repository.git("rev-parse", "HEAD")[:12]
    for line in (
        "-e new+other@mine",
        "-e new+mine@pr/1 --repository mine",
        "--package mine --base main --repository mine -e new,old",
        "--package mine --base main --head main --repository mine",
    ):
        process = harness.call("matrix", *line.split(), "-s", "own", "--backend", "local")
        errors[line] = f"{process.returncode} {process.stderr.strip()}"
    variables = {"HARNESS_WHEELS": "mine", "HARNESS_CACHE_DIR": str(harness.root / "no wheel yet")}
    process = harness.call("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT, **variables)
    errors["HARNESS_WHEELS"] = f"{process.returncode} {process.stderr.strip()}"
    repository.commit("broken")
    process = harness.call("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT)
    assert (process.returncode, "the last line of the build" in process.stderr) == (4, True)
    process = harness.call("matrix", "-e", "new+mine@http://127.0.0.1:1/x", "-s", "own", *SHORT)
    assert (process.returncode, "-e new+mine@FOLDER" in process.stderr) == (4, True)
    assert {line: re.sub(rf"{commit} of [\d-]+", "COMMIT", text) for line, text in errors.items()} == snapshot

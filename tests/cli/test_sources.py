"""Packages from sources in local environments: `-e new+mine@PLACE`, `matrix --package` and `bisect --repository`."""

import pytest

from harness.files import get_cache_dir
from tests.cli.conftest import CLAIMS
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


@pytest.fixture
def repository(harness, write_scenario):
    write_scenario("own", SCENARIO)
    return SourceRepository(harness.root / "mine")


def test_two_commits_of_a_package_are_compared(harness, repository):
    repository.commit("CALLS = 1\n")
    repository.commit("CALLS = 3\n")
    sides = ("--package", "mine", "--base", "HEAD~", "--head", "HEAD", "--repository", "mine")
    done = harness("matrix", *sides, "-e", "new", "-s", "own", *SHORT, "--rounds", "3", "--fail-on", "slower")
    assert done.returncode == 5, done.stderr + done.stdout
    assert done.stderr.count("Building mine from commit") == 2
    assert "on this machine, without a container" in done.stderr
    first, last = repository.git("log", "--reverse", "--format=%h").split()
    report = (harness.run / "report.md").read_text()
    assert f"new-mine-{last} is new with mine 1.0 from commit {last}" in report
    assert f"new-mine-{first} is new with" in report
    assert "don't differ in anything" not in report
    # the environments are there: nothing is built again
    again = harness("matrix", "--resume", str(harness.run), "--rounds", "4")
    assert (again.returncode, "Building" in again.stderr) == (0, False), again.stderr
    planned = harness("matrix", *sides, "-e", "new", "-s", "own", "--backend", "local", "--dry-run")
    assert (planned.returncode, "Building" in planned.stderr) == (0, False), planned.stderr


def test_a_build_is_announced_when_a_claim_is_measured_too(harness, repository, write_scenario):
    repository.commit("CALLS = 4\n")
    write_scenario("sums", CLAIMS)
    done = harness("repro", "K#7", "--no-nightly", "-e", "new+mine@mine", "--backend", "local", "--wait")
    assert (done.returncode, "Building mine from commit" in done.stderr) == (4, True), done.stderr
    assert "K#7 is claimed for a GPU" in done.stderr


def test_a_relative_folder_is_the_working_copy_although_a_branch_has_its_name(harness, repository):
    repository.commit("CALLS = 1\n")
    repository.git("branch", "mine")
    repository.commit("CALLS = 2\n")
    done = harness(
        "matrix", "--package", "mine", "--base", "HEAD~", "--repository", "mine", "-s", "own", *SHORT, "--dry-run"
    )
    assert done.returncode == 0, done.stderr
    assert repository.git("rev-parse", "--short=7", "HEAD") in done.stdout


def test_a_pull_request_is_of_the_origin_of_a_clone(harness, repository):
    commit = repository.commit("CALLS = 1\n")
    repository.git("update-ref", "refs/pull/5/head", commit)
    repository.git("clone", "--quiet", f"file://{repository.folder}", str(harness.root / "clone"))
    for place in ("clone", f"git+file://{repository.folder}"):
        done = harness("matrix", "-e", "new+mine@pr/5", "--repository", place, "-s", "own", *SHORT, "--dry-run")
        assert (done.returncode, f"new-mine-{commit[:7]}" in done.stdout) == (0, True), done.stderr


def test_a_working_copy_is_measured_with_its_changes(harness, repository):
    repository.commit("CALLS = 1\n")
    (repository.folder / "mine.py").write_text("CALLS = 2\n")
    done = harness("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "with 1 changed file (diff " in done.stderr + done.stdout
    assert "-dirty-" in done.stdout
    nothing = harness("matrix", "--package", "mine", "--base", "HEAD", "--repository", "mine", *SHORT, "-s", "own")
    assert "--base and --head are the same" not in nothing.stderr


def test_a_build_that_fails_shows_its_last_lines(harness, repository):
    repository.commit("broken")
    done = harness("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT)
    assert done.returncode == 4
    assert "The wheel of mine could not be built:" in done.stderr
    assert "the last line of the build" in done.stderr


def test_with_a_folder_of_packages_nothing_is_built(harness, repository):
    repository.commit("CALLS = 1\n")
    done = harness("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT, HARNESS_WHEELS="mine")
    assert (done.returncode, "With HARNESS_WHEELS, no wheel is built" in done.stderr) == (2, True), done.stderr
    assert "-e new+mine@FILE.whl" in done.stderr


def test_a_wheel_that_exists_needs_a_container_too_in_a_run_and_in_a_search(harness, repository):
    repository.commit("CALLS = 1\n")
    first = harness("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT, "--dry-run")
    assert first.returncode == 0, first.stderr
    name = next(word for word in first.stdout.split() if word.startswith("new-mine-"))
    nowhere = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
    done = harness("matrix", "-e", name, "-s", "own", **nowhere)
    assert (done.returncode, f"{name} is from outside the project" in done.stderr) == (4, True), done.stderr
    alike = harness("bisect", "-s", "own", "--good", name, "--bad", "new")
    assert (alike.returncode, "harness matrix -s own -e new+mine@" in alike.stderr) == (2, True), alike.stderr
    done = harness("bisect", "-s", "own", "--good", "old", "--bad", name, **nowhere)
    assert (done.returncode, f"{name} is from outside the project" in done.stderr) == (4, True), done.stderr


def test_without_containers_nothing_is_built_unless_it_is_asked(harness, repository):
    repository.commit("CALLS = 1\n")
    done = harness("matrix", "-e", "new+mine@mine", "-s", "own", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 4
    assert "runs the source's own code" in done.stderr
    assert "--backend local" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-e", "new+mine@/nowhere"), 2, "/nowhere does not exist"),
        (("-e", "new+other@mine"), 2, "contains the package mine, not other"),
        (("-e", "none+mine@mine"), 2, "Unknown environment: 'none'"),
        (("-e", "mine@mine"), 2, "isn't a release line"),
        (("-e", "new+mine@file:///nowhere@main"), 2, "The folder /nowhere doesn't exist"),
        (("-e", "new+mine@main", "--repository", "mine/nowhere"), 2, "The folder mine/nowhere doesn't exist"),
        (("-e", "new+mine@pr/1"), 2, "The repository of mine is unknown"),
        (("-e", "new+mine@pr/1", "--repository", "mine"), 2, "mine has no remote `origin`"),
        (("-e", "new+mine@http://127.0.0.1:1/x"), 4, "Check the network, or use a checkout: -e new+mine@FOLDER"),
        (("-e", "new+mine@/nowhere/x.whl"), 2, "The file /nowhere/x.whl doesn't exist"),
        (("--package", "mine", "-e", "new"), 2, "needs --base"),
        (("--package", "mine", "--base", "main", "--repository", "mine", "-e", "new,old"), 2, "selects 2"),
        (("--package", "mine", "--base", "main", "--head", "main", "--repository", "mine"), 3, "are the same"),
    ],
)
def test_what_cannot_be_measured_is_told(harness, repository, arguments, code, message):
    repository.commit("CALLS = 1\n")
    done = harness("matrix", *arguments, "-s", "own", "--backend", "local")
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


def test_a_wheel_is_a_source_too(harness, repository):
    repository.commit("CALLS = 1\n")
    first = harness("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT, "--dry-run")
    assert first.returncode == 0, first.stderr
    wheel = next((get_cache_dir() / "wheels").glob("*/mine-1.0-py3-none-any.whl"))
    done = harness("matrix", "-e", f"new+mine@{wheel}", "-s", "own", "--backend", "local", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "mine 1.0 from the file mine-1.0-py3-none-any.whl" in done.stdout

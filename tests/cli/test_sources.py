"""Packages from sources in local environments: `-e new+mine@PLACE`, `matrix --package` and `bisect --repository`."""

import re
import zipfile
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
SHORT = ("--backend", "local", "--trust", "--warmup", "1ms", "--measure", "20ms", "--clock", "cpu")
#: Variables with secrets that a user may have: tokens, agents, and addresses with passwords.
SECRETS = (
    *("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "AWS_SECRET_ACCESS_KEY"),
    *("AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "HF_TOKEN", "WANDB_API_KEY", "SSH_AUTH_SOCK"),
    *("GPG_AGENT_INFO", "PGPASSWORD", "UV_PUBLISH_TOKEN", "UV_INDEX_MINE_USERNAME", "UV_INDEX_MINE_PASSWORD"),
)
ADDRESSES = ("HTTP_PROXY", "https_proxy", "ALL_PROXY", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")
PLAN = ("-s", "own", "--backend", "local", "--trust", "--dry-run")


@pytest.fixture
def repository(harness: Harness, write_scenario: Callable[[str, str], Path]) -> SourceRepository:
    """Return the repository `mine`, with one commit."""
    write_scenario("own", SCENARIO)
    harness.environ.update(NOWHERE)
    repository = SourceRepository(harness.root / "mine")
    repository.commit("CALLS = 1\n")
    return repository


@pytest.mark.slow
def test_two_commits_of_a_package_are_compared(harness, repository):
    repository.commit("CALLS = 30\n")
    sides = ("--package", "mine", "--base", "HEAD~", "--head", "HEAD", "--repository", "mine", "-e", "new")
    # with the usual margin, other work on the machine can take a run's verdicts
    options = ("--rounds", "3", "--margin", "50%", "--fail-on", "slower")
    process = harness("matrix", *sides, "-s", "own", *SHORT, *options)
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

    assert harness.call("matrix", "-e", "new+mine@mine", "-s", "own", *SHORT, "--rounds", "1").returncode == 0

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
    options = ("--no-nightly", "-e", "new+mine@mine", "--backend", "local", "--trust", "--wait")
    process = harness.call("repro", "K#7", *options)
    assert (process.returncode, "Building mine from commit" in process.stderr) == (4, True), process.stderr


@pytest.mark.slow
def test_without_an_engine_a_source_is_built_only_if_it_is_trusted_and_never_in_a_dry_run(harness, repository):
    """The build's own code writes a file, so that a build can't be overlooked."""
    backend, trace = repository.folder / "backend.py", harness.root / "built"
    backend.write_text(f"open({str(trace)!r}, 'w').close()\n{backend.read_text()}")
    repository.commit("CALLS = 1\n")
    plan = ("-s", "own", "-e", "new+mine@mine", "--rounds", "1")
    for options, code in (
        (("--dry-run",), 0),
        (("--dry-run", "--backend", "local"), 0),
        (("--dry-run", "--trust"), 0),
        ((), 4),
        (("--backend", "local"), 4),
    ):
        process = harness.call("matrix", *plan, *options)
        assert process.returncode == code, process.stderr
        assert ("A run builds mine" if "--trust" in options else "--trust") in process.stderr
    assert not trace.exists()
    # other people's code is refused before it is built, because its launches would have the user's rights
    address = f"new+mine@git+file://{repository.folder}@{repository.git('rev-parse', 'HEAD')}"
    repository.git("reset", "--quiet", "--hard", "HEAD~")
    process = harness.call("matrix", "-s", "own", "-e", address, "--backend", "local")
    assert (process.returncode, "mine is somebody else's code: a pull request" in process.stderr) == (2, True)
    assert not trace.exists()


@pytest.mark.slow
def test_neither_builds_nor_launches_get_the_users_secrets(harness, repository):
    secrets = {name: f"secret-{number}" for number, name in enumerate(SECRETS)}
    secrets |= {name: f"http://user:secret-{name}@127.0.0.1:1" for name in ADDRESSES}
    backend = repository.folder / "backend.py"
    text = backend.read_text().replace("import zipfile", "import os, zipfile")
    backend.write_text(
        text.replace('open("mine.py").read(),', 'open("mine.py").read() + "ENV = %r" % dict(os.environ),')
    )
    repository.commit("CALLS = 1\n")
    lines = ["import mine, os", "for item in [*mine.ENV.items(), *os.environ.items()]:", "    print(*item)"]
    (harness.root / "show.py").write_text("\n".join(lines))
    options = ("--backend", "local", "--trust", "--rounds", "1")
    process = harness("run", "show.py", "-e", "new+mine@mine", *options, **secrets)
    assert process.returncode == 0, process.stderr
    assert harness("bundle", str(harness.run), **secrets).returncode in (0, 3)
    modules = []
    for wheel in (get_cache_dir() / "wheels").glob("*/mine-1.0-py3-none-any.whl"):
        with zipfile.ZipFile(wheel) as archive:
            modules.append(archive.read("mine.py"))
    assert any(b"ENV = {" in module for module in modules)
    contents = [*modules, process.stdout.encode(), process.stderr.encode()]
    contents += [path.read_bytes() for path in harness.run.rglob("*") if path.is_file()]
    assert any(b"CUDA_VISIBLE_DEVICES" in content for content in contents)  # a launch printed its variables
    assert [content for content in contents if b"secret-" in content] == []


@pytest.mark.slow
def test_what_cannot_be_measured_is_told(harness, repository, snapshot):
    errors, commit = {}, repository.git("rev-parse", "HEAD")[:12]
    for line in (
        "-e new+other@mine",
        "-e new+mine@pr/1 --repository mine",
        "--package mine --base main --repository mine -e new,old",
        "--package mine --base main --head main --repository mine",
    ):
        process = harness.call("matrix", *line.split(), "-s", "own", *SHORT)
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

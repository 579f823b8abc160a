import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.docker.bake import LENGTH, LINES, Builder, BuildLog, check_driver, make_environ
from harness.files import get_cache_dir
from harness.model.errors import CannotRunHereError
from tests.errors import catch_text


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """Return a function that puts a fake `docker` command first on the PATH."""

    def make(script):
        path = tmp_path / "docker"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def check():
    Builder(Path()).check(uses_images=False)


def test_what_is_missing_for_builds_is_told(docker, tmp_path, monkeypatch, snapshot):
    messages = {}
    monkeypatch.setenv("PATH", str(tmp_path))
    messages["no docker command"] = catch_text(CannotRunHereError, check)
    docker("exit 1")
    messages["no buildx"] = catch_text(CannotRunHereError, check)
    for output in ("Driver: docker-container", "", "Driver: remote"):
        docker(f"echo '{output}'")
        messages[output] = catch_text(CannotRunHereError, check_driver)
    assert messages == snapshot
    docker("echo 'Driver:        docker'")
    check_driver()


def test_buildx_uses_harness_cache_if_its_folder_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert "BUILDX_CONFIG" not in make_environ()
    (tmp_path / "buildx").write_text("no folder")
    assert make_environ()["BUILDX_CONFIG"] == str(get_cache_dir() / "buildx")
    monkeypatch.setenv("BUILDX_CONFIG", "/mine")
    assert make_environ()["BUILDX_CONFIG"] == "/mine"


def test_the_target_and_what_is_set_are_passed(docker, tmp_path):
    docker('for argument; do echo "$argument"; done >"$0.arguments"')
    settings = {"labels.harness.lock": "abc", "contexts.locks": "/a b"}
    assert Builder(tmp_path).build("cpu-tf1-14", settings, print) == ""
    passed = (tmp_path / "docker.arguments").read_text().splitlines()
    assert passed[:4] == ["buildx", "bake", "--file", "docker-bake.hcl"]
    assert "--progress=plain" in passed
    assert passed[-5:] == [
        "--set",
        "cpu-tf1-14.labels.harness.lock=abc",
        "--set",
        "cpu-tf1-14.contexts.locks=/a b",
        "cpu-tf1-14",
    ]


def test_a_failed_build_ends_with_the_builders_words_or_its_exit_code(docker, tmp_path):
    docker("seq 100; echo; printf '\\377ERROR: no such host' >&2; exit 1")
    lines = Builder(tmp_path).build("a", {}, print).splitlines()
    assert lines[-1] == "\N{REPLACEMENT CHARACTER}ERROR: no such host"
    assert len(lines) == 15
    docker("exit 7")
    assert Builder(tmp_path).build("a", {}, print) == "the build ended with exit code 7"


def test_stopping_ends_every_build_and_lets_none_begin(docker, tmp_path):
    # it runs until it is ended: nothing ever comes through the pipe that it reads
    docker(f"mkfifo {tmp_path}/$8; echo '#1 [a 1/1] RUN x'; echo '#1 0.1 begun'; exec cat {tmp_path}/$8")
    builder, begun, results = Builder(tmp_path), threading.Semaphore(0), []

    def build(name):
        results.append(builder.build(name, {}, lambda words: begun.release()))

    threads = [threading.Thread(target=build, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for _ in threads:
        begun.acquire()
    builder.stop()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert all(results)
    with pytest.raises(CannotRunHereError, match="three was stopped"):
        builder.build("three", {}, print)


#: What buildx 0.13 printed, with the registry's name and address replaced.
RECORDED = {path.stem: path.read_text() for path in (Path(__file__).parent / "buildlogs").iterdir()}


def feed(text):
    """Return the log of a build with these lines, and its progress messages."""
    log = BuildLog()
    return log, [words for line in text.splitlines() if (words := log.feed(line))]


def test_commands_are_told_when_they_start():
    _, words = feed(RECORDED["built"])
    assert words[0].startswith("environment 2/4: useradd")
    assert words[-1].startswith("environment 4/4: sh /tmp/install.sh /usr/local/bin/python3")
    step = "#7 [uv 3/3] RUN --mount=type=bind,from=a,target=/b   pip install"
    _, words = feed(f"{step}\n#7 0.5 one\n\n{step}\n#14 exporting to image\n")
    assert words == ["uv 3/3: pip install"]


def test_a_failed_step_is_named_with_its_last_lines_and_the_verdict():
    # also among others
    first = "#7 [a 1/2] RUN one\n\n#8 [b 1/2] RUN two\n#8 0.1 hello\n#8 ...\n\n"
    log, progress = feed(first + "#7 [a 1/2] RUN one\n#7 DONE 0.1s\n#8 ERROR: x\n")
    assert progress == ["a 1/2: one", "b 1/2: two"]
    assert log.describe_failure() == "b 1/2: two:\nhello"
    first, *lines, verdict = feed(RECORDED["failed"])[0].describe_failure().splitlines()
    assert first.startswith("environment 4/4: sh /tmp/install.sh")
    assert lines[:2] == [
        "error: Failed to download `setuptools==82.0.1`",
        "  cause: Hash mismatch for `setuptools==82.0.1`",
    ]
    assert verdict.startswith("ERROR: failed to solve: process ")
    assert verdict.endswith("exit code: 1")
    failure = feed(RECORDED["no-base"])[0].describe_failure()
    assert "python:3.0-slim-bookworm: failed to resolve source metadata" in failure
    # without a step, it shows the last lines
    lines = feed("".join(f"line {number}\n" for number in range(100)) + "ERROR: x\n")[0].describe_failure().splitlines()
    assert (lines[-1], len(lines)) == ("ERROR: x", LINES)


def test_what_it_shows_is_bounded_and_has_no_control_characters():
    log, _ = feed(
        "#1 [a 1/1] RUN x\n" + "".join(f"#1 0.{n} \x1b[31m{'x' * 5000}\n" for n in range(100)) + "#1 ERROR: y\n"
    )
    failure = log.describe_failure()
    assert "\x1b" not in failure
    assert r"\x1b[31mxxx" in failure
    assert len(failure) < (LINES + 1) * (LENGTH + 100)


pieces = st.sampled_from(
    ["#1 ", "#22 ", "#0 ", "[a 1/2] RUN ", "0.5 ", "DONE 1s", "CACHED", "ERROR: ", "...", "exporting to image"]
)


@given(st.lists(st.lists(pieces | st.text(max_size=20), max_size=4).map("".join), max_size=15))
def test_any_lines_are_read(lines):
    log = BuildLog()
    progress = [words for line in lines if (words := log.feed(line))]
    for words in [*progress, *log.describe_failure().splitlines()]:
        assert words.replace("\t", "").isprintable()
    assert len(log.describe_failure().splitlines()) <= LINES + 2


def test_a_failed_build_of_podman_ends_with_its_step():
    log = BuildLog()
    lines = [
        "[1/2] STEP 1/1: FROM scratch",
        "[2/2] STEP 2/3: RUN --mount=type=bind,from=a sh x",
        "no",
        "Error: building",
    ]
    assert list(filter(None, map(log.feed, lines))) == ["2/2 2/3: sh x"]
    assert log.describe_failure() == "2/2 2/3: sh x:\nno\nError: building"

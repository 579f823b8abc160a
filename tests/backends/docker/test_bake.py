import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.docker.bake import LENGTH, LINES, Builder, BuildLog, check, check_driver
from harness.model.errors import CannotRunHereError


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """Puts a `docker` command of the test's own first on the PATH."""

    def make(script):
        path = tmp_path / "docker"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def test_no_docker_command_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunHereError, match=r"the docker command isn't installed.\nInstall .*--backend local"):
        check()


def test_no_buildx_is_a_sentence(docker):
    docker("exit 1")
    with pytest.raises(CannotRunHereError, match="buildx isn't installed"):
        check()


@pytest.mark.parametrize("printed", ["Driver: docker-container", "", "Driver: remote"])
def test_a_builder_without_the_images_of_the_engine_is_a_sentence(docker, printed):
    docker(f"echo '{printed}'")
    with pytest.raises(CannotRunHereError, match=r"with the driver .*\n.*docker buildx use default"):
        check_driver()
    docker("echo 'Driver:        docker'")
    check_driver()


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


def test_what_takes_time_is_told(docker, tmp_path):
    docker("echo '#5 [a 1/2] RUN one'; echo '#5 0.1 hello' >&2; printf '#5 DONE'")
    told = []
    assert Builder(tmp_path).build("a", {}, told.append) == ""
    assert told == ["a 1/2: one"]


def test_a_failed_build_ends_with_the_builders_words(docker, tmp_path):
    docker("seq 100; echo; printf '\\377ERROR: no such host' >&2; exit 1")
    words = Builder(tmp_path).build("a", {}, print).splitlines()
    assert words[-1] == "\N{REPLACEMENT CHARACTER}ERROR: no such host"
    assert len(words) == 15


def test_a_builder_that_says_nothing_leaves_its_exit_code(docker, tmp_path):
    docker("exit 7")
    assert Builder(tmp_path).build("a", {}, print) == "the build ended with exit code 7"


def test_stopping_ends_every_build_and_lets_none_begin(docker, tmp_path):
    # it runs until it is ended: nothing ever comes through the pipe that it reads
    docker(f"mkfifo {tmp_path}/$8; echo '#1 [a 1/1] RUN x'; echo '#1 0.1 begun'; exec cat {tmp_path}/$8")
    builder, begun, ended = Builder(tmp_path), threading.Semaphore(0), []

    def build(name):
        ended.append(builder.build(name, {}, lambda words: begun.release()))

    threads = [threading.Thread(target=build, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for _ in threads:
        begun.acquire()
    builder.stop()
    for thread in threads:
        thread.join()
    assert len(ended) == 2
    assert all(ended)
    with pytest.raises(CannotRunHereError, match="The build of three was stopped"):
        builder.build("three", {}, print)


#: What buildx 0.13 printed, with the registry's name and address replaced.
RECORDED = {path.stem: path.read_text() for path in (Path(__file__).parent / "buildlogs").iterdir()}


def fed(text):
    log = BuildLog()
    return log, [words for line in text.splitlines() if (words := log.feed(line))]


@pytest.mark.parametrize("name", ["built", "cached"])
def test_what_takes_no_time_is_not_told(name):
    log, told = fed(RECORDED[name])
    assert told == []
    assert log.handle_pause() == ""


def test_a_step_that_says_nothing_is_told_when_the_builder_is_idle():
    begun = RECORDED["built"].split("#13 DONE")[0]
    log, told = fed(begun)
    assert told == []
    assert log.handle_pause().startswith("environment 4/4: sh /tmp/install.sh /usr/local/bin/python3")
    assert log.handle_pause() == ""


def test_a_step_that_says_something_is_told_once():
    log, told = fed("#7 [uv 3/3] RUN --mount=type=bind,from=a,target=/b   pip install\n#7 0.5 one\n#7 0.6 two\n")
    assert told == ["uv 3/3: pip install"]
    assert log.handle_pause() == ""


def test_exporting_is_told():
    log, _ = fed("#14 exporting to image\n#14 exporting layers\n")
    assert log.handle_pause() == "exporting to image"


def test_steps_overlap():
    first = "#7 [a 1/2] RUN one\n\n#8 [b 1/2] RUN two\n#8 0.1 hello\n#8 ...\n\n"
    log, told = fed(first + "#7 [a 1/2] RUN one\n#7 DONE 0.1s\n#8 ERROR: x\n")
    assert told == ["b 1/2: two"]
    assert log.describe_failure() == "b 1/2: two:\nhello"


def test_a_failed_step_is_named_with_its_last_lines_and_the_verdict():
    log, _ = fed(RECORDED["failed"])
    first, *lines, verdict = log.describe_failure().splitlines()
    assert first.startswith("environment 4/4: sh /tmp/install.sh")
    assert lines[:2] == [
        "error: Failed to download `setuptools==82.0.1`",
        "  cause: Hash mismatch for `setuptools==82.0.1`",
    ]
    assert verdict.startswith("ERROR: failed to solve: process ")
    assert verdict.endswith("exit code: 1")


def test_a_base_that_cannot_be_had_is_named():
    log, _ = fed(RECORDED["no-base"])
    assert "python:3.0-slim-bookworm: failed to resolve source metadata" in log.describe_failure()


def test_a_failure_without_a_step_shows_the_last_lines():
    log, _ = fed("".join(f"line {number}\n" for number in range(100)) + "ERROR: no builder\n")
    lines = log.describe_failure().splitlines()
    assert lines[-1] == "ERROR: no builder"
    assert len(lines) == LINES


def test_what_it_shows_is_bounded_and_has_no_control_characters():
    log, _ = fed(
        "#1 [a 1/1] RUN x\n" + "".join(f"#1 0.{n} \x1b[31m{'x' * 5000}\n" for n in range(100)) + "#1 ERROR: y\n"
    )
    shown = log.describe_failure()
    assert "\x1b" not in shown
    assert r"\x1b[31mxxx" in shown
    assert len(shown) < (LINES + 1) * (LENGTH + 100)


pieces = st.sampled_from(
    ["#1 ", "#22 ", "#0 ", "[a 1/2] RUN ", "0.5 ", "DONE 1s", "CACHED", "ERROR: ", "...", "exporting to image"]
)


@given(st.lists(st.lists(pieces | st.text(max_size=20), max_size=4).map("".join), max_size=60))
def test_any_lines_are_read(lines):
    log = BuildLog()
    told = [words for line in lines for words in (log.feed(line), log.handle_pause()) if words]
    for words in [*told, *log.describe_failure().splitlines()]:
        assert words.replace("\t", "").isprintable()
    assert len(log.describe_failure().splitlines()) <= LINES + 2

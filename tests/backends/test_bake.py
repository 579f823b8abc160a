import threading

import pytest

from harness.backends.bake import Builder, Target, check
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
    with pytest.raises(CannotRunHereError, match=r"there is no docker command.\nInstall .*--backend local"):
        check()


def test_no_buildx_is_a_sentence(docker):
    docker("exit 1")
    with pytest.raises(CannotRunHereError, match="has no buildx"):
        check()


def test_the_target_and_what_is_set_are_passed(docker, tmp_path):
    docker('for argument; do echo "$argument"; done >"$0.arguments"')
    target = Target("cpu-tf1-14", {"labels.harness.lock": "abc", "contexts.locks": "/a b"})
    assert Builder(tmp_path).build(target, print) == ""
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
    assert Builder(tmp_path).build(Target("a", {}), told.append) == ""
    assert told == ["a 1/2: one"]


def test_a_failed_build_ends_with_the_builders_words(docker, tmp_path):
    docker("seq 100; echo; printf '\\377ERROR: no such host' >&2; exit 1")
    words = Builder(tmp_path).build(Target("a", {}), print).splitlines()
    assert words[-1] == "\N{REPLACEMENT CHARACTER}ERROR: no such host"
    assert len(words) == 15


def test_a_builder_that_says_nothing_leaves_its_exit_code(docker, tmp_path):
    docker("exit 7")
    assert Builder(tmp_path).build(Target("a", {}), print) == "the builder ended with exit code 7"


def test_stopping_ends_every_build_and_lets_none_begin(docker, tmp_path):
    # it runs until it is ended: nothing ever comes through the pipe that it reads
    docker(f"mkfifo {tmp_path}/$8; echo '#1 [a 1/1] RUN x'; echo '#1 0.1 begun'; exec cat {tmp_path}/$8")
    builder, begun, ended = Builder(tmp_path), threading.Semaphore(0), []

    def build(name):
        ended.append(builder.build(Target(name, {}), lambda words: begun.release()))

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
    with pytest.raises(CannotRunHereError, match="three was not built: it was stopped"):
        builder.build(Target("three", {}), print)

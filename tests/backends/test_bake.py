import pytest

from harness.backends import bake as module
from harness.backends.bake import Target, bake, check
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


def test_labels_and_targets_are_passed_and_lines_come_back(docker, tmp_path):
    docker('for argument; do echo "$argument"; done')
    lines = []
    assert bake(tmp_path, [Target("cpu-tf1-14", {"harness.lock": "abc"})], lines.append) == ""
    assert lines[:4] == ["buildx", "bake", "--file", "docker-bake.hcl"]
    assert lines[-3:] == ["--set", "cpu-tf1-14.labels.harness.lock=abc", "cpu-tf1-14"]


def test_a_failed_build_ends_with_the_builders_words(docker, tmp_path):
    docker("seq 100; echo; echo 'ERROR: no such host' >&2; exit 1")
    words = bake(tmp_path, [], lambda line: None).splitlines()
    assert words[-1] == "ERROR: no such host"
    assert len(words) == 15


def test_on_a_terminal_the_builder_draws_and_its_words_are_asked_for_again(docker, tmp_path, monkeypatch, capfd):
    docker('case "$*" in *progress=auto*) echo drawn ;; *) echo words ;; esac; exit 1')
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(module.sys.stderr, "fileno", lambda: 2, raising=False)
    lines = []
    assert bake(tmp_path, [], lines.append) == "words"
    assert lines == []
    assert capfd.readouterr() == ("", "drawn\n")

import json
import socket
from pathlib import Path

import pytest

from harness.backends.docker import engine
from harness.backends.docker.engine import Engine, connect, find_address, raise_as_sentences
from harness.model.errors import CannotRunHereError
from tests.errors import catch_text


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without Docker's settings."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_no_engine_says_what_was_tried_and_the_way_on(home, monkeypatch, snapshot):
    messages = {}
    variable = f"unix://{home}/none.sock"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refusing = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        for address in (variable, refusing, "carrier pigeon"):
            monkeypatch.setenv("DOCKER_HOST", address)
            messages[address.partition(":")[0]] = catch_text(CannotRunHereError, connect).replace(address, "ADDRESS")
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "lost")
    messages["context"] = catch_text(CannotRunHereError, connect)
    monkeypatch.delenv("DOCKER_CONTEXT")
    monkeypatch.setattr(engine, "_find_address", lambda: (variable, "the context 'default'"))
    for command in ("nerdctl", "podman"):
        (home / command).touch(0o755)
        messages[command] = catch_text(CannotRunHereError, connect).replace(variable, "ADDRESS")
    assert messages == snapshot


def test_the_current_context_is_taken(home):
    config = home / ".docker"
    config.mkdir()
    (config / "config.json").write_text(json.dumps({"currentContext": "far"}))
    from docker.context.config import get_meta_dir

    meta = Path(get_meta_dir("far"))
    meta.mkdir(parents=True)
    endpoint = {"Host": f"unix://{home}/far.sock", "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Name": "far", "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    assert f"'far' (unix://{home}/far.sock)" in catch_text(CannotRunHereError, connect)


def test_where_the_engine_is_can_be_told_without_asking_it(home, monkeypatch):
    assert find_address() == "unix:///var/run/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2376")
    assert find_address() == "tcp://192.0.2.1:2376"
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "lost")
    assert find_address() == ""
    # an engine behind a socket is this machine
    for address, here in (("unix:///run/x.sock", True), ("http+unix:///run/x.sock", True), ("tcp://10.0.0.1", False)):
        assert Engine(None, address).is_here is here


def test_what_the_engine_would_not_do_has_its_words():
    from docker.errors import APIError

    with (
        pytest.raises(CannotRunHereError, match="refused to run a container: Requested CPUs are not available"),
        raise_as_sentences("run a container"),
    ):
        raise APIError("500", explanation="Requested CPUs are not available")

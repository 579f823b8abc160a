import json
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.backends.docker import engine as module
from harness.backends.docker.engine import Engine, address, connect, list_images, sentences
from harness.model.errors import CannotRunHereError


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without Docker's settings."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_no_engine_says_what_was_tried_and_the_way_on(home, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{home}/none.sock")
    with pytest.raises(CannotRunHereError) as error:
        connect()
    assert error.value.message == (
        f"No Docker Engine answers at DOCKER_HOST (unix://{home}/none.sock): No such file or directory."
    )
    assert "--backend local" in error.value.advice


def test_a_machine_that_refuses_is_named(home, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(CannotRunHereError, match="Connection refused"):
            connect()


def test_nonsense_as_an_address_is_a_sentence(home, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "carrier pigeon")
    with pytest.raises(CannotRunHereError, match=r"DOCKER_HOST \(carrier pigeon\)"):
        connect()


def test_the_current_context_is_taken(home):
    config = home / ".docker"
    config.mkdir()
    (config / "config.json").write_text(json.dumps({"currentContext": "far"}))
    from docker.context.config import get_meta_dir

    meta = Path(get_meta_dir("far"))
    meta.mkdir(parents=True)
    endpoint = {"Host": f"unix://{home}/far.sock", "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Name": "far", "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    with pytest.raises(CannotRunHereError, match=rf"at the context 'far' \(unix://{home}/far.sock\): No such file"):
        connect()


def test_a_context_that_is_not_there_is_named(home, monkeypatch):
    monkeypatch.setenv("DOCKER_CONTEXT", "lost")
    with pytest.raises(CannotRunHereError, match="the context 'lost'"):
        connect()


def test_where_the_engine_is_can_be_told_without_asking_it(home, monkeypatch):
    assert address() == "unix:///var/run/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2376")
    assert address() == "tcp://192.0.2.1:2376"
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "lost")
    assert address() == ""


@pytest.mark.parametrize(
    ("address", "here"),
    [("unix:///var/run/docker.sock", True), ("http+unix:///run/x.sock", True), ("tcp://10.0.0.1:2376", False)],
)
def test_an_engine_behind_a_socket_is_this_machine(address, here):
    assert Engine(None, address).is_here is here


def test_what_the_engine_would_not_do_has_its_words():
    from docker.errors import APIError

    with (
        pytest.raises(CannotRunHereError, match="would not run a container: Requested CPUs are not available"),
        sentences("run a container"),
    ):
        raise APIError("500", explanation="Requested CPUs are not available")


class FakeEngine(socketserver.ThreadingUnixStreamServer):
    """Answers one question, by HTTP over a socket; `asked` are the filters."""

    daemon_threads = True
    status, body = 200, b'[{"Id": "sha256:0"}]'

    def __init__(self, path):
        self.asked = []
        super().__init__(path, Handler)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        address = urlsplit(self.path)
        self.server.asked.append((address.path, json.loads(parse_qs(address.query)["filters"][0])))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_):
        pass


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """An engine at DOCKER_HOST, and no SDK to fall back on."""
    path = str(tmp_path / "engine.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.setattr(module, "connect", refuse)
    with FakeEngine(path) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def refuse():
    raise CannotRunHereError("the SDK was asked")


def test_a_socket_is_asked_without_the_sdk(engine):
    assert list_images({"reference": ["a:b"]}) == [{"Id": "sha256:0"}]
    assert engine.asked == [("/images/json", {"reference": ["a:b"]})]


@pytest.mark.parametrize(("status", "body"), [(500, b"[]"), (200, b"no JSON"), (200, b"")])
def test_where_the_socket_gives_no_answer_the_sdk_is_asked(engine, status, body):
    engine.status, engine.body = status, body
    with pytest.raises(CannotRunHereError, match="the SDK was asked"):
        list_images({})


@pytest.mark.parametrize(
    "variables",
    [
        {"DOCKER_HOST": "tcp://127.0.0.1:1"},
        {"DOCKER_HOST": "unix:///nowhere"},
        {"DOCKER_HOST": "", "DOCKER_CONTEXT": "far"},
    ],
)
def test_what_is_no_socket_that_answers_is_left_to_the_sdk(engine, monkeypatch, tmp_path, variables):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CannotRunHereError, match="the SDK was asked"):
        list_images({})
    assert engine.asked == []


@pytest.mark.parametrize("settings", ['{"currentContext": "far"}', "broken"])
def test_a_context_in_the_settings_is_left_to_the_sdk(engine, monkeypatch, tmp_path, settings):
    (tmp_path / "config.json").write_text(settings)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "")
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    with pytest.raises(CannotRunHereError, match="the SDK was asked"):
        list_images({})


def test_the_default_context_is_the_usual_socket(engine, monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text('{"currentContext": "default"}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(module, "_USUAL", engine.server_address)
    monkeypatch.setenv("DOCKER_HOST", "")
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    assert list_images({}) == [{"Id": "sha256:0"}]

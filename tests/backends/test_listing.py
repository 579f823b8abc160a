import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.backends import listing
from harness.backends.listing import list_images
from harness.model.errors import CannotRunHereError


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
    monkeypatch.setattr(listing, "connect", refuse)
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
    monkeypatch.setattr(listing, "_USUAL", engine.server_address)
    monkeypatch.setenv("DOCKER_HOST", "")
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    assert list_images({}) == [{"Id": "sha256:0"}]

"""An engine behind a network address: here, a relay to this machine's own."""

import secrets
import socket
import threading
from contextlib import suppress

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.engine import connect
from harness.model.launch import Status
from tests.backends.workers import check_turns, job

pytestmark = pytest.mark.docker


def relay(source, target):
    """Pass on what comes from one socket to the other, and its end."""
    with suppress(OSError):
        while chunk := source.recv(2**16):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def remote(engine, monkeypatch):
    """The engine, connected to by a TCP address."""
    if not engine.is_here:  # remote already
        yield engine
        return
    path = engine.address.partition("://")[2]
    ends, threads = [], []

    def serve():
        with suppress(OSError):
            while True:
                near = server.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                ends.extend([near, far])
                far.connect(path)
                for pair in ((near, far), (far, near)):
                    threads.append(threading.Thread(target=relay, args=pair, daemon=True))
                    threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=serve, daemon=True)
        accepting.start()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.getsockname()[1]}")
        yield connect()
        server.shutdown(socket.SHUT_RDWR)
        accepting.join()
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    for end in ends:
        end.close()


def test_launches_need_nothing_but_the_address(built, requirement, remote):
    backend = DockerBackend(built[0].root, f"test-remote-{secrets.token_hex(4)}")
    backend.engine = remote
    assert backend.facts().is_remote
    source = "open('kit/artifacts/a', 'w').write('1'); say('artifact', name='a'); say('end', status='ok')"
    outcome = backend.launch(requirement, job(source))
    assert (outcome.status, outcome.artifacts) == (Status.OK, {"a": b"1"})
    assert backend.launch(requirement, job("while True: pass", 1.0)).status is Status.TIMEOUT
    check_turns(backend, requirement)
    assert backend.clean(backend._run) == 0

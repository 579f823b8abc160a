"""An engine behind a network address: here, a proxy before this machine's own."""

import secrets

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.engine import connect
from harness.model.launch import Status
from tests.backends.workers import check_turns, job
from tests.docker.proxy import Proxy

pytestmark = pytest.mark.docker


@pytest.fixture
def remote(engine, monkeypatch):
    """The engine, connected to by a TCP address."""
    if not engine.is_here:  # remote already
        yield engine
        return
    proxy = Proxy(engine)
    monkeypatch.setenv("DOCKER_HOST", proxy.address)
    yield connect()
    proxy.close()


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

"""An engine that falls silent, goes away, or takes long: one launch never takes the run with it."""

import contextlib
import os
import subprocess
import sys
import threading
import time

import pytest

from harness.backends.docker import container
from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.engine import connect
from harness.backends.docker.specification import RUN_LABEL
from harness.model.errors import CannotRunHereError
from harness.model.launch import Status
from tests.backends.workers import job
from tests.conftest import copy_part

pytestmark = [
    pytest.mark.docker,
    # what was asked of an engine that never answered is let go of with its thread
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

SCENARIO = """
# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "A sum"
# [tool.harness.axes]
# length = ["short", "long"]
# ///


def scenario(bench, length):
    numbers = range(1000 if length == "short" else 10000)
    bench.measure(lambda: sum(numbers))
"""

STAYS = "say('hello'); signal.pause()"


@pytest.fixture
def behind(built, docker, proxy, monkeypatch):
    """A backend whose engine is behind the proxy; `docker`, whose run it shares, looks past it."""
    monkeypatch.setenv("DOCKER_HOST", proxy.address)
    monkeypatch.setenv("HARNESS_ENGINE_SECONDS", "2")
    monkeypatch.setattr(container, "REMOVAL_SECONDS", 0.5)
    backend = DockerBackend(built[0].root, docker._run)
    backend.engine = connect()
    yield backend
    proxy.thaw()


def list_containers(engine, run):
    return engine.api.containers(all=True, quiet=True, filters={"label": f"{RUN_LABEL}={run}"})


def eventually(holds):
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def frozen_when(proxy, engine, run):
    """Freeze the engine once a container of the run is there that runs."""

    def freeze():
        running = {"label": f"{RUN_LABEL}={run}", "status": "running"}
        eventually(lambda: engine.api.containers(quiet=True, filters=running))
        proxy.freeze()

    thread = threading.Thread(target=freeze)
    thread.start()
    return thread


def test_the_first_answers_of_an_engine_may_be_later_than_the_limit(proxy, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", proxy.address)
    monkeypatch.setenv("HARNESS_ENGINE_SECONDS", "1")
    proxy.freeze()
    threading.Timer(2, proxy.thaw).start()
    slow = connect()
    assert slow.api.timeout >= 20  # this machine is slow, so later answers may be slow, too
    proxy.freeze()
    monkeypatch.setattr(slow.api, "timeout", 1)
    threading.Timer(2, proxy.thaw).start()
    assert slow.version
    assert slow.api.timeout == 1


def test_a_launch_of_an_engine_that_falls_silent_ends_at_its_time_limit(behind, proxy, engine, docker, requirement):
    freezing = frozen_when(proxy, engine, docker._run)
    outcome = behind.launch(requirement, job(STAYS, 3.0))
    freezing.join()
    assert (outcome.status, outcome.error) == (Status.TIMEOUT, "it was still running after 3 s")
    # what it left is removed once the engine answers
    assert list_containers(engine, docker._run)
    proxy.thaw()
    eventually(lambda: not list_containers(engine, docker._run))


def test_a_removal_that_is_not_answered_takes_nothing_from_the_launch(behind, proxy, engine, docker, requirement):
    proxy.swallow(b"DELETE ")
    assert behind.launch(requirement, job("say('end', status='ok')")).status is Status.OK
    assert len(list_containers(engine, docker._run)) == 1
    assert docker.clean(docker._run) == 1


def test_artifacts_that_do_not_come_take_nothing_from_the_launch(behind, proxy, requirement):
    proxy.swallow(b"/archive?path=%2Fharness%2Fkit%2Fartifacts")
    source = "open('kit/artifacts/a', 'w').write('1'); say('artifact', name='a'); say('end', status='ok')"
    outcome = behind.launch(requirement, job(source))
    assert (outcome.status, outcome.artifacts) == (Status.OK, {})
    assert "stopped answering" in outcome.not_kept[0]


def test_an_engine_that_goes_away_is_a_sentence(behind, proxy, engine, docker, requirement):
    def drop():
        running = {"label": f"{RUN_LABEL}={docker._run}", "status": "running"}
        eventually(lambda: engine.api.containers(quiet=True, filters=running))
        proxy.drop()

    dropping = threading.Thread(target=drop)
    dropping.start()
    with pytest.raises(CannotRunHereError, match="stopped answering"):
        behind.launch(requirement, job(STAYS, 20.0))
    dropping.join()
    assert docker.clean(docker._run) == 1


@pytest.mark.campaign
def test_an_engine_that_is_silent_from_the_start_is_a_sentence(behind, proxy, requirement):
    behind._get_image_id(requirement)
    proxy.freeze()
    with pytest.raises(CannotRunHereError, match="stopped answering"):
        behind.launch(requirement, job(STAYS))
    proxy.thaw()


def gone(proxy, engine, image):
    proxy.drop()


def silent(proxy, engine, image):
    proxy.freeze()


def restarted(proxy, engine, image):
    """An engine that ends takes its containers with it, and knows the same images when it is back."""
    from docker.errors import APIError

    # between two launches none would notice
    eventually(lambda: engine.api.containers(quiet=True, filters={"ancestor": image, "status": "running"}))
    proxy.drop()
    for entry in engine.api.containers(quiet=True, filters={"ancestor": image}):
        with contextlib.suppress(APIError):  # it has ended by itself
            engine.api.kill(entry)
    proxy.listen()


def without_image(proxy, engine, image):
    from docker.errors import APIError, ImageNotFound

    def removed():
        with contextlib.suppress(APIError):  # a container has it: between two launches none does
            engine.api.remove_image(image, force=True)
        try:
            engine.api.inspect_image(image)
        except ImageNotFound:
            return True
        return False

    eventually(removed)


#: What happens in one test, and in a campaign.
FAULTS = [(gone, "stopped answering")]
FAULTS += [
    pytest.param(fault, words, marks=pytest.mark.campaign)
    for fault, words in (
        (silent, "stopped answering"),
        (restarted, "stopped answering"),
        (without_image, "No such image"),
    )
]


@pytest.mark.parametrize(("fault", "words"), FAULTS)
def test_a_run_that_loses_its_engine_is_reported_and_goes_on_later(  # noqa: PLR0917 - fixtures
    built, proxy, engine, tmp_path, fault, words
):
    scenario = tmp_path / "step.py"
    scenario.write_text(SCENARIO)
    environ = {**os.environ, "DOCKER_HOST": proxy.address, "HARNESS_PROJECT": str(built[0].root)}
    environ["HARNESS_ENGINE_SECONDS"] = "5"
    copy_part("scenarios/kit", built[0].root)
    short = ("--rounds", "4", "--warmup", "1ms", "--measure", "5ms", "--interleave", "launches", "--timeout", "20s")
    name = built[1].environment.name
    arguments = ("matrix", "-s", str(scenario), "-e", name, *short)
    command = [sys.executable, "-m", "harness", *arguments]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: any(tmp_path.glob("results/*/launches.jsonl")))
    (launches,) = tmp_path.glob("results/*/launches.jsonl")
    eventually(lambda: launches.read_bytes().count(b"\n") >= 2 or process.poll() is not None)
    fault(proxy, engine, f"harness/{name}:cpu")
    _, messages = process.communicate(timeout=120)
    assert process.returncode == 4, messages
    folder = launches.parent
    assert words in messages
    assert f"harness matrix --resume {folder.relative_to(tmp_path)}" in messages
    assert (folder / "report.md").exists()
    before = launches.read_bytes()
    assert before.count(b"\n") >= 2
    proxy.thaw()
    environ["DOCKER_HOST"] = engine.address
    resumed = subprocess.run(
        [sys.executable, "-m", "harness", "matrix", "--resume", str(folder)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert launches.read_bytes().startswith(before)
    assert not list_containers(engine, folder.name)


@pytest.mark.campaign
def test_a_removal_that_is_in_progress_is_waited_for_and_no_mistake(behind, engine, docker, requirement, monkeypatch):
    conflicts = iter([True, True])
    real = engine.api.remove_container

    def remove(name, **options):
        if next(conflicts, False):
            from docker.errors import APIError
            from requests import Response

            response = Response()
            response.status_code = 409
            raise APIError("removal of container is already in progress", response)
        real(name, **options)

    with docker.hold(requirement, job(STAYS)) as launch:
        assert list_containers(engine, docker._run)
        monkeypatch.setattr(engine.api, "remove_container", remove)
        assert docker.clean(docker._run) == 1
        monkeypatch.undo()
        del launch

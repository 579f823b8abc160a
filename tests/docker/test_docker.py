"""Launches in real containers."""

import dataclasses
import os
import resource
import subprocess
import sys

import pytest

from harness.backends.docker import container
from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.container import create_container
from harness.backends.docker.priority import find_priority
from harness.backends.docker.specification import CELL_LABEL, RUN_LABEL, Specification
from harness.machine.cpus import run_on_cpus
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits, Status
from tests.backends.conftest import requirement_of
from tests.backends.workers import (
    BEHAVIOURS,
    IN_TURNS,
    TAKES_TURNS,
    check_misbehaviour,
    check_start,
    check_turns,
    in_turns,
    interrupt_between_turns,
    interrupt_the_start,
    job,
    kill_between_turns,
)
from tests.lacking import lacking

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_whatever_a_worker_does_its_launch_gets_a_status(docker, requirement, name):
    behaviour = BEHAVIOURS[name]
    outcome = docker.launch(requirement, job(behaviour.source, behaviour.seconds))
    assert outcome.status is behaviour.status
    assert behaviour.error in outcome.error
    assert outcome.image.startswith("sha256:")
    assert len(outcome.stderr) < 70_000


def observed(docker, requirement, source, **limits):
    outcome = docker.launch(requirement, job(f"{source}\nsay('end', status='ok')", **limits))
    assert outcome.status is Status.OK, (outcome.error, outcome.stderr)
    return outcome.observations


def test_stderr_says_what_raised(docker, requirement):
    assert "ValueError: boom" in docker.launch(requirement, job("raise ValueError('boom')")).stderr


def test_a_scenario_has_no_rights(docker, requirement):
    source = (
        "lines = open('/proc/self/status').read().splitlines()\n"
        "status = dict(line.split(':\\t', 1) for line in lines if ':\\t' in line)\n"
        "say('observation', name='user', value=[os.getuid(), os.getgid(), os.getcwd(), os.environ['HOME']])\n"
        "say('observation', name='capabilities', value=int(status['CapEff'], 16) | int(status['CapBnd'], 16))\n"
        "say('observation', name='new privileges', value=status['NoNewPrivs'])\n"
        "say('observation', name='interfaces', value=[name for _, name in socket.if_nameindex() if name != 'lo' "
        "and open('/sys/class/net/%s/operstate' % name).read().strip() == 'up'])\n"
        "say('observation', name='mounts', value=[line.split()[4] for line in open('/proc/self/mountinfo')])\n"
        "say('observation', name='input', value=sys.stdin.read())\n"
    )
    seen = observed(docker, requirement, source)
    assert seen["user"] == [1000, 1000, "/harness", "/home/harness"]
    assert seen["capabilities"] == 0
    assert seen["new privileges"] == "1"
    assert seen["interfaces"] == []
    assert not [mount for mount in seen["mounts"] if mount.startswith("/harness")]
    assert seen["input"] == ""


def test_there_is_no_network(docker, requirement):
    source = (
        "try:\n  socket.create_connection(('192.0.2.1', 80), timeout=5); reached = True\n"
        "except OSError as error:\n  reached = error.errno\n"
        "say('observation', name='reached', value=reached)"
    )
    assert observed(docker, requirement, source)["reached"] == 101  # ENETUNREACH


def test_a_launch_is_pinned(docker, requirement):
    source = "say('observation', name='cpus', value=sorted(os.sched_getaffinity(0)))"
    assert observed(docker, requirement, source)["cpus"] == [0]


#: Says which share of a core it gets, by its CPU time, in two seconds.
SHARE = """
begun, used = time.monotonic(), time.process_time()
while time.monotonic() < begun + 2: pass
say("observation", name="share", value=(time.process_time() - used) / (time.monotonic() - begun))
say("end", status="ok")
"""


@pytest.fixture
def beside_a_loop():
    """An endless loop on the measured core."""
    with run_on_cpus([0]):
        loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    loop.kill()
    loop.wait()


@pytest.fixture
def first(docker, requirement):
    """The backend, whose launches have priority on the measured core."""
    docker.prepare([requirement], lambda _: None)
    if not docker.can_move() or find_priority(docker.engine, [0]) is None:
        lacking("the engine gives no priority on a CPU of this machine")
    assert docker.give_priority([0]) == []
    return docker


@pytest.mark.usefixtures("beside_a_loop")
def test_a_launch_gets_its_core_before_other_work(first, requirement):
    assert observed(first, requirement, SHARE)["share"] > 0.8


@pytest.mark.usefixtures("beside_a_loop")
def test_a_launch_that_is_moved_to_the_measured_core_gets_it_before_other_work(first, engine, requirement):
    made = in_turns(job(f"say('turn', samples=[]); word()\n{SHARE}"))
    with first.hold(requirement, dataclasses.replace(made, limits=Limits(cpus=(1,), seconds=60.0))) as held:
        assert held.resume()
        (name,) = engine.api.containers(quiet=True, filters={"label": f"{RUN_LABEL}={first._run}"})
        assert engine.api.inspect_container(name)["HostConfig"]["CpuShares"] == 0  # the usual weight
        held.move([0])
        assert not held.resume("measure")
        assert held.outcome().observations["share"] > 0.8


def test_only_what_is_needed_is_in_the_environment(docker, requirement, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    source = "say('observation', name='v', value=dict(os.environ))"
    seen = observed(docker, requirement, source, TF_XLA_FLAGS="--axis")["v"]
    assert seen["TF_CPP_MIN_LOG_LEVEL"] == "2"
    assert seen["TF_XLA_FLAGS"] == "--axis"
    assert "SECRET" not in seen


def test_too_much_memory_is_oom(docker, requirement):
    outcome = docker.launch(requirement, job("x = b'x' * 2**28", memory_bytes=2**26))
    assert outcome.status is Status.OOM
    assert outcome.error == "it was killed: out of memory"


def test_what_fills_its_disk_is_ended(docker, requirement, monkeypatch):
    monkeypatch.setattr(container, "DISK_LIMIT", 10_000_000)
    monkeypatch.setattr(container, "DISK_SECONDS", 0.2)
    outcome = docker.launch(requirement, job("open('/tmp/x', 'wb').write(b'x' * 50_000_000); signal.pause()"))
    assert outcome.status is Status.FAILED
    assert outcome.error.startswith("it was killed: it wrote 0.")


def test_a_fork_bomb_stays_in_its_container(docker, requirement):
    source = (
        "count = 0\n"
        "try:\n"
        "  while count < 5000:\n"
        "    if not os.fork(): signal.pause()\n"
        "    count += 1\n"
        "except OSError: pass\n"
        "say('observation', name='count', value=count)"
    )
    most = 512 + 16 * (os.cpu_count() or 1)
    assert most - 10 < observed(docker, requirement, source)["count"] < most


def test_artifacts_come_back_and_links_do_not(docker, requirement):
    source = (
        "os.makedirs('kit/artifacts/p'); open('kit/artifacts/p/t.json', 'w').write('{}')\n"
        "os.symlink('/etc/passwd', 'kit/artifacts/link'); os.symlink('/etc', 'kit/artifacts/folder')\n"
        "os.mkfifo('kit/artifacts/pipe')\n"
        "say('artifact', name='p/t.json', bytes=2); say('end', status='ok')"
    )
    outcome = docker.launch(requirement, job(source))
    assert outcome.artifacts == {"p/t.json": b"{}"}
    assert "link: not a regular file" in outcome.not_kept
    assert "folder: not a regular file" in outcome.not_kept
    assert "pipe: not a regular file" in outcome.not_kept


def test_artifacts_over_the_limit_are_not_read(docker, requirement):
    source = (
        "open('kit/artifacts/huge', 'w').truncate(2**40)\n"
        "say('artifact', name='huge', bytes=1); say('end', status='ok')"
    )
    outcome = docker.launch(requirement, job(source))
    assert outcome.artifacts == {}
    assert "64 MiB" in outcome.not_kept[0]


def test_a_folder_of_artifacts_that_is_gone_is_none(docker, requirement):
    outcome = docker.launch(
        requirement, job("os.rmdir('kit/artifacts'); say('artifact', name='x'); say('end', status='ok')")
    )
    assert (outcome.error, outcome.status, outcome.artifacts) == ("", Status.OK, {})


def test_printing_takes_no_memory_of_ours(docker, requirement):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = docker.launch(
        requirement, job("[os.write(2, b'x' * 2**20) for _ in range(100)]; say('end', status='ok')")
    )
    assert outcome.status is Status.OK
    assert outcome.stderr.startswith(f"[{100 * 2**20 - 64 * 1024} bytes before this were not saved]")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KiB


def test_phases_before_the_worker_come_from_its_clock(docker, requirement):
    source = "now = time.time(); say('hello', time=now, started=now - 0.01); say('end', status='ok')"
    phases = docker.launch(requirement, job(source)).phases
    assert list(phases) == ["container start", "interpreter start"]
    assert 0 < phases["container start"] < 30


class Interrupted:
    """An engine's API that is interrupted in one call, once the engine has done it."""

    def __init__(self, api, call):
        self._api, self._call = api, call

    def __getattr__(self, name):
        real = getattr(self._api, name)
        if name != self._call:
            return real

        def interrupted(*arguments, **options):
            done = real(*arguments, **options)
            if name == "attach_socket":
                done._response.close()
            raise KeyboardInterrupt

        return interrupted


@pytest.mark.parametrize("call", ["create_container", "put_archive", "attach_socket", "start", "wait"])
def test_an_interrupted_launch_leaves_no_container(docker, engine, requirement, call):
    docker.engine = dataclasses.replace(engine, api=Interrupted(engine.api, call))
    source = "say('end', status='ok')" if call == "wait" else "signal.pause()"
    with pytest.raises(KeyboardInterrupt):
        docker.launch(requirement, job(source))
    docker.engine = engine
    assert docker.clean(docker._run) == 0


def test_launches_that_are_held_take_turns(docker, requirement):
    check_turns(docker, requirement)


@pytest.mark.parametrize("name", IN_TURNS)
def test_a_launch_that_misbehaves_in_its_turns_loses_itself_alone(docker, requirement, name):
    check_misbehaviour(docker, requirement, IN_TURNS[name])


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_launches_start_on_cpus_of_their_own_and_are_moved_to_one(docker, requirement):
    assert docker.can_move()
    check_start(docker, requirement, sorted(os.sched_getaffinity(0))[:2])


def test_an_interruption_while_several_start_leaves_no_container(docker, requirement):
    with pytest.raises(KeyboardInterrupt):
        interrupt_the_start(docker, requirement)
    assert docker.clean(docker._run) == 0


def test_a_cpu_that_the_engine_lacks_is_a_sentence_when_a_launch_is_moved(docker, requirement):
    with docker.hold(requirement, in_turns(job(TAKES_TURNS))) as held:
        assert held.resume()
        with pytest.raises(CannotRunHereError, match="refused to move a container to other CPUs"):
            held.move([100_000])


def test_too_much_memory_in_a_turn_is_oom(docker, requirement):
    source = "say('turn', samples=[]); word(); x = b'x' * 2**28"
    with docker.hold(requirement, in_turns(job(source, memory_bytes=2**26))) as held:
        assert held.resume()
        assert not held.resume("turn")
        assert held.outcome().status is Status.OOM


def test_one_that_is_interrupted_between_turns_leaves_no_container(docker, requirement):
    with pytest.raises(KeyboardInterrupt), docker.hold(requirement, in_turns(job(TAKES_TURNS))) as held:
        interrupt_between_turns(held)
    assert docker.clean(docker._run) == 0


def test_the_worker_of_a_killed_harness_ends(docker, engine, requirement):
    kill_between_turns(docker, requirement, TAKES_TURNS)
    left = engine.api.containers(all=True, filters={"label": f"{RUN_LABEL}={docker._run}"})
    assert [engine.api.wait(entry["Id"], timeout=30)["StatusCode"] for entry in left] == [130]
    assert docker.clean(docker._run) == 1


def test_cleaning_finds_what_a_killed_harness_left(docker, engine, requirement):
    image = docker._get_image_id(requirement)
    runs = [f"{docker._run}-{number}" for number in (1, 2)]
    specifications = [Specification(image, ["true"], {}, {RUN_LABEL: run, CELL_LABEL: "x"}, Limits()) for run in runs]
    with create_container(engine, specifications[0]), create_container(engine, specifications[1]):
        assert docker.clean(runs[0]) == 1
        assert docker.clean(runs[0]) == 0
        assert docker.clean(runs[1]) == 1


def test_a_cpu_that_the_engine_lacks_is_a_sentence(docker, requirement):
    wrong = dataclasses.replace(job("pass"), limits=Limits(cpus=(1000,)))
    with pytest.raises(CannotRunHereError, match=r"Docker Engine refused to .*(CPU|cpu)"):
        docker.launch(requirement, wrong)


def test_an_image_that_was_not_made_is_unavailable(docker, tmp_path):
    with pytest.raises(CannotRunHereError, match="The image harness/never:cpu is missing"):
        docker.launch(requirement_of(tmp_path, "never"), job("pass"))


def test_facts_say_what_is_measured_on(docker):
    facts = docker.facts()
    assert facts.engine.startswith("Docker Engine ")
    assert facts.cpus >= 1
    assert facts.memory_bytes > 0


def test_an_engine_that_is_elsewhere_gives_no_phase_from_its_clock(docker, engine, requirement):
    docker.engine = dataclasses.replace(engine, address="tcp://192.0.2.1:2376")
    source = "now = time.time(); say('hello', time=now, started=now - 0.5); say('end', status='ok')"
    assert list(docker.launch(requirement, job(source)).phases) == ["interpreter start"]


def test_nothing_is_asked_of_an_engine_before_it_is_needed(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    assert DockerBackend(tmp_path, "run").name == "docker"

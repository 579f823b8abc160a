"""Launches in real containers."""

import dataclasses
import os
import resource
import subprocess
import sys

import pytest

from harness.backends.docker import container
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
    SOME_BEHAVIOURS,
    TAKES_TURNS,
    check_behaviours,
    check_misbehaviour,
    check_start,
    check_turns,
    in_turns,
    interrupt_between_turns,
    interrupt_the_start,
    job,
    kill_between_turns,
)
from tests.lacking import for_a_campaign, lacking

pytestmark = pytest.mark.docker

ENDS = "say('end', status='ok')"


@pytest.mark.parametrize("names", [[*SOME_BEHAVIOURS], *for_a_campaign([*BEHAVIOURS])], ids=["some", "all"])
def test_whatever_a_worker_does_its_launch_gets_a_status(docker, requirement, names):
    outcomes = check_behaviours(docker, requirement, names)
    assert all(outcome.image.startswith("sha256:") for outcome in outcomes)


def observe(docker, requirement, source, **limits):
    outcome = docker.launch(requirement, job(f"{source}\n{ENDS}", **limits))
    assert outcome.status is Status.OK, (outcome.error, outcome.stderr)
    return outcome.observations


def test_a_scenario_has_no_rights_no_network_and_only_the_environment_that_it_needs(docker, requirement, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    source = """
def observe(name, value):
    say('observation', name=name, value=value)
lines = open('/proc/self/status').read().splitlines()
status = dict(line.split(':\\t', 1) for line in lines if ':\\t' in line)
observe('user', [os.getuid(), os.getgid(), os.getcwd(), os.environ['HOME']])
observe('capabilities', int(status['CapEff'], 16) | int(status['CapBnd'], 16))
observe('new privileges', status['NoNewPrivs'])
observe('interfaces', [name for _, name in socket.if_nameindex() if name != 'lo'
    and open('/sys/class/net/%s/operstate' % name).read().strip() == 'up'])
observe('mounts', [line.split()[4] for line in open('/proc/self/mountinfo')])
observe('input', sys.stdin.read())
observe('cpus', sorted(os.sched_getaffinity(0)))
observe('environ', dict(os.environ))
try:
    socket.create_connection(('192.0.2.1', 80), timeout=5)
except OSError as error:
    observe('connection', error.errno)
"""
    observations = observe(docker, requirement, source, TF_XLA_FLAGS="--axis")
    environ, mounts = observations.pop("environ"), observations.pop("mounts")
    assert observations == {
        "user": [1000, 1000, "/harness", "/home/harness"],
        "capabilities": 0,
        "new privileges": "1",
        "interfaces": [],
        "input": "",
        "cpus": [0],
        "connection": 101,  # ENETUNREACH
    }
    assert not [mount for mount in mounts if mount.startswith("/harness")]
    assert (environ["TF_CPP_MIN_LOG_LEVEL"], environ["TF_XLA_FLAGS"]) == ("2", "--axis")
    assert "SECRET" not in environ


#: Says which share of a core it gets, by its CPU time, in a second.
SHARE = """
begun, used = time.monotonic(), time.process_time()
while time.monotonic() < begun + 1: pass
say("observation", name="share", value=(time.process_time() - used) / (time.monotonic() - begun))
"""


@pytest.fixture
def beside_a_loop():
    """An endless loop on the measured core."""
    with run_on_cpus([0]):
        loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    loop.kill()
    loop.wait()


@pytest.mark.usefixtures("beside_a_loop")
def test_a_launch_that_is_on_the_measured_core_or_moved_there_gets_it_before_other_work(docker, engine, requirement):
    docker.prepare([requirement], lambda _: None)
    if not docker.can_move() or find_priority(engine, [0]) is None:
        lacking("the engine gives no priority on a CPU of this machine")
    assert docker.give_priority([0]) == []
    assert observe(docker, requirement, SHARE)["share"] > 0.8
    waits = in_turns(job(f"say('turn', samples=[]); word()\n{SHARE}\n{ENDS}"))
    elsewhere = dataclasses.replace(waits, limits=Limits(cpus=(1,), seconds=60.0))
    with docker.hold(requirement, elsewhere) as launch:
        assert launch.resume()
        (name,) = engine.api.containers(quiet=True, filters={"label": f"{RUN_LABEL}={docker._run}"})
        assert engine.api.inspect_container(name)["HostConfig"]["CpuShares"] == 0  # the usual weight
        launch.move([0])
        assert not launch.resume("measure")
        assert launch.outcome().observations["share"] > 0.8


def test_too_much_memory_is_oom_also_in_a_turn(docker, requirement):
    outcome = docker.launch(requirement, job("x = b'x' * 2**28", memory_bytes=2**26))
    assert (outcome.status, outcome.error) == (Status.OOM, "it was killed: out of memory")
    source = "say('turn', samples=[]); word(); x = b'x' * 2**28"
    with docker.hold(requirement, in_turns(job(source, memory_bytes=2**26))) as launch:
        assert launch.resume()
        assert not launch.resume("turn")
        assert launch.outcome().status is Status.OOM


def test_what_fills_its_disk_is_ended(docker, requirement, monkeypatch):
    monkeypatch.setattr(container, "DISK_LIMIT", 10_000_000)
    monkeypatch.setattr(container, "DISK_SECONDS", 0.2)
    outcome = docker.launch(requirement, job("open('/tmp/x', 'wb').write(b'x' * 50_000_000); signal.pause()"))
    assert outcome.status is Status.FAILED
    assert "it wrote 0." in outcome.error


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
    assert most - 10 < observe(docker, requirement, source)["count"] < most


def test_artifacts_come_back_without_what_is_too_large_and_may_be_missing(docker, requirement):
    source = (
        "os.makedirs('kit/artifacts/p'); open('kit/artifacts/p/t.json', 'w').write('{}')\n"
        f"open('kit/artifacts/z', 'w').truncate(2**40); say('artifact', name='p/t.json', bytes=2); {ENDS}"
    )
    outcome = docker.launch(requirement, job(source))
    # an engine may stop reading at what is over the limit
    assert outcome.artifacts in ({"p/t.json": b"{}"}, {})
    assert "64 MiB" in outcome.not_kept[-1]
    outcome = docker.launch(requirement, job(f"os.rmdir('kit/artifacts'); say('artifact', name='x'); {ENDS}"))
    assert (outcome.error, outcome.status, outcome.artifacts) == ("", Status.OK, {})


def test_printing_takes_no_memory_of_ours(docker, requirement):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = docker.launch(requirement, job(f"[os.write(2, b'x' * 2**20) for _ in range(100)]; {ENDS}"))
    assert outcome.status is Status.OK
    assert outcome.stderr.startswith(f"[{100 * 2**20 - 64 * 1024} bytes ")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KiB


def test_phases_before_the_worker_come_from_its_clock_and_an_engines_elsewhere_is_not_compared(
    docker, engine, requirement
):
    launch = job(f"now = time.time(); say('hello', time=now, started=now - 0.01); {ENDS}")
    phases = docker.launch(requirement, launch).phases
    assert list(phases) == ["container start", "interpreter start"]
    assert 0 < phases["container start"] < 30
    elsewhere = dataclasses.replace(engine, address="tcp://192.0.2.1:2376")
    docker._launches = dataclasses.replace(docker._launches, engine=elsewhere)
    assert list(docker.launch(requirement, launch).phases) == ["interpreter start"]


class Interrupted:
    """An engine's API that is interrupted in one call, once the engine has done it."""

    def __init__(self, api, call):
        self._api, self._call = api, call

    def __getattr__(self, name):
        real = getattr(self._api, name)
        if name != self._call:
            return real

        def interrupted(*arguments, **options):
            answer = real(*arguments, **options)
            if name == "attach_socket":
                answer._response.close()
            raise KeyboardInterrupt

        return interrupted


def test_an_interrupted_launch_leaves_no_container(docker, engine, requirement):
    for call in ("create_container", "put_archive", "attach_socket", "start", "wait"):
        docker.engine = dataclasses.replace(engine, api=Interrupted(engine.api, call))
        with pytest.raises(KeyboardInterrupt):
            docker.launch(requirement, job(ENDS if call == "wait" else "signal.pause()"))
        docker.engine = engine
        assert docker.clean(docker._run) == 0, call


@pytest.mark.parametrize(
    "names", [["dies in its turn", "answers twice"], *for_a_campaign([*IN_TURNS])], ids=["some", "all"]
)
def test_launches_take_turns_and_one_that_misbehaves_loses_itself_alone(docker, requirement, names):
    check_turns(docker, requirement)
    for name in names:
        check_misbehaviour(docker, requirement, IN_TURNS[name])


def test_launches_start_on_cpus_of_their_own_and_are_moved_to_one(docker, requirement):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        lacking("this machine has one CPU")
    assert docker.can_move()
    check_start(docker, requirement, cpus)


def test_launches_that_are_interrupted_in_their_starts_or_between_turns_leave_no_container(docker, requirement):
    with pytest.raises(KeyboardInterrupt):
        interrupt_the_start(docker, requirement)
    assert docker.clean(docker._run) == 0
    with pytest.raises(KeyboardInterrupt), docker.hold(requirement, in_turns(job(TAKES_TURNS))) as launch:
        interrupt_between_turns(launch)
    assert docker.clean(docker._run) == 0


def test_a_launch_is_told_what_the_engine_lacks(docker, requirement, tmp_path):
    missing = dataclasses.replace(job("pass"), limits=Limits(cpus=(1000,)))
    with pytest.raises(CannotRunHereError, match=r"(CPU|cpu)"):
        docker.launch(requirement, missing)
    with docker.hold(requirement, in_turns(job(TAKES_TURNS))) as launch:
        assert launch.resume()
        with pytest.raises(CannotRunHereError, match="CPUs"):
            launch.move([100_000])
    with pytest.raises(CannotRunHereError, match="harness/never:cpu"):
        docker.launch(requirement_of(tmp_path, "never"), job("pass"))


def test_the_worker_of_a_killed_harness_ends_and_cleaning_removes_one_run(docker, engine, requirement):
    kill_between_turns(docker, requirement, TAKES_TURNS)
    containers = engine.api.containers(all=True, filters={"label": f"{RUN_LABEL}={docker._run}"})
    assert [engine.api.wait(entry["Id"], timeout=30)["StatusCode"] for entry in containers] == [130]
    assert docker.clean(docker._run) == 1
    image = docker._get_image_id(requirement)
    runs = [f"{docker._run}-{number}" for number in (1, 2)]
    specifications = [Specification(image, ["true"], {}, {RUN_LABEL: run, CELL_LABEL: "x"}, Limits()) for run in runs]
    with create_container(engine, specifications[0]), create_container(engine, specifications[1]):
        assert [docker.clean(runs[0]), docker.clean(runs[0]), docker.clean(runs[1])] == [1, 0, 1]

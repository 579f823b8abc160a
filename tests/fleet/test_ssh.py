"""Shards on hosts, against real ssh servers on the loopback: each has a home and an id of its own."""

import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.fleet.parcel import _list_packages
from harness.fleet.places import FOLDER
from harness.fleet.ssh import SshPlace, parse_hosts
from harness.machine.uv import find_uv
from tests.cli.conftest import Harness
from tests.commands import read_until
from tests.errors import read_refusal
from tests.fleet.conftest import find_commands

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")

needs_sshd = pytest.mark.skipif(
    not SSHD and "HARNESS_REQUIRE_ALL" not in os.environ, reason="needs an ssh server: .ci/ssh installs one"
)


def test_hosts_are_read_as_ssh_calls_them(snapshot):
    assert parse_hosts("ssh://one,me@two.example:2222") == ["one", "me@two.example:2222"]
    assert parse_hosts("ssh://one,ssh://two/") == ["one", "two"]
    texts = ("ssh://", "ssh://one,one", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://one,")
    assert {text: read_refusal(lambda text=text: parse_hosts(text)) for text in texts} == snapshot  # type: ignore[misc]


@pytest.fixture
def archive() -> bytes:
    """Return a parcel that needs no packages."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("packages.txt"))
    return buffer.getvalue()


def test_a_measurement_gets_the_variables_of_package_sources_and_no_command_line_shows_them(
    tmp_path, monkeypatch, archive
):
    scripts = {
        "ssh": """
            unset REGISTRY UV_INDEX_URL
            echo "$@" >> ../lines
            for last; do :; done
            exec sh -c "$last"
        """,
        "uv": """
            mkdir -p env/bin
            ln -sf ../../../../../measure env/bin/python
        """,
        "home/measure": """
            for last; do :; done
            mkdir -p "$last/run"
            echo "$REGISTRY $UV_INDEX_URL" > "$last/run/seen"
            ls > "$last/run/files"
        """,
    }
    home = tmp_path / "home"
    home.mkdir()
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("REGISTRY", "registry.example/it's")
    monkeypatch.setenv("UV_INDEX_URL", "https://me:secret@index.example")
    (tmp_path / "shards").mkdir()
    monkeypatch.chdir(home)
    code, output = SshPlace("one", archive, print).measure("x-1", ["matrix"], tmp_path / "shards" / "1.1", None)
    assert code == 0, output
    run = tmp_path / "shards" / "1.1" / "run"
    assert (run / "seen").read_text() == "registry.example/it's https://me:secret@index.example\n"
    assert (run / "files").read_text().split() == ["env", "packages.txt", "runs"]
    assert "secret" not in (tmp_path / "lines").read_text()
    assert not list((home / FOLDER).iterdir())


Serve = Callable[[str], int]


@pytest.fixture
def serve(tmp_path: Path, harness: Harness) -> Iterator[Serve]:
    """Start an ssh server for a machine of this id, and have ssh find it; gives its port."""
    assert SSHD, "no ssh server: .ci/ssh installs one"
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    options = ["-F", "/dev/null", "-i", str(keys / "user"), "-o", f"UserKnownHostsFile={tmp_path / 'known'}"]
    options += ["-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"]
    harness.environ["HARNESS_SSH_COMMAND"] = shlex.join(["ssh", *options])
    servers: list[subprocess.Popen[bytes]] = []

    def start(machine: str) -> int:
        home = tmp_path / machine
        home.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        inherited = {name: value for name, value in os.environ.items() if re.match("UV_|SSL_|PIP_|PATH$", name)}
        inherited["UV_CACHE_DIR"] = subprocess.check_output([find_uv(), "cache", "dir"], text=True).strip()
        machines = {"HOME": str(home), "HARNESS_MACHINE_ID": machine, "HARNESS_MACHINE_LOCK": str(tmp_path / "lock")}
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in {**inherited, **machines}.items())
        (tmp_path / f"{machine}.conf").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {keys / 'host'}\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {keys / 'user.pub'}\nPasswordAuthentication no\nPermitRootLogin yes\n"
            f'ForceCommand cd {home} && export {words} && exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
        )
        servers.append(subprocess.Popen([SSHD, "-D", "-e", "-f", tmp_path / f"{machine}.conf"]))
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return port
            time.sleep(0.02)
        raise AssertionError("the ssh server does not answer")

    yield start
    for server in servers:
        server.terminate()
        server.wait()


def is_whole(merged: Path) -> bool:
    """Whether each launch of the plan is there once, but for rounds that others on this machine disturbed."""
    launches = [json.loads(line) for line in (merged / "launches.jsonl").read_text().splitlines()]
    plan = json.loads((merged / "run.json").read_text())["plan"]
    assert len(plan["groups"]) == 6
    first = [launch for launch in launches if launch["attempt"] == 0 and launch["role"] != "control"]
    counts = Counter((launch["group"], launch["round"]) for launch in first)
    return set(counts.values()) == {1} and {group["name"] for group in plan["groups"]} == {name for name, _ in counts}


@pytest.fixture
def own_scenario(harness: Harness) -> None:
    (harness.root / "mine.py").write_text((harness.root / "scenarios" / "ways.py").read_text())


SHORT = ("--backend", "local", "--trust", "--warmup", "1ms", "--measure", "5ms", "--seed", "1")
PLAN = ("-s", "mine.py", "-a", "way=fine,exits,raises", "-a", "speed=fast,slow", "-e", "old", "--rounds", "1")


@pytest.mark.slow
@needs_sshd
@pytest.mark.usefixtures("own_scenario")
def test_a_plan_is_measured_on_hosts_and_merged_and_one_that_is_not_there_is_named(harness, serve, tmp_path):
    one, two = serve("m-one"), serve("m-two")
    on = f"ssh://127.0.0.1:{one},localhost:{two},127.0.0.1:1"
    checked = harness("fleet", "check", "-s", "mine.py", "-a", "way=fine", "-e", "old", *SHORT[:3], "--on", on)
    assert checked.returncode == 4, checked.stderr
    ready = [f"127.0.0.1:{one}: ready after N s", f"localhost:{two}: ready after N s"]
    assert re.sub(r"\d+ s$", "N s", checked.stdout, flags=re.M).splitlines()[:2] == ready
    assert "127.0.0.1:1: " in checked.stdout.splitlines()[2]
    process = harness.matrix(*PLAN, "--on", on)
    assert f"127.0.0.1:{one}: Shard " in process.stderr, process.stderr
    assert "on 127.0.0.1:1: " in process.stderr
    assert "Connection refused" in process.stderr
    assert "exit code" not in process.stderr, process.stderr
    # what the host that is not there would have measured was measured by the others
    assert "is missing" not in process.stderr, process.stderr
    assert process.returncode == 1
    assert is_whole(harness.run)
    merged = json.loads((harness.run / "run.json").read_text())
    runs = [json.loads(path.read_text()) for path in harness.run.glob("shards/*/*/run.json")]
    assert {run["machine"]["id"] for run in runs} == {"m-one", "m-two"}
    assert sorted(merged["merged"]) == sorted(run["id"] for run in runs)
    assert {group["machine"] for group in merged["plan"]["groups"]} == {"m-one", "m-two"}
    for machine in ("m-one", "m-two"):
        assert not list((tmp_path / machine / FOLDER).iterdir())


@pytest.mark.slow
@needs_sshd
@pytest.mark.usefixtures("own_scenario")
def test_a_host_continues_a_shard_whose_command_dies_or_is_interrupted(harness, serve, tmp_path):
    on = f"ssh://127.0.0.1:{serve('m-one')}"
    process = harness.start("matrix", *PLAN, "--on", on, *SHORT)
    read_until(process.stderr, "round 1")
    (remote,) = find_commands(tmp_path / "m-one")
    remote.kill()
    read_until(process.stderr, "The shard is measured again.")
    read_until(process.stderr, "round 1")
    (remote,) = find_commands(tmp_path / "m-one")
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert not remote.is_running()
    earlier = {launch["started"] for launch in harness.launches}
    resumed = harness("matrix", "--resume", str(harness.run))
    assert resumed.returncode == 1, resumed.stderr  # some cells fail, as they are to
    assert "missing" not in resumed.stderr
    assert is_whole(harness.run)
    assert earlier <= {launch["started"] for launch in harness.launches}
    longer = harness("matrix", "--resume", str(harness.run), "--rounds", "9")
    assert longer.returncode == 2
    assert "--rounds and --budget" in longer.stderr


def test_a_host_gets_what_this_harness_needs_at_the_versions_here():
    packages = _list_packages()
    assert f"pydantic=={version('pydantic')}" in packages
    # and what that needs, but no tool of the tests
    assert f"pydantic-core=={version('pydantic-core')}" in packages
    assert not [package for package in packages if package.startswith("pytest==")]

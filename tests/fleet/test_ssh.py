"""Shards on hosts, against real ssh servers on the loopback: each has a home and an id of its own."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.fleet import ssh
from harness.fleet.ssh import Host, hosts
from harness.model.errors import UsageError
from harness.plan.shards import placed
from harness.session.request import read_on
from tests.cli.conftest import Harness

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")

needs_sshd = pytest.mark.skipif(
    not SSHD and "HARNESS_REQUIRE_ALL" not in os.environ, reason="needs an ssh server: .ci/ssh installs one"
)


def test_hosts_are_read_as_ssh_calls_them() -> None:
    assert hosts("ssh://one,me@two.example:2222") == [Host("one"), Host("me@two.example", "2222")]
    assert hosts("ssh://one,ssh://two/") == [Host("one"), Host("two")]
    for text in ("ssh://", "ssh://one,one", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://one,"):
        with pytest.raises(UsageError, match="names no hosts"):
            hosts(text)
    assert read_on("ssh://one,me@two:22", "--on") == "ssh://one,me@two:22"


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
        inherited["UV_CACHE_DIR"] = uv_cache()
        given = {"HOME": str(home), "HARNESS_MACHINE_ID": machine, "HARNESS_MACHINE_LOCK": str(tmp_path / "lock")}
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in {**inherited, **given}.items())
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


def uv_cache() -> str:
    """This user's cache of packages, so that no host fetches any."""
    from harness.machine import uv

    told = subprocess.run([uv.find_uv(), "cache", "dir"], capture_output=True, text=True, check=True)
    return told.stdout.strip()


@needs_sshd
def test_a_plan_is_measured_on_hosts_and_merged_and_one_that_is_not_there_is_missed(
    harness: Harness, serve: Serve, tmp_path: Path
) -> None:
    one, two = serve("m-one"), serve("m-two")
    (harness.root / "mine.py").write_text((harness.root / "scenarios" / "ways.py").read_text())
    axes = ("-a", "way=fine,exits,raises", "-a", "speed=fast,slow")
    groups = [f"mine cpu way={way} speed={speed}" for way in ("fine", "exits", "raises") for speed in ("fast", "slow")]
    places = placed(groups, 3)
    assert set(places.values()) == {1, 2, 3}
    on = f"ssh://127.0.0.1:{one},localhost:{two},127.0.0.1:1"
    done = harness.matrix("-s", "mine.py", *axes, "-e", "old", "--rounds", "1", "--on", on)
    assert "127.0.0.1: Shard 1/3 of the plan" in done.stderr, done.stderr
    assert "Connection refused" in done.stderr
    assert "ended with exit code" not in done.stderr, done.stderr
    assert "Shard 3/3 is missing, with " in done.stderr
    assert done.returncode == 1
    runs = [json.loads(path.read_text()) for path in (harness.root / "results").glob("*/run.json")]
    (merged,) = [each for each in runs if each["merged"]]
    assert {each["machine"]["id"] for each in runs if each["machine"]} == {"m-one", "m-two"}
    assert sorted(merged["merged"]) == sorted(each["id"] for each in runs if not each["merged"])
    assert Counter(group["machine"] for group in merged["plan"]["groups"]) == {
        machine: sum(place == number for place in places.values())
        for number, machine in enumerate(("m-one", "m-two"), 1)
    }
    assert merged["absent"] == {"3/3": sorted(name for name, place in places.items() if place == 3)}
    # nothing but what is kept for the next time is left
    for machine in ("m-one", "m-two"):
        assert not list((tmp_path / machine).glob(".cache/harness-fleet/*/runs/*"))


@needs_sshd
def test_where_no_host_answers_nothing_is_left(harness: Harness, serve: Serve) -> None:
    done = harness.matrix("-s", "ways", "--on", "ssh://127.0.0.1:1")
    assert done.returncode == 4
    assert "No host has a run." in done.stderr
    assert not (harness.root / "results").exists()


def test_a_host_gets_what_this_harness_needs_at_the_versions_here() -> None:
    packages = ssh._packages()
    assert f"pydantic=={version('pydantic')}" in packages
    # and what that needs, but no tool of the tests
    assert f"pydantic-core=={version('pydantic-core')}" in packages
    assert not [each for each in packages if each.startswith("pytest==")]

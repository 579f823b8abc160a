"""`--on ssh://…`: copies the required files to a host, measures a shard there, and fetches its run.

A host only needs an SSH server, sh, tar and a home folder. uv installs Python and the packages of harness for the user.
The connection uses the system's `ssh`, with its configuration and agent.
"""

import os
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.files import CHUNK
from harness.fleet import parcel
from harness.fleet.parcel import Parcel
from harness.fleet.shell import ShellRunner, make_script
from harness.machine import uv
from harness.model.errors import CannotRunHereError, UsageError

#: The folder on a host, below the user's home.
_HOST_FOLDER = ".cache/harness-fleet"

_HOST = re.compile(r"(?P<host>(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*)(?::(?P<port>\d{1,5}))?/?")

#: Options of ssh that prevent prompts, so that a host that needs a password or doesn't answer causes an error.
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15")

#: Environment variables about package sources, which are passed on to a host.
_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS", "HARNESS_WHEELS", "REGISTRY")


@dataclass(frozen=True, slots=True)
class Host:
    """An SSH host. `name` is a host name, with an optional user, or a name in the SSH configuration."""

    name: str
    port: str = ""

    @property
    def shown(self) -> str:
        """The name as the user passed it."""
        return f"{self.name}:{self.port}" if self.port else self.name

    def make_command(self, script: str) -> list[str]:
        """Return the command that runs a script in the host's sh. `HARNESS_SSH_COMMAND` replaces ssh."""
        connect = shlex.split(os.environ.get("HARNESS_SSH_COMMAND", "ssh"))
        port = ["-p", self.port] if self.port else []
        return [*connect, *_OPTIONS, *port, self.name, f"sh -c {shlex.quote(script)}"]


def _make_exports() -> str:
    """Return shell commands that set the variables about package sources as they are set here.

    They go through stdin, because all users can read command lines, and an index's address may contain a password.
    """
    return "\n".join(f"export {name}={shlex.quote(os.environ[name])}" for name in _VARIABLES if name in os.environ)


def parse_hosts(on: str) -> list[Host]:
    """Parse `ssh://a,user@b:2222`. Raises UsageError."""
    texts = [text.removeprefix("ssh://") for text in on.removeprefix("ssh://").split(",")]
    matches = [(text, _HOST.fullmatch(text)) for text in texts]
    invalid = [text for text, match in matches if not match]
    if invalid or len(set(texts)) < len(texts):
        problem = f"{invalid[0]!r} isn't a valid host" if invalid else "a host is listed twice"
        raise UsageError(f"Invalid --on {on!r}: {problem}.", "Example: --on ssh://one,user@other:2222")
    return [Host(match["host"], match["port"] or "") for _, match in matches if match]


class SshExecutor:
    """An SSH host that measures shards, one at a time."""

    is_here, queues, slots = False, False, 1

    def __init__(self, host: Host, given: Parcel, say: Callable[[str], object]) -> None:
        self.name = host.shown
        self._host, self._parcel, self._folder = host, given, f"{_HOST_FOLDER}/{given.name}"
        self._shell = ShellRunner(say)
        self._say, self._is_ready = say, False

    def measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        """Measure a shard on the host, and fetch its run into a folder on this machine.

        Return the command's exit code and the last lines of its stderr. Raises CannotRunHereError if the host stops
        answering, or doesn't meet a requirement.
        """
        if not self._is_ready:
            self._prepare()
            self._is_ready = True
        run_folder = f"runs/{secrets.token_hex(8)}"
        command = make_script(
            [*words, "--results", run_folder], "env/bin/python", environ=parcel.ENVIRON, folder=self._folder
        )
        if exports := _make_exports():
            variables = f"{self._folder}/{run_folder}.sh"
            self._call(f"umask 077; mkdir -p {self._folder}/runs; cat > {variables}", exports.encode())
            command = f". {variables}; rm -f {variables}\n{command}"
        result = self._shell.run(self._host.make_command(command))
        self._fetch(run_folder, into)
        return result

    def stop(self) -> None:
        """End the measurement on the host, as Ctrl-C does."""
        self._shell.stop()

    def _call(self, command: str, data: bytes = b"") -> bytes:
        """Run a script on the host, and return its output. Raises CannotRunHereError if it fails."""
        process = subprocess.run(self._host.make_command(command), input=data, capture_output=True, check=False)
        if process.returncode:
            lines = process.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
            raise CannotRunHereError(" ".join(lines[-4:]))
        return process.stdout

    def _prepare(self) -> None:
        """Copy the missing files to the host, and install them."""
        folder = self._folder
        present = self._call(f"test -e {folder}/ready && echo ready; command -v uv >/dev/null && echo uv; true").split()
        if b"ready" in present:
            return
        self._say("copying harness and its project.")
        self._call(f"mkdir -p {folder} && tar -xzf - -C {folder}", self._parcel.archive)
        if b"uv" not in present:
            self._call(f"cat > {folder}/uv && chmod +x {folder}/uv", uv.find_uv().read_bytes())
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        lines = [
            "set -e",
            f"cd {folder}",
            _make_exports(),
            "uv=$(command -v uv || echo ./uv)",
            f'"$uv" venv -q --allow-existing --python {version} env',
            '"$uv" pip install -q --no-deps --python env/bin/python -r packages.txt',
            "touch ready",
        ]
        self._call("sh -s", "\n".join(lines).encode())

    def _fetch(self, run_folder: str, into: Path) -> None:
        """Copy the files in a folder of the host to `into`, and remove them on the host."""
        folder = f"{self._folder}/{run_folder}"
        if not self._call(f"test -d {folder} && echo there || true"):
            return
        command = self._host.make_command(f"tar -czf - -C {folder} .")
        received_bytes = 0
        with tempfile.TemporaryFile() as archive:
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as process:
                assert process.stdout
                while received_bytes <= parcel.MOST_BYTES and (chunk := process.stdout.read(CHUNK)):
                    received_bytes += archive.write(chunk)
                if received_bytes > parcel.MOST_BYTES:
                    process.kill()
            # check this first, because an archive that was cut off between two files looks complete
            if process.returncode:
                raise CannotRunHereError(f"The run in ~/{folder} could not be fetched: exit code {process.returncode}.")
            archive.seek(0)
            parcel.unpack(archive, into)
        self._call(f"rm -rf {folder}")

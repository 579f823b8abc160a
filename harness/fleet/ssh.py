"""`--on ssh://…`: copies a parcel to a host, measures a shard there, and fetches its run.

A host only needs an SSH server, sh, tar and a home folder. uv installs Python and the packages of harness for the user.
The connection uses the system's `ssh`, with its configuration and agent.
"""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.fleet.parcel import unpack
from harness.fleet.places import FINISHED_CODES, FOLDER, REMOTE_COMMAND, ShellPlace, make_remote_script, make_stoppable
from harness.machine.uv import find_uv
from harness.model.errors import CannotRunHereError, UsageError

_HOST = re.compile(r"([A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*(:\d{1,5})?")

#: Options of ssh that prevent prompts, so that a host that needs a password or doesn't answer causes an error.
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15")

#: The exit code of ssh if the connection fails. The script of a shard also uses it if the run can't be sent.
_NOT_SENT = 255

#: Environment variables about package sources, which are passed on to a host.
_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS", "HARNESS_WHEELS", "REGISTRY")


def parse_hosts(on: str) -> list[str]:
    """Return the hosts in `ssh://a,user@b:2222`, without the `ssh://`. Raises UsageError."""
    hosts = [text.removeprefix("ssh://").removesuffix("/") for text in on.removeprefix("ssh://").split(",")]
    invalid = [host for host in hosts if not _HOST.fullmatch(host)]
    if invalid or len(set(hosts)) < len(hosts):
        problem = f"{invalid[0]!r} isn't a valid host" if invalid else "a host is listed twice"
        raise UsageError(f"Invalid --on {on!r}: {problem}.", "Example: --on ssh://one,user@other:2222")
    return hosts


class SshPlace(ShellPlace):
    """An SSH host that measures shards with the files in `parcel`, an archive."""

    def __init__(self, host: str, parcel: bytes, say: Callable[[str], object]) -> None:
        super().__init__(host, say)
        self._parcel = parcel

    def measure(self, shard: str, words: Sequence[str], into: Path, earlier: Path | None) -> tuple[int, str]:
        """Measure a shard on the host, and fetch its run. Raises CannotRunHereError if the host doesn't answer."""
        folder = f"{FOLDER}/{shard}"
        # through stdin, because all users can read command lines, and an index's address may contain a password
        exports = [f"export {name}={shlex.quote(os.environ[name])}\n" for name in _VARIABLES if name in os.environ]
        command = f"umask 077; mkdir -p {folder} && cat > {folder}/variables || exit 1; command -v uv || true"
        has_uv = self._call(command, "".join(exports).encode())
        self._call(f"tar -xzof - -C {folder}", self._parcel)
        if not has_uv:
            self._call(f"cat > {folder}/uv && chmod +x {folder}/uv", find_uv().read_bytes())
        script = "\n".join(
            [
                f"cd {folder} && . ./variables && rm variables || exit 1",
                make_remote_script(words),
                make_stoppable(REMOTE_COMMAND),
                f"if test -d runs; then tar -czf - -C runs . || exit {_NOT_SENT}; fi; exit $code",
            ]
        )
        with tempfile.TemporaryFile() as archive:
            code, message = self.run(self._make_command(script), archive)
            # an archive that was cut off between two files looks complete
            if archive.seek(0, os.SEEK_END) and code != _NOT_SENT:
                archive.seek(0)
                unpack(archive, into)
        if code in FINISHED_CODES:
            self._call(f"rm -rf {folder}")
        return code, message

    def _make_command(self, script: str) -> list[str]:
        """Return the command that runs a script in the host's sh. `HARNESS_SSH_COMMAND` replaces ssh."""
        connect = shlex.split(os.environ.get("HARNESS_SSH_COMMAND", "ssh"))
        return [*connect, *_OPTIONS, f"ssh://{self.name}", f"sh -c {shlex.quote(script)}"]

    def _call(self, command: str, data: bytes = b"") -> bytes:
        """Run a script on the host, and return its output. Raises CannotRunHereError if it fails."""
        process = subprocess.run(self._make_command(command), input=data, capture_output=True, check=False)
        if process.returncode:
            lines = process.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
            raise CannotRunHereError(" ".join(lines[-4:]))
        return process.stdout

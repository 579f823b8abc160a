"""A Docker Engine of the tests' own, with programs on its PATH that stand in for NVIDIA's, and CDI folders of its own.

It leaves the machine's engine alone: it has its own folders, its own containerd, and no network.
"""

import io
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import docker

from harness.backends.docker.engine import Engine
from tests.docker import nvidia_programs
from tests.docker.nvidia_programs import HOOK, LIBRARY, RUNTIME
from tests.lacking import lacking
from tests.shared_objects import shared_object

#: Seconds in which it must answer, and end.
PATIENCE = 60.0

#: Storage drivers that an engine takes by name: the second one gets the first one's, which works on this disk.
DRIVERS = ("overlay2", "fuse-overlayfs", "btrfs", "zfs", "vfs")

#: The environment that its one image is of.
IMAGE = "test-nvidia"

#: A GPU that is /dev/null, with all that CUDA asks for.
CDI = {
    "cdiVersion": "0.5.0",
    "kind": "nvidia.com/gpu",
    "devices": [
        {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{name}", "hostPath": "/dev/null"}]}}
        for name in ("0", "1")
    ],
    "containerEdits": {
        "deviceNodes": [{"path": path, "hostPath": "/dev/null"} for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")]
    },
}


class NvidiaEngine:
    """The engine, the folders of its programs and CDI specifications, and how they are made to fail."""

    def __init__(self, engine: Engine, programs: Path, specifications: Path) -> None:
        self.engine = engine
        self.programs = programs
        self.specifications = specifications

    def load(self, root: bytes) -> None:
        """Give it an image for GPUs with this root."""
        changes = ["USER harness", "WORKDIR /harness", "ENV PATH=/usr/local/bin"]
        self.engine.api.import_image_from_data(root, f"harness/{IMAGE}", "gpu", changes)  # type: ignore[no-untyped-call]

    def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Give that image another name, and labels."""
        text = io.BytesIO(f"FROM harness/{IMAGE}:gpu\n".encode())
        for line in self.engine.api.build(fileobj=text, tag=name, labels=dict(labels), rm=True, decode=True):
            assert "error" not in line, line

    def describe(self, *mounts: str, hook: str = "", node: str = "", has_driver: bool = True) -> None:
        """Describe its GPUs by CDI, and have what else is named mounted, run by a hook, or made a device node."""
        edits = json.loads(json.dumps(CDI))
        if node:
            edits["containerEdits"]["deviceNodes"].append({"path": node, "hostPath": node})
        paths = [(path, path) for path in mounts]
        if has_driver:
            paths.append((str(self.programs / LIBRARY), f"/usr/lib/x86_64-linux-gnu/{LIBRARY}"))
        edits["containerEdits"]["mounts"] = [
            {"hostPath": path, "containerPath": inside, "options": ["ro", "bind"]} for path, inside in paths
        ]
        if hook:
            edits["containerEdits"]["hooks"] = [{"hookName": "createContainer", "path": hook, "args": [hook]}]
        (self.specifications / "nvidia.json").write_text(json.dumps(edits))

    def fail(self, name: str, words: str) -> None:
        """Have one of its programs fail with these words."""
        (self.programs / f"{name}.fault").write_text(words)

    def close(self, group: int) -> None:
        """Have its device nodes open to one group alone."""
        (self.programs / "group").write_text(str(group))

    def deny(self) -> None:
        """Have device nodes that the control groups of containers have no rule for."""
        (self.programs / "denied").touch()

    def mend(self) -> None:
        """Have no GPUs by CDI, no faults, and nodes that are open to all."""
        faults = [path for name in ("*.fault", "group", "denied") for path in self.programs.glob(name)]
        for path in [*self.specifications.iterdir(), *faults]:
            path.unlink()


@contextmanager
def running(first: Engine) -> Iterator[NvidiaEngine]:
    """The engine while it runs; `first` is the machine's."""
    if os.geteuid() or not first.is_here or shutil.which("dockerd") is None:
        lacking("a second Docker Engine needs root, and dockerd on this machine")
    # paths of sockets are short, and storage drivers choosy about what they lie on
    short = Path(tempfile.mkdtemp(prefix="hn", dir="/tmp"))
    data = Path(first.info["DockerRootDir"]).parent / f"harness-test-{secrets.token_hex(4)}"
    programs, specifications = short / "bin", short / "cdi"
    for folder in (data, programs, specifications):
        folder.mkdir()
    for name in (HOOK, RUNTIME):
        text = Path(nvidia_programs.__file__).read_text(encoding="utf-8")
        (programs / name).write_text(f"#!{sys.executable}\n{text}")
        (programs / name).chmod(0o755)
    (programs / LIBRARY).write_bytes(shared_object(LIBRARY))
    settings = {
        "data-root": str(data),
        "exec-root": str(short / "run"),
        "pidfile": str(short / "pid"),
        "hosts": [f"unix://{short}/docker.sock"],
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        "features": {"cdi": True},
        "cdi-spec-dirs": [str(specifications)],
        "runtimes": {"nvidia": {"path": str(programs / RUNTIME)}},
    }
    if first.info.get("Driver") in DRIVERS:
        settings["storage-driver"] = first.info["Driver"]
    (short / "daemon.json").write_text(json.dumps(settings))
    log = short / "log"
    with log.open("wb") as out:
        environ = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        # in a network of its own: an engine without a bridge removes docker0, and that may be the first one's
        command = ["unshare", "--net", "dockerd", "--config-file", str(short / "daemon.json")]
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environ, start_new_session=True)
    try:
        _wait(process, short / "docker.sock", log)
        address = f"unix://{short}/docker.sock"
        with closing(docker.APIClient(base_url=address, version="auto")) as api:
            yield NvidiaEngine(Engine(api, address), programs, specifications)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        process.kill()
        process.wait()
        for folder in (data, short):
            shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], door: Path, log: Path) -> None:
    """Wait until the engine listens, or fail with what it said."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        with socket.socket(socket.AF_UNIX) as knock, suppress(OSError):
            knock.connect(str(door))
            return
        time.sleep(0.05)
    lines = log.read_text(errors="replace").splitlines()
    raise AssertionError("\n".join(["A second Docker Engine does not start:", *lines[-20:]]))


#: Run in an image, it packs what Python needs to run launches of the tests there: 30 MB, where the image has 300.
_PACK = """
import ctypes, glob, json, os, pathlib, random, re, runpy, signal, socket, sys, tarfile, threading, time
def real(path):
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
links = [path for path in glob.glob("/*") if os.path.islink(path)]
others = [*glob.glob("/usr/lib*/ld-linux*"), "/etc/passwd", "/etc/group", "/etc/ld.so.cache"]
modules = [getattr(each, name, None) for each in list(sys.modules.values()) for name in ("__file__", "__cached__")]
maps = [line.split()[-1] for line in open("/proc/self/maps") if " /" in line]
maps += [name for path in set(maps) for name in glob.glob(path.partition(".so")[0] + ".so*")]  # what links ask for
programs = glob.glob("/usr/local/bin/python*")
found = [path for path in others + programs + modules + maps if path and os.path.isfile(path)]
files = sorted({real(path) for path in [*found, *map(os.path.realpath, found)]})
parents = {str(parent) for path in files for parent in pathlib.PurePath(path).parents}
owned = ("/harness", "/cache", "/tmp")
with tarfile.open("/harness/small.tar", "w") as tar:
    for path in sorted({*parents, *map(os.path.realpath, links), *owned} - {"/"}):
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        entry.uid = entry.gid = 1000 if path in owned else 0
        tar.addfile(entry)
    for path in [*links, *files]:
        tar.add(path, recursive=False)
"""


def small(first: Engine, image: str) -> bytes:
    """The root of a small image, as a tar file: Python, out of one of the first engine's images."""
    container = first.api.create_container(image, ["python", "-c", _PACK], host_config={"NetworkMode": "none"})
    try:
        first.api.start(container)
        assert first.api.wait(container)["StatusCode"] == 0, first.api.logs(container)
        chunks, _ = first.api.get_archive(container, "/harness/small.tar")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
            member = tar.extractfile("small.tar")
            assert member is not None
            return member.read()
    finally:
        first.api.remove_container(container, force=True, v=True)

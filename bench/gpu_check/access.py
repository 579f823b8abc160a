"""Access to GPUs before any image of harness exists: the driver, NVIDIA's toolkit, and the engine.

`python -m bench.gpu_check.access ways` starts CUDA in this process, and then in a small container with each method of
GPU access. `python -m bench.gpu_check.access facts` prints versions and settings that decide whether a method works.
With `--no-engine`, both leave out containers.
"""

import argparse
import ctypes
import datetime
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.gpu_check.checks import RESULT, Finding, report
from harness.backends.docker import cdi, gpu_trial, gpus
from harness.backends.docker.engine import Engine, connect, raise_as_sentences
from harness.machine.gpu.host import DRIVER
from harness.machine.gpu.selection import parse_requested
from harness.model.backend import GpuWay
from harness.model.errors import CannotRunHereError, Exit
from harness.model.gpu import FIRST

#: The image in which a container tries a method: the base of harness's own images.
IMAGE = "python:3.11-slim-bookworm"
#: The label of these containers.
_RUN = "gpu-check"

#: The seconds that a program may take to print its version.
_PATIENCE = 30.0

#: Programs of NVIDIA's toolkit and driver, with the arguments for their versions.
PROGRAMS: Mapping[str, Sequence[str]] = {
    "nvidia-ctk": ("nvidia-ctk", "--version"),
    "nvidia-container-cli": ("nvidia-container-cli", "--version"),
    "nvidia-smi": ("nvidia-smi", "--query-gpu=name,compute_cap,driver_version,vbios_version", "--format=csv"),
    "nvidia-cdi-refresh": ("systemctl", "is-active", "nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service"),
    "SELinux": ("getenforce",),
    # `Open`, or NVIDIA's own kernel module
    "license of the driver's module": ("modinfo", "--field=license", "nvidia"),
    # all settings and counters, such as ECC errors, without the processes of users
    "nvidia-smi -q": ("sh", "-c", "nvidia-smi -q | grep -vE '^ +(Process ID|Name) +:'"),
    "Xid errors": ("sh", "-c", "dmesg | grep -E 'Xid|NVRM' | tail -n 30"),
    # a daemon that shares GPUs among processes (MPS) listens in this folder
    "MPS": (
        "sh",
        "-c",
        'ls -d "${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}"; echo "GPUs: ${CUDA_VISIBLE_DEVICES-all}"',
    ),
}
#: The parts of `docker info` on which GPU access depends.
INFO = (
    *("ServerVersion", "OperatingSystem", "CgroupDriver", "CgroupVersion", "SecurityOptions"),
    *("DefaultRuntime", "Runtimes", "CDISpecDirs", "DiscoveredDevices"),
)
#: The fact about a program that isn't installed.
MISSING = "isn't installed"
#: NVIDIA's settings for its runtime, and the driver's settings for its kernel module.
FILES = ("etc/nvidia-container-runtime/config.toml", "proc/driver/nvidia/version", "proc/driver/nvidia/params")


def check_ways(which: Sequence[str], engine: Engine | None) -> list[Finding]:
    """Start CUDA on this machine and, with an engine, in a container with each method of GPU access.

    If at least one method works, another method that fails is only reported.
    """
    own = check_driver()
    if engine is None:
        return [own]
    try:
        image = pull(engine, IMAGE)
    except CannotRunHereError as error:
        return [own, Finding(False, f"No container was started: {error}")]
    findings = [try_way(engine, image, way, which) for way in GpuWay]
    # with one method that works, the others are only reported
    failed = None if any(finding.passed for finding in findings) else False
    return [own, *(Finding(finding.passed or failed, finding.sentence) for finding in findings)]


def check_driver(load: Callable[[str], Any] = ctypes.CDLL) -> Finding:
    """Start CUDA in this process. `load` opens a library by its name."""
    try:
        library = load(DRIVER)
        error, count = library.cuInit(0), ctypes.c_int()
    except (OSError, AttributeError) as reason:
        return Finding(False, f"Outside containers, CUDA can't start: {reason}.")
    if error:
        return Finding(False, f"Outside containers, {gpu_trial.describe_init_error(error)}")
    library.cuDeviceGetCount(ctypes.byref(count))
    return Finding(True, f"Outside containers, CUDA starts and finds GPUs: {count.value}.")


def pull(engine: Engine, name: str) -> str:
    """Return the id of an image, which is pulled if it is missing. Raises CannotRunHereError."""
    from docker.errors import ImageNotFound  # noqa: PLC0415 - without an engine, this is not needed

    with raise_as_sentences(f"pull {name}"):
        try:
            return str(engine.api.inspect_image(name)["Id"])
        except ImageNotFound:
            repository, _, tag = name.rpartition(":")
            engine.api.pull(repository, tag)
            return str(engine.api.inspect_image(name)["Id"])


def try_way(engine: Engine, image: str, way: GpuWay, which: Sequence[str]) -> Finding:
    """Start a container of the image with the GPUs `which` by this method, and CUDA in it."""
    try:
        (access,) = gpus.select_able(gpus.find(engine, way), which)
        missing, found = gpu_trial.try_access(engine, image, access.way, access.list_requested(which), _RUN)
    except CannotRunHereError as error:
        return Finding(False, f"{way}: {one_paragraph(str(error))}")
    sentence = f"{way}: {missing or 'CUDA starts in a container.'} {found}"
    return Finding(not missing, sentence.rstrip())


def one_paragraph(text: str) -> str:
    """Return the text on one line."""
    return " ".join(text.split())


def read_facts(engine: Engine | None, root: Path = Path("/")) -> dict[str, str]:
    """Return versions and settings by name. A fact that can't be read has the reason instead.

    `root` is the folder of this machine's files.
    """
    facts = {name: run_program(command) for name, command in PROGRAMS.items()}
    facts |= {f"/{name}": read_settings(root / name) for name in FILES}
    facts["device nodes"] = list_files(sorted((root / "dev").glob("nvidia*")), root, describe_node)
    folders = [root / str(folder).lstrip("/") for folder in cdi.FOLDERS]
    specifications = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    facts["CDI specifications"] = list_files(specifications, root, describe_specification)
    if engine is not None:
        facts |= {f"docker info, {name}": str(engine.info.get(name, "not reported")) for name in INFO}
    return facts


def summarize(facts: Mapping[str, str]) -> str:
    """Return a sentence about the toolkit and the programs that are missing."""
    missing = [name for name, value in facts.items() if value == MISSING]
    version = next(iter(re.findall(r"version (\d[\w.-]*)", facts["nvidia-ctk"])), "")
    words = [f"NVIDIA Container Toolkit {version}." if version else "", missing and f"Missing: {', '.join(missing)}."]
    return " ".join(filter(None, words)) or "All programs were found."


def run_program(command: Sequence[str]) -> str:
    """Return the output of a program, or the reason why there is none."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except FileNotFoundError:
        return MISSING
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]} failed: {error}"
    return (process.stdout or process.stderr).strip() or f"exit code {process.returncode}, without output"


def read_settings(path: Path) -> str:
    """Return the lines of a file without comments, or the reason why it can't be read."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return str(error.strerror)
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def list_files(paths: Iterable[Path], root: Path, describe: Callable[[Path], str]) -> str:
    """Return a line with the description of each file."""
    lines = []
    for path in paths:
        try:
            lines.append(f"/{path.relative_to(root)}: {describe(path)}")
        except OSError as error:
            lines.append(f"/{path.relative_to(root)}: {error.strerror}")
    return "\n".join(lines) or "none"


def describe_node(path: Path) -> str:
    """Return the permissions and the owner of a device node."""
    node = path.stat()
    return f"mode {node.st_mode & 0o777:o}, owner {node.st_uid}:{node.st_gid}"


def describe_specification(path: Path) -> str:
    """Return when a CDI specification was written, the driver's version in it, and its devices."""
    written = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    text = path.read_text(encoding="utf-8", errors="replace")
    drivers = sorted(set(re.findall(r"libcuda\.so\.(\d{3,}[\d.]*\d)", text)))
    devices = ", ".join(cdi.read_device_names(path)) or "none of NVIDIA"
    return f"written {written:%Y-%m-%d %H:%M} UTC, driver {', '.join(drivers) or 'not named'}, devices {devices}"


def main() -> int:
    """Run one of the two commands. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("ways", "facts"))
    parser.add_argument("--gpus", default=FIRST, help="the GPUs, as in `harness matrix --gpus`")
    parser.add_argument("--no-engine", action="store_true", help="leave out containers")
    arguments = parser.parse_args()
    engine, refusal = None, ""
    if not arguments.no_engine:
        try:
            engine = connect()
        except CannotRunHereError as error:
            refusal = one_paragraph(str(error))
    if arguments.command == "facts":
        facts = read_facts(engine)
        for name, value in facts.items():
            print(f"{name}: {value}" if "\n" not in value else f"{name}:\n{value}")
        print(f"{RESULT}{summarize(facts)}")
        return Exit.OK
    findings = check_ways(parse_requested(True, arguments.gpus), engine)
    if refusal:
        findings.append(Finding(False, f'{refusal} To check without containers: make gpu-check ARGS="--no-engine"'))
    return report(findings)


if __name__ == "__main__":
    sys.exit(main())

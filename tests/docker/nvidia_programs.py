"""NVIDIA's container hook and runtime, as an engine of the tests' own finds them: they give GPUs that are /dev/null.

Run as a program, under the name that it is installed by:

- `nvidia-container-runtime-hook prestart` reads a container's state on its standard input, as OCI hooks do, and puts
  the GPUs of NVIDIA_VISIBLE_DEVICES and the driver's library into the container, from outside;
- `nvidia-container-runtime ARGUMENTS` edits the specification of a container that is to be created, and starts runc
  with the same arguments.

Where a file of its name and `.fault` lies beside it, it fails with the words in that file.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOOK, RUNTIME = "nvidia-container-runtime-hook", "nvidia-container-runtime"

#: What the programs find beside them: the driver's library for CUDA.
LIBRARY = "libcuda.so.1"

#: The number of /dev/null, which every container may open, and of NVIDIA's first device, which none may open that has
#: no rule for it.
NULL, NVIDIA = (1, 3), (195, 0)


def nodes(config: dict[str, Any]) -> Iterator[str]:
    """The device nodes of the GPUs that a container asks for; none where it asks for none."""
    environ = dict(line.split("=", 1) for line in config["process"]["env"] if "=" in line)
    wanted = environ.get("NVIDIA_VISIBLE_DEVICES", "void")
    if wanted not in ("", "void", "none"):
        names = ["0", "1"] if wanted == "all" else wanted.split(",")
        yield from (f"/dev/nvidia{name}" for name in names)
        yield from ("/dev/nvidiactl", "/dev/nvidia-uvm")


def library(root: Path) -> tuple[Path, Path]:
    """The driver's library, which lies beside this file, and the path that it has in an image."""
    place = next(root.glob("usr/lib/*-linux-gnu"))
    return Path(__file__).with_name(LIBRARY), place / LIBRARY


def rights() -> tuple[int, int]:
    """Return the mode and the group of the device nodes: open to all, or to the group that the file `group` names."""
    group = Path(__file__).with_name("group")
    return (0o660, int(group.read_text())) if group.exists() else (0o666, 0)


def number() -> tuple[int, int]:
    """Return the number of the device nodes. If a file `denied` exists, containers may not open it."""
    return NVIDIA if Path(__file__).with_name("denied").exists() else NULL


def hook() -> None:
    """Mount nothing and make everything, in the container's own namespace."""
    state = json.load(sys.stdin)
    config = json.loads((Path(state["bundle"]) / "config.json").read_text())
    root = Path(config["root"]["path"])
    devices = list(nodes(config))
    if devices:
        shutil.copyfile(*library(root))
    (mode, group), (major, minor) = rights(), number()
    enter = ["nsenter", "--mount", "--target", str(state["pid"])]
    for node in devices:
        path = f"{root}{node}"
        subprocess.run([*enter, "mknod", "-m", f"{mode:o}", path, "c", str(major), str(minor)], check=True)
        subprocess.run([*enter, "chown", f"0:{group}", path], check=True)


def runtime(arguments: list[str]) -> None:
    """What NVIDIA's runtime does before it hands over to runc."""
    if "create" in arguments:
        path = Path(arguments[arguments.index("--bundle") + 1]) / "config.json"
        config = json.loads(path.read_text())
        nodes_of_gpus = list(nodes(config))
        (mode, group), (major, minor) = rights(), number()
        devices = config["linux"].setdefault("devices", [])
        devices += [
            {"path": node, "type": "c", "major": major, "minor": minor, "fileMode": mode, "uid": 0, "gid": group}
            for node in nodes_of_gpus
        ]
        if nodes_of_gpus:
            root = Path(config["root"]["path"])
            source, place = library(root)
            inside = f"/{place.relative_to(root)}"
            mount = {"destination": inside, "type": "bind", "source": str(source), "options": ["ro", "bind"]}
            config["mounts"].append(mount)
        path.write_text(json.dumps(config))
    os.execvp("runc", ["runc", *arguments])


def main() -> None:
    """The program that it is called as, or its fault."""
    name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
    fault = Path(sys.argv[0]).with_name(f"{name}.fault")
    if fault.exists() and (name == HOOK or "create" in arguments):
        words = fault.read_text()
        if "--log" in arguments:  # where an engine reads what its runtime says
            Path(arguments[arguments.index("--log") + 1]).write_text(json.dumps({"level": "error", "msg": words}))
        sys.exit(words)
    if name == HOOK:
        hook()
    else:
        runtime(arguments)


if __name__ == "__main__":
    main()

"""Specification of a container, and the options that the engine gets for it."""

import os
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.backends.docker.engine import Engine
from harness.backends.docker.priority import Priority
from harness.model.launch import Limits

if TYPE_CHECKING:
    from docker.types import DeviceRequest

#: The label with a container's run, to find the containers of a killed run.
RUN_LABEL = "harness.run"
CELL_LABEL = "harness.cell"
#: The label with a container's owner, because several users and machines can use one engine.
OWNER_LABEL = "harness.owner"

#: The folder in a container that has a launch's files. The process starts in this folder.
FOLDER = "/harness"
USER = "harness"
UID = 1000


@dataclass(frozen=True, slots=True)
class Specification:
    """A container to run: the id of its image, its command line, and its limits.

    `devices` are the SDK's device requests. `runtime` is a runtime of the engine, if it isn't the default one. `groups`
    are additional groups of the process. `volumes` maps names of volumes to mount points. Volumes in `read_only` can't
    be written. If `takes_words` is set, the process reads commands from its standard input. Without a `priority`, it
    shares its CPUs with other work. `user` is a name in the image, or the numbers of a user and a group.
    """

    image: str
    command: Sequence[str]
    environ: Mapping[str, str]
    labels: Mapping[str, str]
    limits: Limits
    devices: "Sequence[DeviceRequest]" = ()
    runtime: str = ""
    groups: Sequence[int] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)
    read_only: Collection[str] = ()
    takes_words: bool = False
    priority: Priority | None = None
    user: str = USER


def make_options(engine: Engine, specification: Specification) -> dict[str, Any]:
    """Return the SDK's options of a container: no network, no capabilities, and the limits of the specification."""
    from docker.types import LogConfig, Mount

    limits, priority = specification.limits, specification.priority
    host_config = engine.api.create_host_config(
        init=True,
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        # TensorFlow's thread pools grow with the CPUs
        pids_limit=512 + 16 * int(engine.info.get("NCPU", 1)),
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        cpuset_cpus=None if limits.cpus is None else ",".join(map(str, limits.cpus)),
        cgroup_parent=priority.parent if priority else None,
        cpu_shares=priority.get_shares(limits.cpus) if priority else None,
        # no log: on the engine's disk, 100 MB of stderr would take 258 MB
        log_config=LogConfig(type="none"),
        device_requests=list(specification.devices) or None,
        runtime=specification.runtime or None,
        group_add=list(specification.groups) or None,
        mounts=[
            Mount(folder, volume, read_only=volume in specification.read_only)
            for volume, folder in specification.volumes.items()
        ],
    )
    return {
        "image": specification.image,
        "command": list(specification.command),
        "environment": dict(specification.environ),
        "labels": {OWNER_LABEL: get_owner(), **specification.labels},
        "user": specification.user,
        "working_dir": FOLDER,
        "host_config": host_config,
        # the input is closed with the connection, so if harness is killed, no process waits for a word forever
        "stdin_open": specification.takes_words,
    }


def get_owner() -> str:
    """Return the user and machine that a container's owner label records."""
    return f"{platform.node()}:{os.getuid()}"

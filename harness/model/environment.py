"""Environments: pinned sets of packages, and their locks."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Device(StrEnum):
    """What an environment's lock and image are made for."""

    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Environment:
    """One line of the catalogue (docker-bake.hcl).

    `tensorflow` and `keras` are exact versions, `keras` empty where TensorFlow brings its own; `python` is X.Y;
    `as_of` is the instant, in ISO 8601 with a zone, at which the lock is resolved.
    """

    name: str
    tensorflow: str
    python: str
    as_of: str
    keras: str = ""

    @property
    def title(self) -> str:
        """How a sentence names it: `TensorFlow 1.14.0 + Keras 2.2.5`."""
        keras = f" + Keras {self.keras}" if self.keras else ""
        return f"TensorFlow {self.tensorflow}{keras}"


@dataclass(frozen=True, slots=True)
class Lock:
    """The hashed requirements of one environment on one device.

    `pins` maps normalised package names to versions; `sha256` is of the file's bytes.
    """

    path: Path
    sha256: str
    pins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a backend is asked to prepare: an environment on a device, with its lock."""

    environment: Environment
    device: Device
    lock: Lock

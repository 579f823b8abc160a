"""The protocol for all tasks of a backend except launches: checking this machine, verifying, cleaning, and so on."""

import platform
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from harness.backends.verification import Verification
from harness.model.backend import Backend, GpuWay, Supply, WheelRecipe
from harness.model.environment import Requirement, normalize_architecture
from harness.model.gpu import GpuHost


class RegisteredBackend(Backend, Protocol):
    """A backend of the registry. The methods with a body here are the defaults.

    The constructor's arguments are `root`, the project's folder, and `run`, a run's id. It contacts no engine.
    `leftovers` is a plural noun for the things that `clean` removes. `makes` is a noun for the thing that `prepare`
    makes for an environment. `builds_in` says where wheels are built.
    """

    leftovers: str
    makes: str
    builds_in: str

    def __init__(self, root: Path, run: str) -> None: ...

    def check(self) -> str:
        """Return a short description of where launches would run. Raises CannotRunHereError if they can't run here."""
        ...

    @property
    def architecture(self) -> str:
        """The architecture of the processors that run launches. Raises CannotRunHereError if no engine is running."""
        return normalize_architecture(platform.machine())

    def check_tools(self) -> None:
        """Raise CannotRunHereError if the backend can't make environments. `auto` then tries the next backend."""

    @property
    def gpu_host(self) -> GpuHost:
        """The GPUs of the machine that runs the launches, if they are known without a request to an engine."""
        ...

    def check_gpus(self, wanted: Sequence[str], via: GpuWay | None = None) -> None:
        """Check whether launches can get these GPUs. If `via` is given, check only this method of access.

        Raises UsageError for a method that this backend doesn't have, and CannotRunHereError if launches certainly
        can't get these GPUs.
        """
        ...

    def try_gpus(self, requirements: Sequence[Requirement]) -> list[str]:
        """Find the method that gives containers the checked GPUs, and return sentences for the user.

        The search may need a prepared environment. Without one, or after an earlier search, this does nothing. Raises
        CannotRunHereError if no method works.
        """
        return []

    def build_wheel(self, recipe: WheelRecipe, folder: Path) -> None:
        """Build a wheel from a source into a folder.

        Raises CannotRunHereError, with the last lines of the build's output, if that fails.
        """
        ...

    def give_priority(self, cpus: Collection[int]) -> list[str]:
        """Give later launches on these CPUs priority over all other work there, if this machine allows it.

        It is called after the environments are prepared, and returns sentences for the user.
        """
        return []

    def verify(self, requirement: Requirement) -> Verification:
        """Compare the packages of an environment with its lock. Raises CannotRunHereError if it doesn't start."""
        ...

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Return the environments that `prepare` would have to create. Raises CannotRunHereError."""
        ...

    def supply(self, requirement: Requirement) -> Supply:
        """Return whether this machine has, or can get, the interpreter of an environment. Downloads nothing."""
        return Supply.POSSIBLE

    def check_room(self, requirements: Sequence[Requirement]) -> None:
        """Raise CannotRunHereError if the disk space isn't enough for the environments that `prepare` would create."""

    def caches(self) -> list[str]:
        """Return the caches of compiled GPU code, which later runs use too."""
        return []

    def clean_caches(self) -> int:
        """Remove the caches, and return their number."""
        return 0

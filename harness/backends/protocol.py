"""What the registry's backends are asked beside launching: whether they can be used here, what they left, and so on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from harness.backends.verification import Verification
from harness.machine.doctor.check import CheckResult
from harness.model.backend import Backend, ImageStore, KeptImage, Preparation, Progress
from harness.model.environment import Requirement
from harness.model.gpu import GpuHost
from harness.model.run import ByHand, Run
from harness.model.scenario import Cell


class RegisteredBackend(Backend, Protocol):
    """A backend by its registry entry. What is said here holds where a backend has nothing of its own to say.

    It is made with `root`, the project's folder, and `run`, a run's id. Nothing is asked of an engine before it is
    needed. `leftovers` is what `clean` removes, in plural; `makes` is what `prepare` makes of an environment.
    """

    leftovers: str
    makes: str

    def __init__(self, root: Path, run: str) -> None: ...

    def check(self) -> str:
        """What launches would run on, in a few words. Raises CannotRunHereError where they cannot run here."""
        ...

    def check_gpus(self, wanted: Sequence[str]) -> str:
        """By which way launches get these GPUs. Raises UsageError where they never do, CannotRunHereError."""
        ...

    def verify(self, requirement: Requirement) -> Verification:
        """Compare what an environment has with its lock. Raises CannotRunHereError where it does not start."""
        ...

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Those that `prepare` would first make something for. Raises CannotRunHereError."""
        ...

    def check_room(self, requirements: Sequence[Requirement]) -> None:
        """Raise CannotRunHereError where what `prepare` would make has no room, as far as that can be told."""

    def findings(self, requirements: Sequence[Requirement], *, wanted: bool) -> list[CheckResult]:
        """What the doctor says of it, with room for these environments; `wanted`: a launch on GPUs is asked for."""
        return []

    @property
    def gpu_host(self) -> GpuHost:
        """What is known of the GPUs of the machine that launches run on, without asking an engine."""
        return GpuHost(absent="launches get no GPU")

    def caches(self) -> list[str]:
        """What is kept for later runs although nothing of it is measured: caches of compiled GPU code."""
        return []

    def clean_caches(self) -> int:
        """Remove those; returns how many there were."""
        return 0

    @staticmethod
    def by_hand(run: Run, chosen: Mapping[str, Cell]) -> ByHand:
        """How a stored run is done again without the harness: of each environment the `chosen` cell."""
        return ByHand()


class ImageBackend(RegisteredBackend, Protocol):
    """A backend whose environments are images."""

    @property
    def images(self) -> ImageStore:
        """Its engine's images. Raises CannotRunHereError where none answers."""
        ...

    def states(self, requirements: Sequence[Requirement]) -> list[KeptImage]:
        """Of each image what there is. Raises CannotRunHereError where no engine answers."""
        ...

    def prepare(self, requirements: Sequence[Requirement], progress: Progress, jobs: int | None = None) -> Preparation:
        """As every backend's; `jobs` images are made at a time."""
        ...

    def check_push(self) -> None:
        """Raise UsageError where there is no registry to push to."""
        ...

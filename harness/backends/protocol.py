"""What a registered backend does other than launch: check this machine, verify, clean, and so on."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from harness.backends.verification import Verification
from harness.machine.doctor.check import CheckResult
from harness.model.backend import Backend, GpuWay, ImageStore, KeptImage, Meanwhile, Preparation, Progress
from harness.model.environment import Requirement
from harness.model.gpu import GpuHost


class RegisteredBackend(Backend, Protocol):
    """A backend of the registry. The methods with a body here are the defaults.

    It is made with `root`, the project's folder, and `run`, a run's id; making it asks no engine. `leftovers` is what
    `clean` removes, in plural; `makes` is what `prepare` makes of an environment.
    """

    leftovers: str
    makes: str

    def __init__(self, root: Path, run: str) -> None: ...

    def check(self) -> str:
        """What launches would run on, in a few words. Raises CannotRunHereError where they cannot run here."""
        ...

    def check_gpus(self, wanted: Sequence[str], via: GpuWay | None = None) -> None:
        """See whether launches may get these GPUs, by one way alone where that was typed.

        Raises UsageError where they never do, CannotRunHereError where they are known not to here.
        """
        ...

    def try_gpus(self, requirements: Sequence[Requirement]) -> list[str]:
        """Find the way to the GPUs that were checked which works, and tell the user of it: sentences.

        It may need an environment that is made ready; nothing is done where there is none, or where it was done.
        Raises CannotRunHereError where no way works.
        """
        return []

    def give_priority(self, cpus: Collection[int]) -> list[str]:
        """Have later launches on these CPUs go before all other work there, if this machine allows it.

        Called once the environments are prepared. Returns what to tell the user: sentences.
        """
        return []

    def verify(self, requirement: Requirement) -> Verification:
        """Compare what an environment has with its lock. Raises CannotRunHereError where it does not start."""
        ...

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Those that `prepare` would first make something for. Raises CannotRunHereError."""
        ...

    def check_room(self, requirements: Sequence[Requirement]) -> None:
        """Raise CannotRunHereError where the disk is known to have no room for what `prepare` would make."""

    def findings(self, requirements: Sequence[Requirement], wanted: Sequence[str]) -> list[CheckResult]:
        """What the doctor reports, with the room for these environments; `wanted` are the GPUs of every launch."""
        return []

    def caches(self) -> list[str]:
        """The caches of compiled GPU code, which later runs use too."""
        return []

    def clean_caches(self) -> int:
        """Remove the caches; returns how many there were."""
        return 0


class ImageBackend(RegisteredBackend, Protocol):
    """A backend whose environments are images."""

    @property
    def images(self) -> ImageStore:
        """Its engine's images. Raises CannotRunHereError where none answers."""
        ...

    def states(self, requirements: Sequence[Requirement]) -> list[KeptImage]:
        """Whether each image is built, and how large it is. Raises CannotRunHereError where no engine answers."""
        ...

    @property
    def gpu_host(self) -> GpuHost:
        """The GPUs of the engine's machine, as far as they are known without asking the engine."""
        ...

    def prepare(
        self,
        requirements: Sequence[Requirement],
        progress: Progress,
        meanwhile: Meanwhile | None = None,
        jobs: int | None = None,
    ) -> Preparation:
        """As every backend's; `jobs` images are made at a time."""
        ...

    def bill(self, requirement: Requirement, found: Verification) -> str:
        """The image's bill of materials, with what was `found` in it: a CycloneDX document."""
        ...

    def check_push(self) -> None:
        """Raise UsageError where there is no registry to push to."""
        ...

"""The protocol of every backend, and the data that backends return."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.model.environment import Device, Requirement
from harness.model.errors import NothingPreparedError, UnavailableError
from harness.model.launch import Job, Outcome
from harness.model.numbers import Bytes, Count

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class GpuWay(StrEnum):
    """The methods of GPU access in containers (`--gpu-via`), in the order in which they are tried."""

    CDI = "cdi"
    RUNTIME = "runtime"
    DRIVER = "driver"

    @property
    def words(self) -> str:
        """The name in reports and in `gpus_by` in run.json."""
        return {"cdi": "CDI", "runtime": "the runtime nvidia", "driver": "the engine's device driver"}[self.value]


#: The disk space for one more image or local environment, by device. It includes the copies that a builder or installer
#: saves, and is rounded up. An image for the CPU has 1.9 GB (tf2.21), and an image for the GPU 5.0 GB (tf2.15).
ENVIRONMENT_BYTES = {Device.CPU: 2 * 10**9, Device.GPU: 8 * 10**9}


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The bytes that are free in `folder` (None: unknown), and the bytes that are needed to build `images` images."""

    free: int | None
    needed: int
    images: int
    folder: str


#: The values of `where` for Docker Engine on this machine, and on another machine.
HERE, REMOTE = "this machine", "remote"


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """The facts about the backend in run.json. Unknown facts are empty.

    - `name`: the name of the backend in the registry of backends. `why`: why this backend was chosen.
    - `engine`: the program that started the launches, with its version. `where`: HERE or REMOTE.
    - `system` to `memory_bytes`: the machine on which the engine runs.
    - `registry`: the registry for images, with a slash at its end.
    - `gpus_by`: the method of GPU access. `gpu_groups`: ids of the system groups that containers join for GPU access.
    - `priority`: how launches get their CPUs before other work.
    - `uncontrolled`: properties that containers would control, but this backend doesn't, as parts of a sentence.
    - `more`: other facts for readers, under names that the backend chooses. In run.json, they are on the same level.
    """

    name: str
    why: str = ""
    engine: str = ""
    api: str = ""
    where: str = ""
    system: str = ""
    kernel: str = ""
    architecture: str = ""
    cpus: Count = 0
    memory_bytes: Bytes = 0
    storage: str = ""
    cgroup: str = ""
    rootless: bool | None = None
    security: Sequence[str] = ()
    registry: str = ""
    gpus_by: str = ""
    gpu_groups: Sequence[Count] = ()
    priority: str = ""
    uncontrolled: Sequence[str] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        """Whether launches ran on a different machine than harness."""
        return self.where == REMOTE

    def to_dict(self) -> dict[str, Any]:
        """Return all known facts as JSON values, by their names in run.json."""
        facts = {name: getattr(self, name) for name in _NAMES}
        return {name: value for name, value in facts.items() if value or value is False} | dict(self.more)

    # run.json has all facts on one level, including facts from other versions of harness
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            _gather_facts, handler(source), serialization=core_schema.plain_serializer_function_ser_schema(cls.to_dict)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: "CoreSchema", handler: "GetJsonSchemaHandler") -> "JsonSchemaValue":
        resolved = handler.resolve_ref_schema(handler(schema))
        resolved["properties"].pop("more", None)  # it may be removed already, because two fields share this schema
        return resolved | {"additionalProperties": True}


_NAMES = tuple(fact.name for fact in fields(BackendFacts) if fact.name != "more")


def _gather_facts(stored: Any) -> Any:
    """Move unknown names of a stored object to `more`. A value that isn't an object stays, so its validation fails."""
    if not isinstance(stored, Mapping):
        return stored
    facts = {name: value for name, value in stored.items() if name in _NAMES}
    return {**facts, "more": {name: value for name, value in stored.items() if name not in _NAMES}}


class Stage(StrEnum):
    """The state of an environment's preparation."""

    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PreparationStep:
    """An event in the preparation of an environment. `words` is shown as one line of progress."""

    environment: str
    words: str
    stage: Stage = Stage.WORKING

    def __str__(self) -> str:
        return f"{self.environment}: {self.words}"


#: Called with every step while environments are prepared, by one thread at a time.
Progress = Callable[[PreparationStep], object]


class Supply(IntEnum):
    """Whether a machine has everything that an environment needs besides packages, such as Python. Best first."""

    HERE = 0
    #: It can be downloaded, or it isn't known whether it can be.
    POSSIBLE = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class Preparation:
    """The result of preparing environments, by their names in the run (Requirement.name).

    `images` maps ready environments to the image's id or the lock's hash. `unavailable` maps environments that can't be
    prepared on this machine to the reason.
    """

    images: Mapping[str, str]
    unavailable: Mapping[str, UnavailableError] = field(default_factory=dict)

    def refuse_nothing(self) -> Self:
        """Return this object if an environment is available. Raises NothingPreparedError, with the reasons, if not."""
        errors = self.unavailable.values()
        if errors and not self.images:
            reasons = dict.fromkeys(error.message for error in errors)
            advice = dict.fromkeys(error.advice for error in errors if error.advice)
            raise NothingPreparedError("\n".join(reasons), "\n".join(advice))
        return self


class ImageState(StrEnum):
    """The state of an environment's image in Docker Engine."""

    BUILT = "built"
    OUTDATED = "outdated"
    NOT_BUILT = "not built"


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An environment's image in Docker Engine. `size_bytes` includes layers that are shared with other images."""

    state: ImageState
    id: str = ""
    size_bytes: int = 0


class LaunchHandle(Protocol):
    """A launch that was started, or is ready to start. Several handles can be open at the same time.

    Several launches can start at the same time. After that, only one at a time continues.
    """

    def start(self) -> None:
        """Start the launch without waiting, so that others can start too. Then call `resume` without a word."""

    def resume(self, word: str = "") -> bool:
        """Continue the launch until it waits for its next command. Return False if it ended, for whatever reason.

        The first call has no `word`, and starts the launch unless it was started before. Later calls send `word`, which
        is a command (docs/dev/worker-protocol.md). Only the time inside this method counts towards the time limit. A
        launch that isn't interleaved never waits for a command.
        """

    def move(self, cpus: Collection[int]) -> None:
        """Move all threads of the launch's processes to these CPUs.

        Raises CannotRunHereError if they aren't allowed to run there.
        """

    def outcome(self) -> Outcome:
        """Return the outcome. The launch must have ended."""


@dataclass(frozen=True, slots=True)
class WheelRecipe:
    """How a wheel is built from a source: the exported files, and the lock of the packages that the build needs.

    The folder `source` contains one folder, `files`, with the exported files. `instant` (seconds since 1970) is the
    time stamp of the files in the wheel. `version` is for packages that get their version from git, because the export
    has no git history.
    """

    package: str
    python: str
    source: Path
    lock: Path
    instant: int
    version: str

    @property
    def files(self) -> Path:
        """The folder with the exported files."""
        return self.source / "files"


class Backend(Protocol):
    """Prepares environments and executes launches. One object serves one run."""

    name: str

    def facts(self) -> BackendFacts:
        """Return the facts about the backend for run.json, except `why`, which the caller sets."""

    def prepare(self, requirements: Sequence[Requirement], progress: Progress) -> Preparation:
        """Prepare every environment. Raises CannotRunHereError if the backend can't prepare any environment here."""

    def hold(self, requirement: Requirement, job: Job) -> AbstractContextManager[LaunchHandle]:
        """Return a context manager for one launch, which continues on request.

        The launch leaves nothing behind, even if it is interrupted. The context manager doesn't raise errors of the
        scenario, but it does raise KeyboardInterrupt.
        """

    def can_move(self) -> bool:
        """Return whether launches run on this machine's CPUs, with its CPU numbers, and can be moved between them."""
        return False

    def launch(self, requirement: Requirement, job: Job) -> Outcome:
        """Execute one launch without interleaving, and return its outcome."""
        with self.hold(requirement, job) as handle:
            while handle.resume():
                pass
            return handle.outcome()

    def clean(self, run: str) -> int:
        """Remove leftovers of a run's launches (of all runs if `run` is empty). Return the number of removed items."""

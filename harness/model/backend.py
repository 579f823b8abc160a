"""The protocol of every backend, and the data that backends return."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.model.environment import Requirement
from harness.model.errors import NothingPreparedError, UnavailableError
from harness.model.launch import Job, Outcome
from harness.model.numbers import Bytes, Count

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class GpuWay(StrEnum):
    """Methods of GPU access in containers (`--gpu-via`), in the order in which they are tried."""

    CDI = "cdi"
    RUNTIME = "runtime"
    DRIVER = "driver"

    @property
    def words(self) -> str:
        """Name in reports and in run.json's `gpus_by`."""
        return {"cdi": "CDI", "runtime": "the runtime nvidia", "driver": "the engine's device driver"}[self.value]


#: Values of `where` for an engine on this machine, and on another machine.
HERE, REMOTE = "this machine", "remote"


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """Facts about the backend in run.json. Unknown facts are empty.

    - `name`: the name in the registry. `why`: the reason for the choice.
    - `engine`: the program that started the launches, with its version. `where`: HERE or REMOTE.
    - `system` to `memory_bytes`: the machine of the engine.
    - `registry`: the registry for images, with a slash at its end.
    - `gpus_by`: the method of GPU access. `gpu_groups`: ids of the system groups that containers join for it.
    - `priority`: how launches get their CPUs before other work.
    - `uncontrolled`: the properties that containers of harness control and this backend doesn't, as parts of a
      sentence.
    - `more`: other facts for a reader, under names that the backend chooses. On the disk they are on the same level.
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
        """Whether launches ran on another machine than harness."""
        return self.where == REMOTE

    def told(self) -> dict[str, Any]:
        """Return all known facts by their names in run.json. The values are JSON values."""
        facts = {name: getattr(self, name) for name in _NAMES}
        return {name: value for name, value in facts.items() if value or value is False} | dict(self.more)

    # the store reads and writes them flat, including the facts of other versions of harness
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            _gathered,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(cls.told),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: "CoreSchema", handler: "GetJsonSchemaHandler") -> "JsonSchemaValue":
        resolved = handler.resolve_ref_schema(handler(schema))
        resolved["properties"].pop("more", None)  # it may have been here before: two fields share it
        return resolved | {"additionalProperties": True}


_NAMES = tuple(fact.name for fact in fields(BackendFacts) if fact.name != "more")


def _gathered(stored: Any) -> Any:
    """Return a stored object with unknown names moved to `more`. Other values are unchanged, so validation fails."""
    if not isinstance(stored, Mapping):
        return stored
    facts = {name: value for name, value in stored.items() if name in _NAMES}
    return {**facts, "more": {name: value for name, value in stored.items() if name not in _NAMES}}


class Stage(StrEnum):
    """State of an environment's preparation."""

    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PreparationStep:
    """An event in the preparation of an environment. Its text is one line of progress."""

    environment: str
    words: str
    stage: Stage = Stage.WORKING

    def __str__(self) -> str:
        return f"{self.environment}: {self.words}"


#: Called with every step while environments are prepared, by one thread at a time.
Progress = Callable[[PreparationStep], object]

#: Called when one environment is ready while others are still being prepared. Its arguments are the name of the
#: environment, a function for progress, and a function that returns whether others are still being prepared.
Meanwhile = Callable[[str, Progress, Callable[[], bool]], object]


class Supply(IntEnum):
    """Whether a machine has what an environment needs besides packages, such as a Python interpreter. Best first."""

    HERE = 0
    #: It may be downloaded, or nobody knows.
    POSSIBLE = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class Preparation:
    """Result of preparing environments, by their names in the run (Requirement.name).

    `images` maps ready environments to the image's id or the lock's hash. `unavailable` maps the environments that this
    machine can't have to the reason.
    """

    images: Mapping[str, str]
    unavailable: Mapping[str, UnavailableError] = field(default_factory=dict)

    def refuse_nothing(self) -> Self:
        """Return self if at least one environment is available.

        Otherwise, raises NothingPreparedError with each reason once.
        """
        errors = self.unavailable.values()
        if errors and not self.images:
            reasons = dict.fromkeys(error.message for error in errors)
            advice = dict.fromkeys(error.advice for error in errors if error.advice)
            raise NothingPreparedError("\n".join(reasons), "\n".join(advice))
        return self


class ImageState(StrEnum):
    """State of an environment's image in an engine."""

    BUILT = "built"
    OUTDATED = "outdated"
    NOT_BUILT = "not built"


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An environment's image in an engine: its state, id and size, including layers shared with other images."""

    state: ImageState
    id: str = ""
    size_bytes: int = 0


class ImageStore(Protocol):
    """Transfers images to and from a registry, and to and from files for offline machines."""

    def push(self, requirements: Iterable[Requirement], progress: Progress) -> None:
        """Push environments' images. Raises CannotRunHereError with the registry's message."""
        ...

    def bases(self, requirements: Iterable[Requirement]) -> list[str]:
        """Return the references of the base images of these environments' images, each once."""
        ...

    def obtain(self, reference: str) -> str:
        """Return the id of an image, and pull it if it is missing. Raises CannotRunHereError."""
        ...

    def save(self, reference: str, path: Path) -> None:
        """Write an image of the engine to a file. Raises CannotRunHereError."""
        ...

    def load(self, path: Path, reference: str) -> None:
        """Load an image from a file into the engine. Raises CannotRunHereError if the file doesn't contain it."""
        ...


class LaunchHandle(Protocol):
    """A launch that is started, or ready to start. Several can be open at the same time.

    Several can start at the same time. After that, only one at a time continues.
    """

    def start(self) -> None:
        """Start it without waiting. Then call `go_on` without a word. Meanwhile, other launches may start."""
        ...

    def go_on(self, word: str = "") -> bool:
        """Continue it until it waits for its next word. Return False after it ended, for whatever reason.

        The first call starts it, without a word, unless it was started before. Later calls send it a word
        (docs/dev/worker-protocol.md). Only the time inside this method counts towards its limit. A launch without turns
        never waits.
        """
        ...

    def move(self, cpus: Collection[int]) -> None:
        """Move all threads of all its processes to these CPUs.

        Raises CannotRunHereError if they may not run there.
        """
        ...

    def outcome(self) -> Outcome:
        """Return the outcome, after it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class WheelRecipe:
    """How a source becomes a wheel: the exported files, and the lock of the packages that the build needs.

    The folder `source` has one folder, `files`, with the exported files. `instant` (seconds since 1970) is the time of
    the files in the wheel. `version` is for packages that take their version from git, whose history isn't there.
    """

    package: str
    python: str
    source: Path
    lock: Path
    instant: int
    version: str

    @property
    def files(self) -> Path:
        """Return the folder with the exported files."""
        return self.source / "files"


class Backend(Protocol):
    """Executes launches. One object serves one run."""

    name: str

    def facts(self) -> BackendFacts:
        """Return the facts for run.json. The caller sets `why`."""
        ...

    def prepare(
        self, requirements: Sequence[Requirement], progress: Progress, meanwhile: Meanwhile | None = None
    ) -> Preparation:
        """Prepare every environment. Raises CannotRunHereError if nothing can be prepared at all.

        A backend that prepares several environments at a time calls `meanwhile` in the caller's thread for each usable
        one, as long as others are still being prepared. It waits for the call. An exception of the call ends the
        preparation.
        """
        ...

    def hold(self, requirement: Requirement, job: Job) -> AbstractContextManager[LaunchHandle]:
        """Return a context for one launch, which continues on request. It leaves nothing behind, also if interrupted.

        Errors of the scenario are never raised. KeyboardInterrupt is.
        """
        ...

    def can_move(self) -> bool:
        """Return whether launches run on this machine's CPUs, with its CPU numbers, and can be moved between them."""
        return False

    def launch(self, requirement: Requirement, job: Job) -> Outcome:
        """Execute one launch without interleaving, and wait for its end."""
        with self.hold(requirement, job) as held:
            while held.go_on():
                pass
            return held.outcome()

    def clean(self, run: str) -> int:
        """Remove what launches of the run left behind (empty: of all runs), and return the number of removed items."""
        ...

"""The protocol that every backend keeps, and what it tells."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, UnavailableError
from harness.model.launch import Job, Outcome
from harness.model.numbers import Bytes, Count

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class GpuWay(StrEnum):
    """The ways in which containers get GPUs, as `--gpu-via` calls them, in the order in which they are tried."""

    CDI = "cdi"
    RUNTIME = "runtime"
    DRIVER = "driver"

    @property
    def words(self) -> str:
        """What reports, and run.json's `gpus_by`, call it."""
        return {"cdi": "CDI", "runtime": "the runtime nvidia", "driver": "the engine's device driver"}[self.value]


#: What `where` says of an engine on the machine that the harness runs on, and of another one.
HERE, REMOTE = "this machine", "remote"


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """What run.json says of the backend; empty is what it does not know, or does not have.

    `name` is the registry's, `why` says why it was taken. `engine` is what launched, with its version; `where` is
    HERE or REMOTE, and `system` to `memory_bytes` are of its machine. `registry` is where images are pulled from, with
    a slash at its end; `gpus_by` is the way in which containers get GPUs, and `gpu_groups` are the groups of the system
    (numbers) that they are put into for it. `priority` is by what launches get their CPUs before other work. `more` are
    facts that only a reader looks at, by names of the backend's own; on the disk they stand beside the others.
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
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        """Whether launches ran on another machine than the harness."""
        return self.where == REMOTE

    def told(self) -> dict[str, Any]:
        """Everything that is known, by its name in run.json, JSON values only."""
        known = {name: getattr(self, name) for name in _NAMES}
        return {name: value for name, value in known.items() if value or value is False} | dict(self.more)

    # how the store reads and writes them: flat, and with whatever another version of the harness has put there
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
        found = handler.resolve_ref_schema(handler(schema))
        found["properties"].pop("more", None)  # it may have been here before: two fields share it
        return found | {"additionalProperties": True}


_NAMES = tuple(each.name for each in fields(BackendFacts) if each.name != "more")


def _gathered(stored: Any) -> Any:
    """A stored object with the names that are not known here under `more`; anything else is left to be refused."""
    if not isinstance(stored, Mapping):
        return stored
    known = {name: value for name, value in stored.items() if name in _NAMES}
    return {**known, "more": {name: value for name, value in stored.items() if name not in _NAMES}}


class Stage(StrEnum):
    """How far the preparation of an environment is."""

    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens to an environment while it is prepared. As text it is one line of progress."""

    environment: str
    words: str
    stage: Stage = Stage.WORKING

    def __str__(self) -> str:
        return f"{self.environment}: {self.words}"


#: Called with every step while environments are prepared, by one thread at a time.
Progress = Callable[[Step], object]

#: Called with the name of an environment that is ready while others are still being made, with what hears steps, and
#: with what tells whether others still are.
Meanwhile = Callable[[str, Progress, Callable[[], bool]], object]


@dataclass(frozen=True, slots=True)
class Preparation:
    """What became of the environments that were to be prepared, by name.

    `images` are those that are ready, with what will run: an image's id or a lock's hash. `unavailable` are those that
    this machine cannot have, with the reason.
    """

    images: Mapping[str, str]
    unavailable: Mapping[str, UnavailableError] = field(default_factory=dict)

    def refuse_nothing(self) -> Self:
        """Return self if at least one environment is available.

        Otherwise, raises CannotRunHereError with each reason once.
        """
        errors = self.unavailable.values()
        if errors and not self.images:
            reasons = dict.fromkeys(error.message for error in errors)
            advice = dict.fromkeys(error.advice for error in errors if error.advice)
            raise CannotRunHereError("\n".join(reasons), "\n".join(advice))
        return self


class ImageState(StrEnum):
    """What an engine has of an environment's image."""

    BUILT = "built"
    OUTDATED = "outdated"
    NOT_BUILT = "not built"


@dataclass(frozen=True, slots=True)
class KeptImage:
    """What an engine has of an environment's image: its id, and its size with what it shares with others."""

    state: ImageState
    id: str = ""
    size_bytes: int = 0


class ImageStore(Protocol):
    """Images to and from a registry, and to and from files, for a machine that reaches none."""

    def push(self, requirements: Iterable[Requirement], progress: Progress) -> None:
        """Push environments' images. Raises CannotRunHereError with the registry's own words."""
        ...

    def bases(self, requirements: Iterable[Requirement]) -> list[str]:
        """The references of the images that builds of these environments' images start from, each once."""
        ...

    def obtain(self, reference: str) -> str:
        """The id of an image that the engine has, or pulls now. Raises CannotRunHereError."""
        ...

    def save(self, reference: str, path: Path) -> None:
        """Write an image that the engine has to a file. Raises CannotRunHereError."""
        ...

    def load(self, path: Path, reference: str) -> None:
        """Give the engine the image in a file. Raises CannotRunHereError where the file does not hold it."""
        ...


class Held(Protocol):
    """A launch that has been started, or is about to be; several may be held at a time.

    Several may start at the same time; from then on one goes on at a time.
    """

    def start(self) -> None:
        """Start it, and wait for nothing: `go_on`, without a word, follows it. Others may start meanwhile."""
        ...

    def go_on(self, word: str = "") -> bool:
        """Let it go on until it waits for its next word; False once it has ended, however that happened.

        It starts with the first call, without a word, unless it was started before; later calls each tell it a word
        (docs/dev/worker-protocol.md). Only the time in which it is followed counts for its limit. A launch without
        turns never waits.
        """
        ...

    def move(self, cpus: Collection[int]) -> None:
        """Have it run on these CPUs from now on: all threads of all of its processes.

        Raises CannotRunHereError where they may not run there.
        """
        ...

    def outcome(self) -> Outcome:
        """What came of it, after it has ended."""
        ...


class Backend(Protocol):
    """Executes launches. One object serves one run."""

    name: str

    def facts(self) -> BackendFacts:
        """What run.json says of it; `why` is the caller's."""
        ...

    def prepare(
        self, requirements: Sequence[Requirement], progress: Progress, meanwhile: Meanwhile | None = None
    ) -> Preparation:
        """Make every environment ready. Raises CannotRunHereError where nothing can be prepared at all.

        A backend that makes several at a time calls `meanwhile` in the caller's thread with each that can be launched
        already, as long as others are still being made: that waits for it, and what it raises ends the preparation.
        """
        ...

    def hold(self, requirement: Requirement, job: Job) -> AbstractContextManager[Held]:
        """One launch, which goes on when it is told to. Leaves nothing behind, also when interrupted.

        Never raises for what the scenario does; KeyboardInterrupt passes through.
        """
        ...

    def can_move(self) -> bool:
        """Whether launches run on this machine's CPUs, by its numbers, and can be moved between them."""
        return False

    def launch(self, requirement: Requirement, job: Job) -> Outcome:
        """Execute one launch that takes no turns, and wait for its end."""
        with self.hold(requirement, job) as held:
            while held.go_on():
                pass
            return held.outcome()

    def clean(self, run: str) -> int:
        """Remove what launches of the run (all runs where empty) left behind; returns how many there were."""
        ...

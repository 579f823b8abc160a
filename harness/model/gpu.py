"""GPUs: what a machine has, as NVIDIA's management library tells it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    """A process that uses a GPU. `name` is empty and `memory_bytes` None where the driver does not tell."""

    pid: int
    name: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU. `index` is NVML's and `nvidia-smi`'s; `capability` is the compute capability, such as (8, 6).

    `processes` are those that compute on it; `is_partitioned` says that it is divided into instances (MIG).
    """

    index: int
    uuid: str
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    processes: Sequence[Process] = ()
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class GpuHost:
    """The GPUs of a machine and its driver.

    `driver` is the driver's version (`535.104.05`), `cuda` the newest CUDA that it knows. `absent` says, in a clause,
    why nothing is known where that is so; then the rest is empty. `is_here` is False of another machine than this one:
    what it has, only a launch can tell.
    """

    cards: Sequence[Card] = ()
    driver: str = ""
    cuda: tuple[int, int] | None = None
    absent: str = ""
    is_here: bool = True

    def chosen(self, gpus: Sequence[str]) -> list[Card]:
        """The cards that are meant by indices, UUIDs or `all`; what it does not have is passed over."""
        return [card for card in self.cards if {"all", str(card.index), card.uuid} & set(gpus)]


#: What a run on the CPU knows of GPUs.
CPU_ALONE = GpuHost(absent="the run is on the CPU")

"""GPUs: what a machine has, as NVIDIA's management library tells it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: A GPU's compute capability, such as (8, 6).
Capability = tuple[int, int]


def shown(capability: Capability) -> str:
    """As NVIDIA writes it: 8.6. So it does the versions of CUDA."""
    return f"{capability[0]}.{capability[1]}"


def pci_address(text: str) -> str:
    """A PCI address as CUDA writes it, `0000:3b:00.0`, with small letters; empty where the text is none.

    NVML writes the domain with eight digits (`nvmlPciInfo_t.busId`), `cuDeviceGetPCIBusId` with four.
    """
    found = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", text.strip().lower())
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}.{found[4]}" if found else ""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that uses a GPU. `name` is empty and `memory_bytes` None where the driver does not tell."""

    pid: int
    name: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU. `index` is NVML's and `nvidia-smi`'s; `capability` is its compute capability.

    `processes` are those that compute on it; `is_partitioned` says that it is divided into instances (MIG). `pci` is
    its address as `pci_address` writes it, empty where that is not known.
    """

    index: int
    uuid: str
    name: str
    capability: Capability
    memory_bytes: int
    processes: Sequence[Process] = ()
    is_partitioned: bool = False
    pci: str = ""


@dataclass(frozen=True, slots=True)
class UsedGpu:
    """A GPU that a launch's work was on, as its driver told the launch. `pci`: as a Card's."""

    name: str
    capability: Capability
    pci: str = ""

    def may_be(self, card: Card) -> bool:
        """Whether it is the card, or one of its instances (MIG), which have its address and a name of their own.

        Where one of the two addresses is not known, the same compute capability is enough.
        """
        return self.pci == card.pci if self.pci and card.pci else self.capability == card.capability


def described(gpu: Card | UsedGpu) -> str:
    """Its name, and in brackets what tells it from others of that name."""
    facts = filter(None, [f"compute capability {shown(gpu.capability)}", gpu.pci])
    return f"{gpu.name} ({', '.join(facts)})"


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


@dataclass(frozen=True, slots=True)
class GpuCode:
    """GPU code in a wheel or a library, as compute capabilities: machine code, and PTX that a driver compiles.

    `ptx_alone` are those among `machine` for which some modules of the wheel have PTX and no machine code.
    """

    machine: tuple[Capability, ...]
    ptx: tuple[Capability, ...]
    ptx_alone: tuple[Capability, ...] = ()

    @classmethod
    def parse(cls, text: str, ptx_alone: str = "") -> "GpuCode":
        """The catalogue's `gpu_code` ("sm_35 sm_70 compute_80") and `ptx_alone`, in the words of TensorFlow's build.

        There, `sm_XY` is machine code, and `compute_XY` both machine code and PTX.
        """
        code = _capabilities(text)
        return cls(
            tuple(capability for _, capability in code),
            tuple(capability for kind, capability in code if kind == "compute"),
            tuple(capability for _, capability in _capabilities(ptx_alone)),
        )

    def runs_on(self, capability: Capability) -> bool:
        """Whether some of the machine code runs there: on its own major version, from its own minor version on."""
        return _runs(self.machine, capability)

    def all_runs_on(self, capability: Capability) -> bool:
        """Whether every module has machine code that runs there."""
        return _runs(tuple(own for own in self.machine if own not in self.ptx_alone), capability)

    def compiles_for(self, capability: Capability) -> bool:
        """Whether some of the PTX can be compiled for it: for its own capability and all newer ones."""
        return any(capability >= own for own in self.ptx)


def _capabilities(text: str) -> list[tuple[str, Capability]]:
    return [(kind, (int(major), int(minor))) for kind, major, minor in re.findall(r"\b(sm|compute)_(\d+)(\d)\b", text)]


def _runs(machine: Sequence[Capability], capability: Capability) -> bool:
    major, minor = capability
    return any(major == own_major and minor >= own_minor for own_major, own_minor in machine)


#: What a run on the CPU knows of GPUs.
CPU_ALONE = GpuHost(absent="the run is on the CPU")

"""GPUs: what a machine has, as NVIDIA's management library tells it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

#: What means every GPU, in `--gpus` and in CDI, and what `--gpu` means: one is what a launch measures on.
ALL = "all"
FIRST = "0"

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
class Instance:
    """A part of a GPU that is divided (MIG).

    `name` is its GPU's with the profile at the end (`NVIDIA A100-SXM4-40GB MIG 1g.5gb`). `index` names it in CDI: the
    GPU's index, and its own on that GPU (`0:1`).
    """

    index: str
    uuid: str
    name: str
    memory_bytes: int

    @property
    def profile(self) -> str:
        """Its size in NVIDIA's words: `1g.5gb`."""
        return self.name.rpartition(" MIG ")[2]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a GPU is set and attached, as far as that moves times; None where its driver does not tell.

    What changes by itself is not here: clocks of the moment, and the generation of the PCIe link, which idling lowers.
    `power_limit_watts` lies between `least` and `most`. `sm_clock_most_mhz` and `memory_clock_most_mhz` are what the
    GPU reaches; `application_…` are those asked for computing (`nvidia-smi -ac`). Locked clocks cannot be read.
    `ecc_pending` is what holds after the next start. `compute_mode` is `default`, `exclusive process` or `prohibited`.
    `pcie_generation` is the most that GPU and slot can together, `pcie_generation_most` the GPU alone; widths are in
    lanes. `virtualization` is `none`, `passthrough` or `vGPU`; `display`: a screen is driven by it.
    """

    persistence: bool | None = None
    power_limit_watts: float | None = None
    power_limit_default_watts: float | None = None
    power_limit_least_watts: float | None = None
    power_limit_most_watts: float | None = None
    sm_clock_most_mhz: int | None = None
    memory_clock_most_mhz: int | None = None
    application_sm_clock_mhz: int | None = None
    application_memory_clock_mhz: int | None = None
    ecc: bool | None = None
    ecc_pending: bool | None = None
    compute_mode: str | None = None
    pcie_generation: int | None = None
    pcie_generation_most: int | None = None
    pcie_width: int | None = None
    pcie_width_most: int | None = None
    virtualization: str | None = None
    display: bool | None = None

    def told(self) -> dict[str, Any]:
        """What is known, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU. `index` is NVML's and `nvidia-smi`'s; `capability` is its compute capability.

    `processes` are those that compute on it; `is_partitioned` says that it is divided into `instances` (MIG). `pci` is
    its address as `pci_address` writes it, empty where that is not known.
    """

    index: int
    uuid: str
    name: str
    capability: Capability
    memory_bytes: int
    processes: Sequence[Process] = ()
    is_partitioned: bool = False
    instances: Sequence[Instance] = ()
    pci: str = ""
    settings: Settings = Settings()

    @property
    def names(self) -> set[str]:
        """What it and its instances are called: indices and UUIDs."""
        return {str(self.index), self.uuid, *(name for each in self.instances for name in (each.index, each.uuid))}


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


def differing(first: Any, second: Any, but: Sequence[str] = ()) -> list[tuple[str, Any, Any]]:
    """What differs between the GPUs of two run.json's hosts: what it is called, and both values.

    `GPU 0 power_limit_watts`, 400, 250. Only what both tell counts: older runs tell less. Of a GPU of another model
    the name alone is given. Nothing is said of the keys `but`, and of what moves no time.
    """
    lists = [each if isinstance(each, Sequence) and not isinstance(each, str) else None for each in (first, second)]
    one, other = lists
    if one is None or other is None or len(one) != len(other):
        return [] if first == second else [("gpus", first, second)]
    found = []
    for place, (old, new) in enumerate(zip_longest(one, other)):
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            continue
        names = ["name"] if old.get("name") != new.get("name") else [name for name in old if name in new]
        index = old.get("index", place)
        found += [
            (f"GPU {index} {name}", old.get(name), new.get(name))
            for name in names
            if name not in (*but, "ecc_pending") and old.get(name) != new.get(name)
        ]
    return found


@dataclass(frozen=True, slots=True)
class GpuHost:
    """The GPUs of a machine and its driver.

    `driver` is the driver's version (`535.104.05`), `cuda` the newest CUDA that it knows. `absent` says, in a clause,
    why nothing is known where that is so; then the rest is empty. `is_here` is False of another machine than this one:
    what it has, only a launch can tell. `all_or_none`: its containers cannot be given one of several, as on WSL2.
    """

    cards: Sequence[Card] = ()
    driver: str = ""
    cuda: tuple[int, int] | None = None
    absent: str = ""
    is_here: bool = True
    all_or_none: bool = False

    def chosen(self, gpus: Sequence[str]) -> list[Card]:
        """The cards that are meant by indices, UUIDs or `all`; what it does not have is passed over.

        An instance (MIG) means its card.
        """
        # a driver may not tell of its instances
        meant = {*gpus, *(index for index, colon, _ in (name.partition(":") for name in gpus) if colon)}
        return [card for card in self.cards if ALL in meant or card.names & meant]


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


#: The name that NVIDIA's devices have in CDI, the Container Device Interface.
KIND = "nvidia.com/gpu"
#: What containers may do with a GPU. compute: CUDA; utility: NVML and nvidia-smi. Not graphics, and not video.
CAPABILITIES = ("compute", "utility")

#: What clocks are locked to where no number is given: those that a GPU keeps up within its power limit under any work.
BASE_CLOCK = "base"

#: What a run on the CPU knows of GPUs.
CPU_ALONE = GpuHost(absent="the run is on the CPU")

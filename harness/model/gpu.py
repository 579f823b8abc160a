"""The GPUs of a machine, as reported by NVIDIA's management library (NVML)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

#: ALL: the name for all GPUs, in `--gpus` and in CDI. FIRST: the GPU that `--gpu` selects, because a launch measures on
#: one GPU.
ALL = "all"
FIRST = "0"

#: A GPU's compute capability, such as (8, 6).
Capability = tuple[int, int]


def format_version(capability: Capability) -> str:
    """Format a compute capability or a CUDA version, such as 8.6."""
    return f"{capability[0]}.{capability[1]}"


def format_pci_address(text: str) -> str:
    """Convert a PCI address to CUDA's format in lower case, `0000:3b:00.0`. Return "" if the text isn't an address.

    The domain has eight digits in NVML (`nvmlPciInfo_t.busId`), and four digits in CUDA (`cuDeviceGetPCIBusId`).
    """
    match = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", text.strip().lower())
    return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}.{match[4]}" if match else ""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses a GPU. `name` is empty and `memory_bytes` is None if the driver doesn't report them."""

    pid: int
    name: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a partitioned GPU (MIG).

    `name` is the name of the GPU, followed by the profile (`NVIDIA A100-SXM4-40GB MIG 1g.5gb`). `index` is the name in
    CDI: the index of the GPU, and the index of the instance on that GPU (`0:1`).
    """

    index: str
    uuid: str
    name: str
    memory_bytes: int

    @property
    def profile(self) -> str:
        """NVIDIA's name for the size of the instance, such as `1g.5gb`."""
        return self.name.rpartition(" MIG ")[2]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings and links of a GPU that affect times. A value that the driver doesn't report is None.

    Values that change on their own aren't included: the current clocks, and the current generation of the PCIe link,
    which drops when the GPU is idle. Locked clocks can't be read.

    - `sm_clock_most_mhz`: the highest clock. `application_…`: the application clocks (`nvidia-smi -ac`).
    - `compute_mode`: `default`, `exclusive process` or `prohibited`.
    - `pcie_generation`: the highest generation that both the GPU and its slot support. `pcie_generation_most`: the
      highest generation that the GPU supports.
    - `pcie_width`, `pcie_width_most`: the present and the largest number of lanes.
    - `virtualization`: `none`, `passthrough` or `vGPU`. `display`: whether the GPU drives a screen.
    """

    persistence: bool | None = None
    power_limit_watts: float | None = None
    power_limit_default_watts: float | None = None
    sm_clock_most_mhz: int | None = None
    application_sm_clock_mhz: int | None = None
    application_memory_clock_mhz: int | None = None
    ecc: bool | None = None
    compute_mode: str | None = None
    pcie_generation: int | None = None
    pcie_generation_most: int | None = None
    pcie_width: int | None = None
    pcie_width_most: int | None = None
    virtualization: str | None = None
    display: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the known values by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `index` is the number in NVML and `nvidia-smi`, and `capability` is the compute capability.

    `processes` are the processes that compute on the GPU. `is_partitioned`: the GPU is partitioned into `instances`
    (MIG). `pci` is the address in the format of `format_pci_address`, or empty if it isn't known.
    """

    index: int
    uuid: str
    name: str
    capability: Capability
    memory_bytes: int
    processes: Sequence[GpuProcess] = ()
    is_partitioned: bool = False
    instances: Sequence[Instance] = ()
    pci: str = ""
    settings: Settings = Settings()

    @property
    def names(self) -> set[str]:
        """The indices and UUIDs of the GPU and its instances."""
        return {
            str(self.index),
            self.uuid,
            *(name for instance in self.instances for name in (instance.index, instance.uuid)),
        }


@dataclass(frozen=True, slots=True)
class UsedGpu:
    """A GPU on which a launch ran, as reported by the GPU driver. `pci` has the format of `format_pci_address`."""

    name: str
    capability: Capability
    pci: str = ""

    def may_be(self, gpu: Gpu) -> bool:
        """Return whether this may be the given GPU, or one of its MIG instances, which have the same address.

        If one of the two addresses isn't known, the compute capabilities are compared instead.
        """
        return self.pci == gpu.pci if self.pci and gpu.pci else self.capability == gpu.capability


def describe_gpu(gpu: Gpu | UsedGpu) -> str:
    """Return the name of a GPU, with its compute capability and PCI address in parentheses."""
    facts = filter(None, [f"compute capability {format_version(gpu.capability)}", gpu.pci])
    return f"{gpu.name} ({', '.join(facts)})"


def format_instances(gpu: Gpu) -> str:
    """Format the instances of a divided GPU, with the names for `--gpus`. The text is empty without instances."""
    return ", ".join(f"{instance.index} {instance.profile} ({instance.uuid})" for instance in gpu.instances)


def find_differing(first: Any, second: Any, but: Sequence[str] = ()) -> list[tuple[str, Any, Any]]:
    """Return the differences between the GPUs in the `host` of two run.json files: a name, and both values.

    An example is `GPU 0 power_limit_watts`, 400, 250. Keys that only one file has are ignored, because older runs have
    fewer keys. The keys in `but`, and keys without an effect on times, are ignored too. If the models of a GPU differ,
    only the model names are returned.
    """
    lists = [gpus if isinstance(gpus, Sequence) and not isinstance(gpus, str) else None for gpus in (first, second)]
    first_gpus, second_gpus = lists
    if first_gpus is None or second_gpus is None or len(first_gpus) != len(second_gpus):
        return [] if first == second else [("gpus", first, second)]
    differences = []
    for position, (old, new) in enumerate(zip(first_gpus, second_gpus, strict=True)):
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            continue
        names = ["name"] if old.get("name") != new.get("name") else [name for name in old if name in new]
        index = old.get("index", position)
        differences += [
            (f"GPU {index} {name}", old.get(name), new.get(name))
            for name in names
            if name not in (*but, "ecc_pending") and old.get(name) != new.get(name)
        ]
    return differences


@dataclass(frozen=True, slots=True)
class GpuHost:
    """The GPUs of a machine and its driver.

    `driver` is the driver's version (`535.104.05`), and `cuda` is the newest CUDA version that it supports. If nothing
    is known about the GPUs, `absent` is the reason as a clause, and the other fields are empty, except `mend`. `mend`
    is a sentence with advice if no process can use the GPUs until somebody fixes the driver. `is_here` is False for
    another machine, whose GPUs only a launch can report. `all_or_none`: a container gets all GPUs or none, which is
    normal on WSL2. `needs_packages`: launches have no image, so they get CUDA only from packages of their environment.
    """

    gpus: Sequence[Gpu] = ()
    driver: str = ""
    cuda: tuple[int, int] | None = None
    absent: str = ""
    mend: str = ""
    is_here: bool = True
    all_or_none: bool = False
    needs_packages: bool = False

    def select(self, gpus: Sequence[str]) -> list[Gpu]:
        """Return the GPUs with these indices or UUIDs, or all GPUs for `all`. Unknown names are ignored.

        The name of a MIG instance selects the GPU that contains it.
        """
        # a driver may hide the names of instances
        requested = {*gpus, *(index for index, colon, _ in (name.partition(":") for name in gpus) if colon)}
        return [gpu for gpu in self.gpus if ALL in requested or gpu.names & requested]


@dataclass(frozen=True, slots=True)
class GpuCode:
    """The compute capabilities for which a wheel or a library has GPU code: machine code, or PTX for the driver.

    `ptx_alone` contains the capabilities in `machine` for which some modules of the wheel only have PTX.
    """

    machine: tuple[Capability, ...]
    ptx: tuple[Capability, ...]
    ptx_alone: tuple[Capability, ...] = ()

    @classmethod
    def parse(cls, text: str, ptx_alone: str = "") -> "GpuCode":
        """Parse `gpu_code` ("sm_35 sm_70 compute_80") and `ptx_alone` in the catalog.

        In the notation of TensorFlow's build, `sm_XY` means machine code, and `compute_XY` means machine code and PTX.
        """
        code = _parse_capabilities(text)
        return cls(
            tuple(capability for _, capability in code),
            tuple(capability for kind, capability in code if kind == "compute"),
            tuple(capability for _, capability in _parse_capabilities(ptx_alone)),
        )

    def runs_on(self, capability: Capability) -> bool:
        """Return whether some machine code runs on a GPU of this capability.

        Machine code runs on capabilities with the same major version and the same or a higher minor version.
        """
        major, minor = capability
        return any(major == own_major and minor >= own_minor for own_major, own_minor in self.machine)

    def all_runs_on(self, capability: Capability) -> bool:
        """Return whether every module has machine code that runs on a GPU of this capability."""
        complete = tuple(code for code in self.machine if code not in self.ptx_alone)
        return replace(self, machine=complete).runs_on(capability)

    def compiles_for(self, capability: Capability) -> bool:
        """Return whether some PTX can be compiled for this capability: PTX for the same or a lower capability."""
        return any(capability >= code for code in self.ptx)


def _parse_capabilities(text: str) -> list[tuple[str, Capability]]:
    return [(kind, (int(major), int(minor))) for kind, major, minor in re.findall(r"\b(sm|compute)_(\d+)(\d)\b", text)]


#: The name of NVIDIA's devices in CDI, the Container Device Interface.
KIND = "nvidia.com/gpu"
#: The driver capabilities that containers get: CUDA (compute), and NVML and nvidia-smi (utility), but not graphics or
#: video.
CAPABILITIES = ("compute", "utility")

#: The value of `--lock-clocks` for the base clock, which a GPU can keep within its power limit under any load.
BASE_CLOCK = "base"

#: The value for a run on the CPU, which doesn't query GPUs.
CPU_ALONE = GpuHost(absent="the run uses only the CPU")

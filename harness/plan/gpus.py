"""Decides whether an environment runs on a GPU, from the GPU code in its wheel and cuDNN, the GPU, and the driver.

Sources: NVIDIA's "CUDA Compatibility", NVIDIA's compatibility guide for each architecture, for PTX, NVIDIA's assembler
(`bench/gpu_oracle.py`), and, for observed failures, TensorFlow's release notes and issues.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, takewhile

from harness.model.environment import Device, Environment
from harness.model.gpu import Capability, Gpu, GpuCode, GpuHost, format_version
from harness.model.run import Plan

#: The compute capabilities of GPUs in x86-64 machines, from the oldest one for which the catalog has code.
CAPABILITIES: Sequence[Capability] = (
    *((3, 5), (3, 7), (5, 0), (5, 2), (6, 0), (6, 1), (7, 0), (7, 5)),
    *((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0)),
)

AMPERE: Capability = (8, 0)
BLACKWELL: Capability = (10, 0)

#: The first CUDA version whose compilers and libraries support a capability (according to CUDA's release notes). Only
#: versions from the catalog's oldest CUDA 11 on matter. Code for 8.0 also runs on 8.6 and 8.9 with an older CUDA
#: version, but the cuDNN and cuBLAS of that version don't support these GPUs.
_FIRST_CUDA: Mapping[Capability, tuple[int, int]] = {(8, 6): (11, 1), (8, 9): (11, 8)}

#: The oldest driver for a CUDA version (CUDA Toolkit release notes, "minimum required driver version", Linux). Up to
#: CUDA 11.0, each version needs its own driver. From 11.1 on, the first driver of the major version is enough.
_OLDEST_DRIVERS: Mapping[tuple[int, ...], str] = {
    (10, 0): "410.48",
    (10, 1): "418.39",
    (10, 2): "440.33",
    (11, 0): "450.36.06",
    (11,): "450.80.02",
    (12,): "525.60.13",
    (13,): "580.65.06",
}

#: The CUDA version whose drivers first supported a version of PTX (PTX ISA, "Release Notes"), for PTX before 7.0 and
#: after 8.5. In between, both have the same minor version: PTX 8.3 came with CUDA 12.3.
_CUDA_OF_PTX: Mapping[tuple[int, ...], tuple[int, int]] = {
    **{(6, 3): (10, 0), (6, 4): (10, 1), (6, 5): (10, 2)},
    **{(8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9), (9, 0): (13, 0)},
}

#: The first CUDA version that loads and compiles code only when needed (CUDA's programming guide, "Lazy Loading").
_LAZY_LOADING_CUDA = (12, 2)

#: The first release with kernels that TensorFlow's own generator (MLIR) made, some of which only have PTX.
_GENERATED_KERNELS = (2, 8)

#: The names of GPUs that NVIDIA only sells in arm64 machines.
_IN_ARM64 = re.compile(r"\b(GH200|GB10|GB[23]00|Xavier|Orin|Thor)\b")

#: The reason why a release can't run on a GPU without a container, as a clause.
_NO_PACKAGES = "its CUDA is in an image, and without containers, only TensorFlow 2.5 and later releases run on GPUs"


class Support(StrEnum):
    """How an environment runs on a GPU, best first."""

    NATIVE = "native"
    PARTLY = "native, but some kernels are compiled at first use"
    OLDER = "native, but its CUDA is older than the GPU"
    UNREAD = "not known: its GPU code was not read"
    LAZY = "compiled at first use"
    COMPILED = "compiled at first start"
    CANNOT = "cannot run here"


@dataclass(frozen=True, slots=True)
class Fit:
    """How an environment runs on a GPU. If it isn't native, `reason` is a clause, and `advice` is a sentence.

    If `advice` is empty, only another environment or another GPU helps.
    """

    support: Support
    reason: str = ""
    advice: str = ""

    @property
    def is_impossible(self) -> bool:
        """Whether the environment can't run on the GPU at all."""
        return self.support is Support.CANNOT

    @property
    def is_native(self) -> bool:
        """Whether the environment starts at once. Some kernels may still be compiled when they are first needed."""
        return self.support in {Support.NATIVE, Support.PARTLY, Support.OLDER}

    @property
    def effort(self) -> int:
        """0 if the environment runs well on the GPU; higher numbers are worse."""
        return 0 if self.support in {Support.NATIVE, Support.PARTLY} else self.rank

    @property
    def rank(self) -> int:
        """The rank of the support; lower is better."""
        return list(Support).index(self.support)


def judge(
    environment: Environment, capability: Capability, driver_cuda: tuple[int, int] | None = None, driver: str = ""
) -> Fit:
    """Return how the environment runs on a GPU of this compute capability.

    `driver` is the driver's version (`535.104.05`), and `driver_cuda` is the newest CUDA version that the driver
    supports. If they are empty or None, the driver isn't checked. A newer driver never makes the result worse.
    """
    reason = _explain_no_code(environment, capability) or _explain_no_cudnn(environment, capability)
    if reason and not (environment.is_unread and code_of(environment).machine):
        return Fit(Support.CANNOT, reason)
    oldest, numbers = minimum_driver(environment), _parse_version(driver)
    # a version without numbers doesn't count as older
    if oldest and numbers and numbers < _parse_version(oldest):
        cuda = f"CUDA {environment.cuda} needs the driver {oldest} or newer, but this machine has {driver}"
        return Fit(Support.CANNOT, cuda, f"Update the driver to {oldest} or newer.")
    if reason:
        return Fit(
            Support.UNREAD,
            f"{environment.exact} is newer than the catalog, whose newest release can't run here: {reason}",
            "Before the first launch, the run reads the GPU code in this wheel. If the wheel can't run on the GPU, the "
            "run doesn't launch it.",
        )
    if _is_older(environment, capability):
        return Fit(
            Support.OLDER,
            f"CUDA {environment.cuda} and cuDNN {environment.cudnn} in its image are older than GPUs of compute "
            f"capability {format_version(capability)}. On such GPUs, cuDNN failed with "
            "CUDNN_STATUS_INTERNAL_ERROR (tensorflow issues 44969, 45574)",
            "If a launch fails with an error of cuDNN, use tf2.5 or a newer release.",
        )
    if not code_of(environment).all_runs_on(capability):
        return _judge_compiled(environment, capability, driver_cuda)
    return _judge_native(environment, capability, driver_cuda)


def fit(environment: Environment, gpus: Sequence[Gpu], host: GpuHost) -> Fit:
    """Return how an environment runs if every launch gets all of these GPUs: the worst result of a single GPU.

    If nothing is known about the machine's GPUs, the result is native.
    """
    in_arm64 = next((gpu.name for gpu in gpus if _IN_ARM64.search(gpu.name)), "")
    if in_arm64:
        return Fit(Support.CANNOT, f"{in_arm64} is part of an arm64 machine, and this environment is for x86-64")
    fits = [] if host.absent else [judge(environment, gpu.capability, host.cuda, host.driver) for gpu in gpus]
    worst = max(fits, key=lambda card_fit: card_fit.rank, default=Fit(Support.NATIVE))
    if not can_try(environment, host) and not worst.is_impossible:
        return Fit(Support.CANNOT, _NO_PACKAGES, "Measure this environment in containers, with Docker Engine.")
    return worst


def can_try(environment: Environment, host: GpuHost) -> bool:
    """Return whether a launch of the environment would have CUDA on this machine. Its GPUs don't matter."""
    return environment.has_packaged_cuda or not host.needs_packages


def find_first_starts(plan: Plan) -> list[str]:
    """Return the environments whose GPU code the driver compiles at the first start, in the order of the plan.

    Environments whose code is loaded lazily aren't included, because the driver compiles such code in parts.
    """
    on_gpu = [cell for cell in plan.cells if cell.device is Device.GPU]
    eager = [cell.environment for cell in on_gpu if cell.axes.get("cuda_loading") != "lazy"]
    return [name for name in dict.fromkeys(eager) if plan.compiled.get(name) == Support.COMPILED]


def find_lazy_starts(plan: Plan) -> list[str]:
    """Return the environments whose GPU code the driver compiles in parts, when they are first needed."""
    whole = find_first_starts(plan)
    ways = {Support.LAZY, Support.COMPILED}
    return [name for name, way in plan.compiled.items() if way in ways and name not in whole]


def _explain_no_code(environment: Environment, capability: Capability) -> str:
    """Return why the GPU code can't run with any driver, as a clause, or an empty text if it may run."""
    code, target = code_of(environment), f"compute capability {format_version(capability)}"
    if not code.machine:
        return "the catalog lists no GPU code for it"
    if code.runs_on(capability):
        return ""
    if _parse_version(environment.cuda) < (11,) and capability >= AMPERE:
        # cuBLAS and cuDNN in CUDA 10 have no code for these GPUs either. TensorFlow 2.3's release notes mention "over
        # 30 minutes" for TensorFlow's own code; for 1.14 on an RTX 3090, tensorflow issue 44200 mentions 30 to 35
        return (
            f"CUDA {environment.cuda} is older than GPUs of {target}. On such GPUs, releases took half an hour "
            "to start, stopped responding, or computed wrong results"
        )
    if capability >= BLACKWELL and code.compiles_for(capability):
        return _explain_blackwell(environment, capability)
    if code.compiles_for(capability):
        return ""
    return f"it has no code for {target}, only for {_list_machine_code(code)}"


def _explain_no_cudnn(environment: Environment, capability: Capability) -> str:
    """Return why the image's cuDNN doesn't run on the GPU, as a clause, or an empty text if it runs or isn't known.

    PTX doesn't count: cuDNN only has PTX for its newest capability, for GPUs that are newer than all of its code.
    """
    code = GpuCode.parse(environment.cudnn_code)
    if not code.machine or code.runs_on(capability):
        return ""
    return (
        f"the cuDNN in its image has no code for compute capability {format_version(capability)}, only for "
        f"{_list_machine_code(code)}"
    )


def _list_machine_code(code: GpuCode) -> str:
    return ", ".join(dict.fromkeys(map(format_version, code.machine)))


def code_of(environment: Environment) -> GpuCode:
    """Return the GPU code in the environment's wheel."""
    return GpuCode.parse(environment.gpu_code, environment.ptx_alone)


def _explain_blackwell(environment: Environment, capability: Capability) -> str:
    """Return why an environment without code for a Blackwell GPU (or a newer one) doesn't run on it, as a clause."""
    code = f"it has no code for compute capability {format_version(capability)}"
    if environment.release < (2, 16):
        cuda_reason = f"{code}, and the libraries of CUDA {environment.cuda} are older than this GPU"
        return _explain_no_cudnn(environment, capability) or cuda_reason
    target = environment.ptx_alone.rpartition(" ")[2]
    if target.endswith("a"):
        return (
            f"{code}, and some of its kernels only have PTX for {target}, which no driver can compile for newer GPUs "
            "(CUDA_ERROR_INVALID_PTX, tensorflow issues 97387, 99592, 101746)"
        )
    return (
        f"{code}. The driver can compile TensorFlow's kernels, but XLA ends the process, because XLA creates PTX 8.5, "
        "which has no such GPU (tensorflow issue 111958)"
    )


def _is_older(environment: Environment, capability: Capability) -> bool:
    """Return whether CUDA in an environment's image is older than the GPU. CUDA in packages is new enough."""
    return bool(environment.cuda_image) and _parse_version(environment.cuda)[:2] < _FIRST_CUDA.get(capability, ())


def _judge_native(environment: Environment, capability: Capability, driver_cuda: tuple[int, int] | None) -> Fit:
    """Return native, or not known if nobody read the code in NVIDIA's image, and some kernels may only have PTX."""
    code, cuda = code_of(environment), _parse_version(environment.cuda)[:2]
    without_ptx = GpuCode(tuple(entry for entry in code.machine if entry not in code.ptx), ())
    is_unread = bool(environment.gpu_image) and environment.release >= _GENERATED_KERNELS
    if not is_unread or without_ptx.runs_on(capability) or driver_cuda is None or driver_cuda >= cuda:
        return Fit(Support.NATIVE)
    return Fit(
        Support.UNREAD,
        "the GPU code in its image was not read. If some kernels have no code for compute capability "
        f"{format_version(capability)}, the driver, which supports only CUDA {format_version(driver_cuda)}, may be too "
        "old to compile them",
        f"To be sure, update the driver to a version that supports CUDA {environment.cuda}.",
    )


def _judge_compiled(environment: Environment, capability: Capability, driver_cuda: tuple[int, int] | None) -> Fit:
    target = f"compute capability {format_version(capability)}"
    if code_of(environment).runs_on(capability):
        gap, ptx_cuda = f"some of its kernels have no code for {target}", _find_cuda_of_ptx(environment.ptx_alone)
    else:
        gap, ptx_cuda = f"it has no code for {target}", _parse_version(environment.cuda)[:2]
    if driver_cuda is not None and driver_cuda < ptx_cuda:
        # drivers of a major version run its machine code, but PTX needs a driver that supports the PTX's CUDA version
        cuda = format_version((ptx_cuda[0], ptx_cuda[1]))
        limit = f"the driver supports only CUDA {format_version(driver_cuda)}"
        return Fit(
            Support.CANNOT,
            f"{gap}, and {limit}, which is too old to compile the code of CUDA {cuda}",
            f"Update the driver to a version that supports CUDA {cuda} (`nvidia-smi` shows the CUDA version of a "
            f"driver).",
        )
    if code_of(environment).runs_on(capability):
        return Fit(
            Support.PARTLY,
            f"{gap}: the driver compiles each of these kernels when it is first needed",
            "You don't have to do anything: the compiled code is saved.",
        )
    support, parts = Support.COMPILED, "all GPU code at the first start, for 30 minutes or longer"
    if _parse_version(environment.cuda)[:2] >= _LAZY_LOADING_CUDA:
        support, parts = Support.LAZY, "each part when it is first needed, which takes minutes"
    advice = "Let the first launch finish. The compiled code is saved, so later launches start fast."
    return Fit(support, f"{gap}: the driver compiles {parts}", advice)


def _find_cuda_of_ptx(ptx_alone: str) -> tuple[int, ...]:
    """Return the CUDA version whose drivers first supported the PTX in `ptx_alone`, or () if it has no version."""
    version = _parse_version(ptx_alone.partition(" of PTX ")[2].partition(" ")[0])
    major, minor = version or (0, 0)
    return _CUDA_OF_PTX.get(version, (major + 4, minor) if version else ())


def minimum_driver(environment: Environment) -> str:
    """Return the oldest driver for the environment's CUDA version, or an empty text if it isn't known."""
    cuda = _parse_version(environment.cuda)
    return _OLDEST_DRIVERS.get(cuda[:2]) or _OLDEST_DRIVERS.get(cuda[:1], "")


def describe(environment: Environment) -> str:
    """Return the compute capabilities on which the environment runs: `3.5-8.9, compiled 9.0`; empty without GPU code.

    If the driver only compiles some kernels at first use, the capability counts as native.
    """

    def get_support(capability: Capability) -> Support:
        own_fit = judge(environment, capability)
        return Support.NATIVE if own_fit.is_native else own_fit.support

    spans: dict[Support, list[str]] = {kind: [] for kind in Support}
    for support, run in groupby(CAPABILITIES, get_support):
        members = [format_version(capability) for capability in run]
        spans[support].append("-".join(dict.fromkeys([members[0], members[-1]])))
    compiled = [*spans[Support.LAZY], *spans[Support.COMPILED]]
    return ", ".join([*spans[Support.NATIVE], *(["compiled " + ", ".join(compiled)] if compiled else [])])


def _parse_version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: `2.22.0.dev2026` is (2, 22, 0)."""
    return tuple(int(part) for part in takewhile(str.isdecimal, text.split(".")))

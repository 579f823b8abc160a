"""Checks of stored launches: times, energy and results that only a real GPU can have.

`python -m bench.gpu_check.checks physics FOLDER` checks the runs in a folder, also in an unpacked bundle. `right` and
`starts` are the other checks. Each prints its findings as sentences. The exit code is 1 if one failed, and 4 if nothing
could be checked.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.model.errors import Exit, HarnessError
from harness.model.gpu import Capability, format_version
from harness.model.launch import Launch, Role, Status
from harness.plan.gpus import AMPERE
from harness.store.folder import RunFolder

#: The start of the lines that gpu-check shows as the result of a step.
RESULT = "gpu-check: "

#: The name of products.py as a scenario.
PRODUCTS = "products"

#: Float32 operations per multiprocessor and clock: two for each multiply-add unit (CUDA programming guide, "Arithmetic
#: Instructions"). TF32 operations on tensor cores, without sparsity, of the fastest GPU with that capability (NVIDIA's
#: whitepapers of A100, GA102, AD102, H100 and Blackwell). GeForce GPUs of 8.6, 8.9 and 12.0 reach half of these.
FLOATS: Mapping[Capability, int] = {
    **{(3, 5): 384, (3, 7): 384, (5, 0): 256, (5, 2): 256, (6, 0): 128, (6, 1): 256, (7, 0): 128, (7, 5): 128},
    **{(8, 0): 128, (8, 6): 256, (8, 9): 256, (9, 0): 256, (10, 0): 256, (10, 3): 256, (12, 0): 256},
}
TF32S: Mapping[Capability, int] = {
    **{(8, 0): 1024, (8, 6): 512, (8, 9): 512, (9, 0): 2048, (10, 0): 4096, (10, 3): 4096, (12, 0): 512}
}

#: The largest relative difference between a time and the time that is linear in the number of calls.
LINEAR = 0.2
#: Bounds of the operations per second, as shares of the peak. The clock is a mean of readings.
SLOWEST, FASTEST = 0.05, 1.05
#: The largest relative difference between the energy counter, and power times seconds: power sensors of consumer GPUs
#: deviate by 5 %, and short windows have inexact ends (Yang and others, arXiv 2312.02741).
ENERGY = 0.2
#: The lowest ratio of times without and with TF32. The first is for GPUs whose TF32 peak is at least four times as high
#: as the float32 peak. On the others, TF32 may be as slow as float32.
QUICKER, NO_SLOWER = 1.5, 0.9

#: The largest difference between a GPU and a CPU, relative to the largest element of a result. In float32, sums have
#: another order, and cuDNN transforms convolutions (Winograd). TF32 has 10 bits of fraction instead of 23.
FLOAT32_ERRORS: Mapping[str, float] = {"product": 1e-5, "convolution": 1e-4, "softmax": 1e-5}
TF32_ERROR = 5e-3

#: The phases of a launch that depend on the number of steps, and not on the start.
_LATER = {"warm up", "steady state"}
#: Compiled code that a second launch may add, in bytes, as XLA's kernels are compiled in a different order.
_MORE_CODE = 2**20


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: whether it passed (None if the check wasn't possible), and a sentence."""

    passed: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Product:
    """A measured launch of products.py: `calls` products of matrices with `side` rows took `seconds` per step.

    `multiprocessors` and `clock_mhz` belong to the GPU, and the other numbers to the timed part of the launch. Unknown
    numbers are None.
    """

    calls: int
    side: int
    tf32: bool
    seconds: float
    capability: Capability | None = None
    multiprocessors: int | None = None
    clock_mhz: float | None = None
    timed_seconds: float | None = None
    watts: float | None = None
    joules: float | None = None

    @property
    def rate(self) -> float:
        """The floating-point operations per second."""
        return 2 * self.side**3 * self.calls / self.seconds

    @property
    def peak(self) -> float | None:
        """The peak of the GPU in operations per second, or None if it isn't known."""
        per_clock = (TF32S if self.tf32 else FLOATS).get(self.capability or (0, 0))
        if per_clock is None or not self.multiprocessors or not self.clock_mhz:
            return None
        return self.multiprocessors * per_clock * self.clock_mhz * 1e6

    @property
    def numbers(self) -> str:
        """The name of the number type."""
        return "TF32" if self.tf32 else "float32"


def read_product(launch: Launch) -> Product:
    """Return the product that a launch of products.py measured."""
    device, resources = launch.observations.get("device") or {}, launch.resources
    # the driver reports the highest clock of its own specification, which the GPU may exceed
    clock = resources.get("gpu_sm_clock_mhz") or device.get("clock_khz", 0) / 1e3
    return Product(
        calls=int(launch.cell.axes["calls"]),
        side=int(launch.cell.axes["side"]),
        tf32=_has_tf32(launch),
        seconds=launch.mean,
        capability=launch.gpus[0].capability if launch.gpus else None,
        multiprocessors=device.get("multiprocessors"),
        clock_mhz=clock or None,
        timed_seconds=resources.get("steady_seconds"),
        watts=resources.get("gpu_power_watts") if resources.get("gpu_steady") else None,
        joules=resources.get("gpu_energy_joules"),
    )


def _has_tf32(launch: Launch) -> bool:
    settings = launch.observations.get("settings") or {}
    return bool(settings.get("tf32") == "on")


def check_linear(products: Sequence[Product]) -> list[Finding]:
    """Check that the time is proportional to the number of products: a sample waits for the GPU."""
    return [
        _linear(few, many)
        for group in _group(products, lambda product: product.tf32)
        for few, many in pairwise(sorted(group, key=lambda product: product.calls))
        if many.calls > few.calls
    ]


def _linear(few: Product, many: Product) -> Finding:
    expected, ratio = many.calls / few.calls, many.seconds / few.seconds
    sentence = (
        f"{many.calls} products ({many.numbers}) take {ratio:.2f} times as long as {few.calls} "
        f"({many.seconds * 1e3:.4g} ms, {few.seconds * 1e3:.4g} ms)"
    )
    if abs(ratio / expected - 1) <= LINEAR:
        return Finding(True, f"{sentence}.")
    return Finding(False, f"{sentence}, not {expected:g} times: the samples may not wait for the GPU.")


def check_rate(products: Sequence[Product]) -> list[Finding]:
    """Check the operations per second against the peak of the GPU, for the steps with the most products."""
    return [_rate(max(group, key=lambda product: product.calls)) for group in _group(products, lambda one: one.tf32)]


def _rate(product: Product) -> Finding:
    speed = f"{product.rate / 1e12:.4g} TFLOP/s in {product.numbers}"
    if product.peak is None:
        where = f"compute capability {format_version(product.capability)}" if product.capability else "this GPU"
        return Finding(None, f"{speed}. The peak of {where} isn't known.")
    share = product.rate / product.peak
    sentence = (
        f"{speed} are {share:.1%} of the peak of {product.multiprocessors} multiprocessors at "
        f"{product.clock_mhz:.0f} MHz"
    )
    if share > FASTEST:
        return Finding(False, f"{sentence}, which is impossible: the times or the clocks are wrong.")
    if share < SLOWEST:
        return Finding(False, f"{sentence}, which is too slow for a GPU.")
    return Finding(True, f"{sentence}.")


def check_energy(products: Sequence[Product]) -> list[Finding]:
    """Check that the energy is the mean power times the duration, for the longest timed part."""
    readings = [product for product in products if product.watts and product.timed_seconds]
    if not readings:
        return [Finding(None, "The GPU reported no power.")]
    product = max(readings, key=lambda reading: (reading.joules is not None, reading.timed_seconds))
    power = f"{product.watts:.1f} W × {product.timed_seconds:.2f} s"
    if product.joules is None:
        return [Finding(None, f"The GPU reported no energy beside {power}. GPUs before Volta have no counter.")]
    expected = product.watts * product.timed_seconds
    sentence = f"The energy counter shows {product.joules:.1f} J, and {power} are {expected:.1f} J"
    if abs(product.joules - expected) <= ENERGY * expected:
        return [Finding(True, f"{sentence}.")]
    return [Finding(False, f"{sentence}: the readings disagree.")]


def check_tf32(products: Sequence[Product]) -> list[Finding]:
    """Compare the times with and without TF32."""
    capability = next((product.capability for product in products if product.capability), None)
    if capability and capability < AMPERE:
        return [Finding(None, f"GPUs of compute capability {format_version(capability)} have no TF32.")]
    pairs = [
        (product, other)
        for product in products
        for other in products
        if product.tf32 and not other.tf32 and product.calls == other.calls
    ]
    if not pairs or capability is None:
        return [Finding(None, "Products weren't measured both with and without TF32.")]
    on, off = max(pairs, key=lambda pair: pair[0].calls)
    ratio = off.seconds / on.seconds
    is_full = TF32S.get(capability, 0) >= 4 * FLOATS.get(capability, 1)
    least = QUICKER if is_full else NO_SLOWER
    sentence = f"With TF32, products are {ratio:.2f} times as fast as without"
    if ratio >= least:
        return [Finding(True, f"{sentence}.")]
    return [Finding(False, f"{sentence}, but at least {least} times is expected: the setting may have no effect.")]


def check_physics(launches: Iterable[Launch]) -> list[Finding]:
    """Check the times and the energy of all products."""
    products = [read_product(launch) for launch in measured(launches)]
    if not products:
        return [Finding(None, "No launch of the products was measured.")]
    return [finding for check in PHYSICS for finding in check(products)]


#: The checks of products.
PHYSICS: Sequence[Callable[[Sequence[Product]], list[Finding]]] = (check_linear, check_rate, check_energy, check_tf32)


def check_right(launches: Iterable[Launch]) -> list[Finding]:
    """Compare the results of the GPU with the results of the CPU, with and without TF32."""
    by_numbers = {_has_tf32(launch): launch for launch in measured(launches)}
    if not by_numbers:
        return [Finding(None, "No launch of the products was measured.")]
    return [finding for tf32, launch in sorted(by_numbers.items()) for finding in _right(launch, tf32=tf32)]


def _right(launch: Launch, *, tf32: bool) -> list[Finding]:
    corner, outputs = launch.fingerprint.get("corner"), launch.observations.get("outputs") or {}
    findings = [] if corner == 1.0 else [Finding(False, f"The product of the large matrices is {corner}, not 1.")]
    if not {"gpu", "cpu"} <= set(outputs):
        return [*findings, Finding(None, "The launch has no results of both GPU and CPU.")]
    errors = {name: relative_error(outputs["gpu"][name], values) for name, values in outputs["cpu"].items()}
    limits = {name: TF32_ERROR if tf32 else FLOAT32_ERRORS[name] for name in errors}
    listed = ", ".join(f"{name} {error:.1g}" for name, error in errors.items())
    sentence = f"Largest relative differences to the CPU {'with' if tf32 else 'without'} TF32: {listed}"
    wrong = [name for name, error in errors.items() if not error <= limits[name]]
    if wrong:
        bounds = ", ".join(f"{name} {limits[name]:.1g}" for name in wrong)
        return [*findings, Finding(False, f"{sentence}. Expected at most: {bounds}.")]
    if tf32 and errors["product"] <= FLOAT32_ERRORS["product"]:
        return [*findings, Finding(False, f"{sentence}. TF32 has fewer digits, so it may not have been used.")]
    return [*findings, Finding(True, f"{sentence}.")]


def relative_error(values: Sequence[float], expected: Sequence[float]) -> float:
    """Return the largest difference, relative to the largest expected value; infinite for different lengths."""
    if len(values) != len(expected) or not expected:
        return float("inf")
    scale = max(map(abs, expected))
    largest = max(abs(value - own) for value, own in zip(values, expected, strict=True))
    return largest / scale if scale else largest


def check_starts(launches: Iterable[Launch]) -> list[Finding]:
    """Compare the first launch, which found no compiled code, with the next launch of the same environment."""
    groups = _group(
        (launch for launch in launches if launch.status is Status.OK and "ptx_cache_bytes" in launch.resources),
        lambda launch: (launch.cell.environment, launch.cell.scenario, launch.cell.axes.get("cuda_loading", "")),
    )
    pairs = [
        (cold, warm)
        for group in groups
        for cold, warm in pairwise(sorted(group, key=lambda launch: launch.started))
        if not cold.resources["ptx_cache_bytes"]
    ]
    if not pairs:
        return [Finding(None, "No environment was launched both without and with compiled code.")]
    return [_starts(cold, warm) for cold, warm in pairs]


def _starts(cold: Launch, warm: Launch) -> Finding:
    filled, more = (launch.resources.get("ptx_cache_filled_bytes", 0) for launch in (cold, warm))
    loading = cold.cell.axes.get("cuda_loading")
    name = f"{cold.cell.environment}{f' with cuda_loading={loading}' if loading else ''}"
    sentence = (
        f"{name}: the first launch of {cold.cell.scenario} started in {start_seconds(cold):.1f} s and saved "
        f"{filled / 1e6:.1f} MB of compiled code, and the next one started in {start_seconds(warm):.1f} s"
    )
    if more > max(_MORE_CODE, 0.1 * filled):
        return Finding(False, f"{sentence}, but compiled {more / 1e6:.1f} MB again.")
    return Finding(True, f"{sentence}.")


def start_seconds(launch: Launch) -> float:
    """Return the seconds before the timed steps."""
    return sum(seconds for name, seconds in launch.phases.items() if name not in _LATER)


def measured(launches: Iterable[Launch]) -> list[Launch]:
    """Return the last successful launch of each cell of products.py whose times count."""
    last: dict[Any, Launch] = {}
    for launch in launches:
        is_counted = launch.role is Role.MEASURE and launch.status is Status.OK and launch.samples
        if is_counted and launch.cell.scenario == PRODUCTS and {"side", "calls"} <= set(launch.cell.axes):
            last[launch.cell.key] = launch
    return list(last.values())


def _group(entries: Iterable[Any], key: Callable[[Any], Any]) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    return list(groups.values())


def read_launches(folder: Path) -> list[Launch]:
    """Return the launches of all runs below a folder. Runs that can't be read have none."""
    launches: list[Launch] = []
    for path in sorted(folder.rglob("launches.jsonl")):
        try:
            launches += RunFolder.open(path.parent).read_launches()
        except HarnessError as error:
            print(f"{path.parent.name}: {error}", file=sys.stderr)
    return launches


CHECKS: Mapping[str, Callable[[Iterable[Launch]], list[Finding]]] = {
    "physics": check_physics,
    "right": check_right,
    "starts": check_starts,
}


def main() -> int:
    """Check the runs in a folder, and print the findings. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    return report(CHECKS[arguments.check](read_launches(arguments.folder)))


def report(findings: Sequence[Finding]) -> int:
    """Print the findings, and return the exit code: 1 if one failed, and 4 if nothing could be checked."""
    for finding in findings:
        print(f"{RESULT}{finding.sentence}")
    if any(finding.passed is False for finding in findings):
        return Exit.CELLS_FAILED
    return Exit.OK if any(finding.passed for finding in findings) else Exit.CANNOT_RUN_HERE


if __name__ == "__main__":
    sys.exit(main())

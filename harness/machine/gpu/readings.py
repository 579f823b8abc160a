"""What NVML tells of GPUs at one instant, and the numbers that many such instants make."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.machine.gpu.nvml import asked

#: Why a GPU lowers its clocks, by NVML's bits (nvmlClocksThrottleReasons). The others are no slowing down: it is idle,
#: its clocks are set so, or it keeps pace with another.
REASONS: Mapping[str, int] = {
    "power_cap": 0x04,
    "hw_slowdown": 0x08,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "power_brake": 0x80,
}

#: Makes one number of several.
Summary = Callable[[Sequence[float]], float]

#: Each number's name, what it is made of, and how: over the GPUs at one instant, then over the instants.
_NUMBERS: Sequence[tuple[str, str, Summary, Summary]] = (
    ("gpu_utilization_percent", "utilization", fmean, fmean),
    ("gpu_memory_utilization_percent", "memory_utilization", fmean, fmean),
    ("gpu_memory_used_bytes", "memory_used", sum, max),
    ("gpu_sm_clock_mhz", "sm_clock", fmean, fmean),
    ("gpu_sm_clock_least_mhz", "sm_clock", min, min),
    ("gpu_memory_clock_mhz", "memory_clock", fmean, fmean),
    ("gpu_temperature_celsius", "temperature", max, max),
    ("gpu_power_watts", "power", sum, fmean),
    ("gpu_power_most_watts", "power", sum, max),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One GPU: percent of the time in which a kernel ran, and its memory was used; bytes; MHz; °C; watts; NVML's bits.

    None where this driver or this GPU does not tell.
    """

    utilization: float | None = None
    memory_utilization: float | None = None
    memory_used: float | None = None
    sm_clock: float | None = None
    memory_clock: float | None = None
    temperature: float | None = None
    power: float | None = None
    reasons: int | None = None


@dataclass(frozen=True, slots=True)
class Instant:
    """All the GPUs of a launch, at a time in seconds since 1970."""

    time: float
    cards: Sequence[Reading]


def read(library: Any, handle: Any) -> Reading:
    """What the library tells of one GPU now."""
    use = asked(library, library.nvmlDeviceGetUtilizationRates, handle)
    memory = asked(library, library.nvmlDeviceGetMemoryInfo, handle)
    milliwatts = asked(library, library.nvmlDeviceGetPowerUsage, handle)
    return Reading(
        utilization=None if use is None else use.gpu,
        memory_utilization=None if use is None else use.memory,
        memory_used=None if memory is None else memory.used,
        sm_clock=asked(library, library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_SM),
        memory_clock=asked(library, library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_MEM),
        temperature=asked(library, library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU),
        power=None if milliwatts is None else milliwatts / 1000,
        reasons=asked(library, library.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
    )


def numbers(instants: Sequence[Instant], window: tuple[float, float] | None) -> dict[str, float]:
    """The instants' numbers by the names of docs/contracts.md; what no instant tells is left out.

    `window` is the steady state, in seconds since 1970. Where it is None, or no instant lies in it, the numbers are of
    all the instants, and `gpu_steady` is 0. Several GPUs make one: memory and power are summed, the hottest counts,
    and an instant is throttled where one of them is.
    """
    inside = [each for each in instants if window and window[0] <= each.time <= window[1]]
    chosen = inside or instants
    if not chosen:
        return {}
    found = {"gpu_samples": float(len(chosen)), "gpu_steady": float(bool(inside))}
    for name, field, across, over in _NUMBERS:
        values = [value for each in chosen if (value := _across(each, field, across)) is not None]
        if values:
            found[name] = float(over(values))
    return found | _throttled(chosen)


def _across(instant: Instant, field: str, across: Summary) -> float | None:
    values = [value for card in instant.cards if (value := getattr(card, field)) is not None]
    return across(values) if values else None


def _throttled(instants: Sequence[Instant]) -> dict[str, float]:
    """In which share of the instants a GPU was slowed, by reason and, in `gpu_throttled_share`, by heat or supply."""
    told = [[card.reasons for card in each.cards if card.reasons is not None] for each in instants]
    known = [bits for bits in told if bits]
    if not known:
        return {}

    def share(mask: int) -> float:
        return sum(any(bits & mask for bits in cards) for cards in known) / len(known)

    by_reason = {f"gpu_{name}_share": share(bit) for name, bit in REASONS.items()}
    slowed = sum(bit for name, bit in REASONS.items() if name != "power_cap")
    return {"gpu_throttled_share": share(slowed), **{name: value for name, value in by_reason.items() if value}}

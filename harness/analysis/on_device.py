"""Time on the device: the GPU activity that TensorFlow's profiler recorded in the first launches of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.cell_index import Lookup
from harness.model.launch import ON_DEVICE, UNDER_WAY, Launch
from harness.model.scenario import Cell

#: A cell is launch-bound if kernels ran in less than this share of a step.
LAUNCH_BOUND = 0.5


@dataclass(frozen=True, slots=True)
class OnDevice:
    """The GPU activity in a cell's steps, as recorded by TensorFlow's profiler (docs/dev/worker-protocol.md).

    `kernels` is the share of the time in which a kernel ran on a GPU. `copies` is the share in which only copies ran.
    `launching` is the share in which the CPU launched kernels or copies. `kernel_count` and `copy_count` are the
    numbers of kernels and copies per step. Values that the profiler doesn't provide are None. `slower` is the duration
    of a step with the profiler divided by the duration without it.
    """

    kernels: float
    copies: float
    launching: float | None
    kernel_count: float | None
    copy_count: float | None
    slower: float

    @property
    def nothing(self) -> float:
        """The share of the time in which neither a kernel nor a copy ran."""
        return max(0.0, 1.0 - self.kernels - self.copies)

    @property
    def is_launch_bound(self) -> bool:
        """Whether kernels run in less than half of a step, both with the profiler and without it.

        The profiler adds time between kernels, so even a step that consists only of kernels may have gaps with the
        profiler. The share without the profiler is computed from the time per step.
        """
        return self.kernels * max(1.0, self.slower) < LAUNCH_BOUND


def collect_recordings(launches: Sequence[Launch]) -> dict[Cell, OnDevice]:
    """Return, by cell, the GPU activity in the first launch that recorded it."""
    by_cell: dict[Cell, OnDevice] = {}
    for launch in launches:
        recording = _read_recording(launch.resources)
        if recording:
            by_cell.setdefault(launch.cell, recording)
    return by_cell


def explain_missing(launches: Sequence[Launch], lookup: Lookup) -> dict[Cell, str]:
    """Return why the GPU activity of a cell with a result is missing, by cell, if a launch recorded the reason."""
    reasons: dict[Cell, str] = {}
    for launch in launches:
        reason = launch.observations.get(ON_DEVICE)
        if launch.ended_under_profiler:
            reason = (
                f"the process ended while the profiler was active ({launch.error}), and the cell was launched again "
                "without the profiler"
            )
        if (
            isinstance(reason, str)
            and reason != UNDER_WAY
            and launch.cell in lookup.numbers
            and not _read_recording(launch.resources)
        ):
            reasons.setdefault(launch.cell, reason)
    return reasons


def _read_recording(resources: Mapping[str, float]) -> OnDevice | None:
    profiled = {
        name.removeprefix("profiled_"): value for name, value in resources.items() if name.startswith("profiled_")
    }
    steps, seconds, plain_seconds, kernel_seconds = (
        profiled.get(name) for name in ("steps", "seconds", "plain_seconds", "kernel_seconds")
    )
    if not (steps and seconds and plain_seconds and kernel_seconds):
        return None

    def divide(name: str, total: float) -> float | None:
        return profiled[name] / total if name in profiled else None

    launching = divide("launch_seconds", seconds)
    return OnDevice(
        kernels=min(1.0, kernel_seconds / seconds),
        copies=min(1.0, profiled.get("copy_seconds", 0.0) / seconds),
        launching=None if launching is None else min(1.0, launching),
        kernel_count=divide("kernels", steps),
        copy_count=divide("copies", steps),
        slower=seconds / plain_seconds,
    )

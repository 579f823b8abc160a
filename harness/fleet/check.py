"""Measures and stores the interference between slots of a machine. Runs need the result to use slots.

The same launches run alternately in one slot alone, and in this slot while all other slots run them too. A number of
slots is safe if the whole interval of the ratio of the two times is below the margin.
"""

import json
import math
import os
import signal
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Annotated

from harness.analysis import rounds
from harness.analysis.quantities import linear
from harness.analysis.statistics import exp_limited
from harness.files import get_data_dir, write_atomically
from harness.machine.lock import hold_machine
from harness.machine.slots import Slot
from harness.model.defaults import MARGIN
from harness.model.errors import CannotRunHereError, DamagedError, explain_unwritable
from harness.model.launch import Launch, Role
from harness.model.numbers import Within
from harness.model.texts import counted
from harness.report import format
from harness.session.listener import Listener
from harness.session.planning.planned import Planned
from harness.session.preparing import prepare
from harness.session.request import Request, options
from harness.session.running import run
from harness.session.slot_plans import divide_into_slots

#: The smallest and the largest number of blocks, and the launches per block. A block runs the work in one slot alone
#: and in all slots.
BLOCKS, MOST_BLOCKS, LAUNCHES = 6, 24, 2


@dataclass(frozen=True, slots=True)
class Interference:
    """The `ratio` of the time with `slots` slots at once to the time of one slot alone, with a 95 % interval."""

    slots: int
    ratio: float
    low: float
    high: float

    def is_safe(self, margin: float) -> bool:
        """Return whether it is established that the interference is below the margin."""
        return self.high < 1.0 + margin

    def is_harmful(self, margin: float) -> bool:
        """Return whether it is established that the interference is above the margin."""
        return self.low > 1.0 + margin

    def is_known(self, margin: float) -> bool:
        """Return whether the blocks so far are enough: harm is established, or the interval is narrow enough.

        An interval is narrow enough if half its width is at most 67 % of the margin. Unless harm is established, only
        the width counts: stopping as soon as slots look safe would accept too many slots.
        """
        return self.is_harmful(margin) or math.log(self.high / self.low) / 2.0 <= math.log1p(margin) * 2.0 / 3.0

    def __str__(self) -> str:
        return f"{self.ratio:.3f}× ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class SlotCheck:
    """The result of a check: the number of slots that are `safe` for a `margin`.

    `tried` are the tested numbers of slots, the largest first. `work` is the launched cell, and `cpus` is the number of
    CPUs of the process.
    """

    safe: Annotated[int, Within(1, 1024)]
    tried: Sequence[Interference]
    margin: float
    work: str
    cpus: int
    when: str


def compute_interference(alone: Sequence[float], busy: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of the times in all slots to the times in one slot, with the limits of its 95 % t interval.

    `alone` and `busy` are the launch means of consecutive blocks in seconds per step, at least two of each. The ratio
    is the geometric mean of their paired ratios.
    """
    logs = [math.log(time_busy) - math.log(time_alone) for time_alone, time_busy in zip(alone, busy, strict=True)]
    mean = linear(logs)
    assert mean
    assert mean.interval, "there are two blocks"
    return exp_limited(mean.value), exp_limited(mean.interval.low), exp_limited(mean.interval.high)


def check(planned: Planned, count: int | None, listener: Listener) -> SlotCheck:
    """Measure how many slots of this machine are safe, and store the result. `count` is the largest number to test.

    If `count` is None, it is the number of slots that the machine has. The work is the first cell of the plan. Raises
    CannotRunHereError if no launch of it has a result.
    """
    planned.refuse_nothing()
    slots = divide_into_slots(planned, count)
    margin, results = planned.plan.margin, list[Interference]()
    with hold_machine():
        pass  # if another run measures, fail now, because otherwise each launch would wait for it
    prepare(planned, listener)
    with ProcessPoolExecutor(len(slots), get_context("spawn")) as pool:
        while len(slots) > 1:
            ratio = _measure_slots(_make_work_plan(planned), slots, listener, pool)
            results.append(ratio)
            listener.say(
                f"Launches in {len(slots)} slots at the same time take {ratio} as long as in one slot alone: "
                f"{_describe_safety(ratio, margin)}."
            )
            if ratio.is_safe(margin):
                break
            slots = divide_into_slots(planned, len(slots) - max(1, len(slots) // 4))
    slot_check = SlotCheck(
        safe=len(slots),
        tried=results,
        margin=margin,
        work=str(planned.plan.groups[0].cells[0]),
        cpus=len(os.sched_getaffinity(0)),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    _save_check(name_slot_kind(planned), slot_check)
    return slot_check


def name_slot_kind(planned: Planned) -> str:
    """Return the kind of slots of a plan, which determines their interference."""
    return "gpu" if planned.plan.limits.gpus else "cpu"


def _describe_safety(ratio: Interference, margin: float) -> str:
    if ratio.is_safe(margin):
        return "safe"
    if ratio.is_harmful(margin):
        return "not safe"
    return "it isn't certain that this is safe. Try again on a machine with less interference (see harness doctor)"


def count_allowed_slots(kind: str, wanted: int | None, margin: float) -> int:
    """Return the number of slots that a run with this margin may use: the requested number, or all safe slots for None.

    Raises CannotRunHereError if more slots are requested than are safe, if their interference wasn't measured, or if
    it isn't certainly below the margin.
    """
    if wanted == 1:
        return 1
    advice = f"harness fleet check{' --gpu' if kind == 'gpu' else ''}{f' --slots {wanted}' if wanted else ''}"
    advice += f" {' '.join(options(Request)['margin'].words(margin))}" if margin != MARGIN else ""
    entry = load_stored().get(kind)
    if entry is None or entry.cpus != len(os.sched_getaffinity(0)):
        raise CannotRunHereError(
            "The interference between slots of this machine has not been measured.", f"To measure it: {advice}"
        )
    count = max(wanted or 0, entry.safe)
    # of the tested numbers of slots, the smallest one that is large enough
    ratio = next((ratio for ratio in reversed(entry.tried) if ratio.slots >= count), None)
    detail = ""
    if ratio:
        detail = f": launches in {ratio.slots} slots at the same time took {ratio} as long as in one slot alone"
    if count > entry.safe:
        raise CannotRunHereError(
            f"{counted(entry.safe, 'slot', 'is')} safe on this machine, and {wanted} were requested{detail} "
            f"({entry.work}, margin {format.share(entry.margin)}, {entry.when}).",
            f"Use --slots auto, or measure again: {advice}",
        )
    if entry.safe > 1 and margin < entry.margin and not (ratio and ratio.is_safe(margin)):
        raise CannotRunHereError(
            f"{counted(entry.safe, 'slot', 'is')} safe on this machine for a margin of {format.share(entry.margin)}, "
            f"but this run has a margin of {format.share(margin)}{detail}.",
            f"Omit --slots or --margin, or measure again: {advice}",
        )
    return wanted or entry.safe


def _save_check(kind: str, slot_check: SlotCheck) -> None:
    checks = {name: asdict(entry) for name, entry in {**load_stored(), kind: slot_check}.items()}
    with explain_unwritable(_get_path()):
        write_atomically(_get_path(), json.dumps(checks, indent=2) + "\n")


def _get_path() -> Path:
    return get_data_dir() / "fleet.json"


def load_stored() -> dict[str, SlotCheck]:
    """Return the stored results by the kind of slots (`cpu`, `gpu`). Raises DamagedError."""
    from pydantic import TypeAdapter

    path = _get_path()
    try:
        return TypeAdapter(dict[str, SlotCheck]).validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CannotRunHereError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise DamagedError(path, "the number of safe slots is missing") from None


def _measure_slots(
    planned: Planned, slots: Sequence[Slot], listener: Listener, pool: ProcessPoolExecutor
) -> Interference:
    """Measure one slot alone and all slots at once, alternately. The order changes from block to block."""
    count, alone, busy = len(slots), list[float](), list[float]()
    ratio = None
    for block in range(MOST_BLOCKS):
        slot_index = block % count
        for is_busy in (False, True) if block % 2 else (True, False):
            launches = _launch_in_slots(pool, planned, slots, range(count) if is_busy else [slot_index])
            (busy if is_busy else alone).append(_compute_mean(launches[slot_index]))
        listener.say(f"{counted(count, 'slot')}, {block + 1} of {BLOCKS} to {MOST_BLOCKS}: {busy[-1] / alone[-1]:.3f}×")
        # stop only after an even number of blocks, so that both orders are equally frequent
        if block + 1 >= BLOCKS and block % 2:
            ratio = Interference(count, *compute_interference(alone, busy))
            if ratio.is_known(planned.plan.margin):
                break
    assert ratio
    return ratio


def _make_work_plan(planned: Planned) -> Planned:
    """Return a plan for a few launches of the first cell."""
    plan, group = planned.plan, planned.plan.groups[0]
    group = replace(group, cells=group.cells[:1], control=None, piloted=False)
    sampling = replace(plan.sampling, warmup_seconds=plan.sampling.warmup_seconds or 0.5, turns=None)
    sampling = replace(sampling, measure_seconds=plan.sampling.measure_seconds or 2.0)
    plan = replace(plan, groups=[group], rounds=LAUNCHES, sampling=sampling, precision=None, budget_seconds=None)
    return replace(planned, plan=replace(plan, unavailable=[]), refused={})


def _compute_mean(launches: Sequence[Launch]) -> float:
    measured = [launch for launch in launches if rounds.has_mean(launch) and launch.role is not Role.PILOT]
    if not measured:
        reason = launches[0].error or launches[0].status.value if launches else "no launch was started"
        raise CannotRunHereError(
            f"The measured cell has no result: {reason}.", "Choose another cell with -s, -a and -e."
        )
    return exp_limited(fmean(math.log(rounds.compute_mean(launch)) for launch in measured))


def _launch_in_slots(
    pool: ProcessPoolExecutor, planned: Planned, slots: Sequence[Slot], slot_indices: Iterable[int]
) -> dict[int, Sequence[Launch]]:
    """Make the launches in some of the slots at the same time, and return the launches of each slot."""
    # a process prints a traceback if Ctrl-C comes while it starts or waits for work
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        futures = {slot_index: pool.submit(_run_in_slot, planned, slots, slot_index) for slot_index in slot_indices}
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return {slot_index: future.result() for slot_index, future in futures.items()}


def _run_in_slot(planned: Planned, slots: Sequence[Slot], slot_index: int) -> Sequence[Launch]:
    """Make the launches of a run in one slot, in a separate process that is pinned to the slot's CPUs."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        with tempfile.TemporaryDirectory() as folder:
            request = replace(planned.request, results=Path(folder))
            return run(replace(planned, request=request), slots=slots, at=slot_index, wait=True).results.launches
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

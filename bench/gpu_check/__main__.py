"""`make gpu-check`: runs everything that needs a GPU, in at most ten minutes, and writes a bundle for an issue.

`make gpu-check ARGS="--gpus 1"` checks a GPU other than the first one, and `--no-engine` checks without containers. The
creation of missing images and environments takes additional time. Each step is recorded, whatever its result. The exit
code is 1 if a step failed, and 4 if there is no GPU.
"""

import argparse
import datetime
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bench.gpu_check.checks import RESULT
from bench.gpu_check.masking import Mask
from bench.gpu_check.plan import HARNESS, ROOT, Plan, Step, find_compiled, find_environments, find_newest, find_refused
from harness import __version__
from harness.backends.docker import gpus
from harness.machine.gpu import selection
from harness.model.errors import CannotRunHereError, Exit, UsageError
from harness.model.gpu import FIRST, Gpu, GpuHost, format_version
from harness.model.texts import counted
from harness.plan.gpus import AMPERE

#: The total number of seconds for all steps, without the creation of images.
BUDGET = 600.0
#: The seconds within which a step must end after it was stopped, as after Ctrl-C.
_GRACE = 30.0
#: The largest number of bytes in a bundle from an output, and from a run's file. GitHub accepts 25 MB. These limits
#: keep a bundle below 10 MB.
_MOST = 1_000_000

_RUN_FILES = ("run.json", "launches.jsonl", "report.md")

PASSED, FAILED, LEFT_OUT = "passed", "failed", "left out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a step: `passed`, `failed` or `left out`, with the reason in words."""

    step: Step
    status: str
    how: str
    output: str = ""


def main() -> int:
    """Check, and write the bundle. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="make gpu-check", description=__doc__)
    parser.add_argument("--gpus", default=FIRST, help="the GPU to check, as in `harness matrix --gpus`")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds to measure CPU noise and to watch GPUs")
    parser.add_argument(
        "--env", default="", help="the environment for single cells (default: the newest release that runs natively)"
    )
    parser.add_argument("--only", default="", help="the names of the steps to run, such as nvml,cdi (default: all)")
    parser.add_argument("--no-engine", action="store_true", help="check without containers, as in a notebook")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="the folder of the bundle")
    arguments = parser.parse_args()
    without = arguments.no_engine
    host = replace(gpus.find_host(), needs_packages=True) if without else gpus.find_host()
    try:
        cards = selection.select_gpus(selection.parse_requested(True, arguments.gpus), host)
        if not cards:
            raise CannotRunHereError(
                f"It needs an NVIDIA GPU and its driver: {host.absent}.", "What is here: harness doctor --gpu"
            )
    except (CannotRunHereError, UsageError) as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return error.exit
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as scratch:
        names = arguments.only.split(",") if arguments.only else []
        plan = Plan(
            environment=arguments.env or find_newest(cards, host),
            which=arguments.gpus,
            seconds=arguments.seconds,
            scratch=Path(scratch),
            refused="" if arguments.env or without else find_refused(cards, host),
            lazy="" if without else find_compiled(cards, host),
            has_tf32=all(card.capability >= AMPERE for card in cards),
            without_engine=without,
        )
        if not without and (not names or {"images", "quick"} & set(names)):
            plan = replace(plan, of_quick=find_environments([*plan.matrix[3:], "--suite", "quick"]))
        steps = [step for step in plan.steps() if not names or step.name in names]
        bundle = arguments.results / f"gpu-check-{_slug(cards[0].name)}-{datetime.date.today():%Y-%m-%d}.zip"
        announce(steps, cards[0], host, bundle)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        outcomes: list[Outcome] = []
        table = ""
        with suppress(KeyboardInterrupt):  # between two steps: the bundle has the earlier steps
            for outcome in run_steps(steps, Path(scratch)):
                outcomes.append(outcome)
                mask, table = Mask(), summary(outcomes, cards[0], host)
                bundle.parent.mkdir(parents=True, exist_ok=True)
                write(bundle, mask.text(table + ends(outcomes)), outcomes, Path(scratch), mask)
    print(f"\n{Mask().text(table)}\n{bundle}: check its contents, and attach it to an issue.")
    return Exit.CELLS_FAILED if any(entry.status == FAILED for entry in outcomes) else Exit.OK


def _interrupt(number: int, frame: object) -> None:
    """Treat a closed terminal or an ended job like Ctrl-C: end the step, and write the bundle."""
    raise KeyboardInterrupt


def announce(steps: Sequence[Step], card: Gpu, host: GpuHost, bundle: Path) -> None:
    """Print the steps and how long they take."""
    minutes = sum(step.about for step in steps if step.counted and not step.left_out) / 60
    print(f"GPU {card.index}: {card.name}, compute capability {format_version(card.capability)}, driver {host.driver}.")
    extra = f"at most {BUDGET / 60:.0f}, and the time to create images or environments"
    print(f"This takes about {counted(math.ceil(minutes), 'minute')}, {extra}:")
    for step in steps:
        needs = f"about {step.about:.0f} s" if step.counted else f"what is missing is downloaded: {step.download}"
        print(f"  {step.name}: " + (f"left out, {step.left_out}" if step.left_out else f"{step.typed} ({needs})"))
    print(f"Each step adds its results to {bundle}. Ctrl-C leaves out the next steps.", flush=True)


def run_steps(steps: Sequence[Step], scratch: Path) -> Iterator[Outcome]:
    """Run the steps one after the other, and print the result of each step when it ends."""
    left, stopped = BUDGET, False
    failed: set[str] = set()
    for number, step in enumerate(steps, start=1):
        begun = time.monotonic()
        if step.left_out:
            outcome = Outcome(step, LEFT_OUT, step.left_out)
        elif stopped:
            outcome = Outcome(step, LEFT_OUT, "stopped by Ctrl-C")
        elif step.after in failed:
            outcome = Outcome(step, LEFT_OUT, f"{step.after} didn't pass: fix what it reports first")
        elif step.counted and left - _GRACE < step.about:
            outcome = Outcome(step, LEFT_OUT, f"{left:.0f} s were left, and it takes about {step.about:.0f}")
        else:
            limit = min(step.limit, left - _GRACE) if step.counted else step.limit
            print(f"[{number}/{len(steps)}] {step.name}: {step.typed}", flush=True)
            outcome, stopped = run_step(step, limit, scratch)
            left -= (time.monotonic() - begun) if step.counted else 0.0
        failed |= {step.name} if outcome.status != PASSED else set()
        print(f"[{number}/{len(steps)}] {step.name}: {outcome.status}: {outcome.how}", flush=True)
        yield outcome


def run_step(step: Step, limit: float, scratch: Path) -> tuple[Outcome, bool]:
    """Run a step for at most `limit` seconds. Return its outcome, and whether Ctrl-C was pressed."""
    begun, stopped, why = time.monotonic(), False, ""
    with tempfile.TemporaryFile(dir=scratch) as file:
        try:
            with delay_signals():
                # in a new session, Ctrl-C reaches the process and its children from here only
                process = subprocess.Popen(
                    step.command,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
                )
            process.wait(limit)
        except subprocess.TimeoutExpired:
            why = f"stopped after {limit:.0f} s"
            end(process)
        except KeyboardInterrupt:
            why, stopped = "stopped by Ctrl-C", True
            end(process)
        file.seek(0)
        output = file.read().decode(errors="replace")[-_MOST:]
    took = time.monotonic() - begun
    results = [line.removeprefix(RESULT) for line in output.splitlines() if line.startswith(RESULT)]
    if not why and process.returncode == 0:
        return Outcome(step, PASSED, ". ".join(filter(None, (f"{took:.0f} s", " ".join(results)))), output), stopped
    if not why and results and process.returncode == Exit.CANNOT_RUN_HERE:
        return Outcome(step, LEFT_OUT, " ".join(results), output), stopped
    # harness prints one sentence if it can't do something
    message = next((line.partition(": ")[2] for line in output.splitlines() if line.startswith("harness: ")), "")
    parts = (f"{why or f'exit code {process.returncode}'}, {took:.0f} s", message, " ".join(results))
    return Outcome(step, FAILED, ". ".join(filter(None, parts)), output), stopped


@contextmanager
def delay_signals() -> Iterator[None]:
    """Delay signals during the block, and raise KeyboardInterrupt at its end if one arrived.

    If a signal arrived after the start of a process, but before its handle is stored, the process would keep running.
    """
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, lambda number, _: received.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a command like Ctrl-C, so that it leaves nothing behind. If it doesn't end, kill it and clean up."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        subprocess.run((*HARNESS, "clean"), cwd=ROOT, capture_output=True, check=False, timeout=_GRACE)


def summary(outcomes: Sequence[Outcome], card: Gpu, host: GpuHost) -> str:
    """Return a line for each step, in the format of the table in docs/dev/gpu-testing.md."""
    where = f"{card.name} ({format_version(card.capability)}), driver {host.driver}"
    date = f"{datetime.date.today():%Y-%m-%d}, harness {__version__}"
    lines = [
        f"| {outcome.step.name} | {where} | {date} | {outcome.status}: {_cell(outcome.how)} |" for outcome in outcomes
    ]
    return "\n".join(["| what | GPU | date | result |", "| --- | --- | --- | --- |", *lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def ends(outcomes: Sequence[Outcome]) -> str:
    """Return the last lines of each step's output."""
    parts = []
    for outcome in outcomes:
        if outcome.output:
            last = "\n".join(f"    {line}" for line in outcome.output.strip().splitlines()[-15:])
            parts.append(f"\n## {outcome.step.name}: {outcome.status}\n\n`{outcome.step.typed}`\n\n{last}\n")
    return "".join(parts)


def write(bundle: Path, text: str, outcomes: Sequence[Outcome], scratch: Path, mask: Mask) -> None:
    """Write the bundle: the summary, outputs, the recording and the files of each run, all masked."""
    files: dict[str, str] = {"summary.md": text}
    for outcome in outcomes:
        if outcome.output:
            files[f"{outcome.step.name}.txt"] = mask.text(outcome.output)
    recording = scratch / "nvml.jsonl"
    if recording.is_file():
        files["nvml.jsonl"] = recording.read_text(encoding="utf-8")  # it is masked
    for path in sorted(file for name in _RUN_FILES for file in scratch.glob(f"*/*/{name}")):
        name = f"{path.parents[1].name}/{path.name}"
        is_large = path.stat().st_size > _MOST
        files[name] = f"left out: {path.stat().st_size} bytes\n" if is_large else mask.file(path)
    _zip(bundle, files)


def _zip(bundle: Path, files: Mapping[str, str]) -> None:
    """Write the bundle. If this fails, keep the previous one, because it is written again after each step."""
    part = bundle.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{bundle.stem}/{name}", text)
    part.replace(bundle)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    sys.exit(main())

"""`make gpu-check`: runs what needs a card, in ten minutes at most, and writes a bundle to attach to an issue.

`make gpu-check ARGS="--gpus 1"` takes another GPU than the first. Images that are not there are made first, and are not
counted. Each step is recorded whatever becomes of it. Exit code 1 where one failed, 4 where there is no card.
"""

import argparse
import datetime
import json
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
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from bench.gpu_check.masking import Mask
from harness import __version__
from harness.backends.docker import gpus
from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.machine.gpu import selection
from harness.model.errors import CannotRunHereError, Exit, UsageError
from harness.model.gpu import FIRST, Gpu, GpuHost, shown
from harness.plan.availability import gpu_rows
from harness.plan.gpus import BLACKWELL, Support, fit

ROOT = Path(__file__).resolve().parents[2]
#: Seconds that all steps may take together, without the images.
BUDGET = 600.0
#: Seconds in which a step that is stopped has to end, as after Ctrl-C.
_GRACE = 30.0
#: Bytes of an output, and of a run's file, that a bundle has at most. GitHub takes 25 MB; this keeps it below 10.
_MOST = 1_000_000

HARNESS = (sys.executable, "-m", "harness")
#: One cell, as short as a launch can be.
_CELL = ("model=small", "data=small", "call=train_on_batch", "api=tf.keras", "inputs=numpy", "mode=eager")
_SHORT = ("--rounds", "1", "--warmup", "300ms", "--measure", "1s")
_RUN_FILES = ("run.json", "launches.jsonl", "report.md")

PASSED, FAILED, LEFT_OUT = "passed", "failed", "left out"


@dataclass(frozen=True, slots=True)
class Step:
    """A command, about how long it takes and when it is stopped, in seconds; or why it is left out.

    Images are made outside of the ten minutes: they are not `counted`. `after` names a step that has to pass first.
    """

    name: str
    command: Sequence[str]
    about: float = 0.0
    limit: float = 0.0
    counted: bool = True
    left_out: str = ""
    after: str = ""

    @property
    def typed(self) -> str:
        """The command as a person types it."""
        words = ["harness", *self.command[3:]] if tuple(self.command[:3]) == HARNESS else ["python", *self.command[1:]]
        return " ".join(Path(word).name if word.startswith("/") else word for word in words)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step: `passed`, `failed` or `left out`, and in words how or why."""

    step: Step
    status: str
    how: str
    output: str = ""


def main() -> int:
    """Check, and write the bundle. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="make gpu-check", description=__doc__)
    parser.add_argument("--gpus", default=FIRST, help="the GPU to check, as --gpus of harness matrix has it")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to listen to the CPUs, and to watch GPUs")
    parser.add_argument("--env", default="", help="the environment of single cells; else the newest that runs natively")
    parser.add_argument("--only", default="", help="steps by their names, such as nvml,cdi; all where left out")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="where the bundle goes")
    arguments = parser.parse_args()
    host = gpus.host()
    try:
        cards = selection.cards(selection.wish(True, arguments.gpus), host)
        if not cards:
            raise CannotRunHereError(
                f"It needs an NVIDIA GPU and its driver: {host.absent}.", "What is here: harness doctor --gpu"
            )
    except (CannotRunHereError, UsageError) as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return error.exit
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as scratch:
        names = arguments.only.split(",") if arguments.only else []
        settled = arguments.env or _newest(cards, host)
        of_quick = _measured(("--suite", "quick", "--gpus", arguments.gpus)) if not names or "images" in names else []
        refused = "" if arguments.env else _refused(cards, host)
        every = planned(settled, of_quick, arguments.gpus, arguments.seconds, Path(scratch), refused=refused)
        steps = [step for step in every if not names or step.name in names]
        bundle = arguments.results / f"gpu-check-{_slug(cards[0].name)}-{datetime.date.today():%Y-%m-%d}.zip"
        announce(steps, cards[0], host, bundle)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        outcomes: list[Outcome] = []
        table = ""
        with suppress(KeyboardInterrupt):  # between two steps: the bundle has the steps before
            for outcome in walked(steps, Path(scratch)):
                outcomes.append(outcome)
                mask, table = Mask(), summary(outcomes, cards[0], host)
                bundle.parent.mkdir(parents=True, exist_ok=True)
                write(bundle, mask.text(table + ends(outcomes)), outcomes, Path(scratch), mask)
    print(f"\n{Mask().text(table)}\n{bundle}: look through it, and attach it to an issue.")
    return Exit.CELLS_FAILED if any(entry.status == FAILED for entry in outcomes) else Exit.OK


def _interrupt(number: int, frame: object) -> None:
    """Treat the end of a terminal, or of a job, like Ctrl-C: end the step, and write the bundle."""
    raise KeyboardInterrupt


def planned(
    environment: str, of_quick: Sequence[str], which: str, seconds: float, scratch: Path, *, refused: str = ""
) -> Iterator[Step]:
    """The steps, in order: single cells in the environment, if the card runs one, and the suite `quick` in its own.

    `which` are the cards as they are typed, `seconds` how long CPUs and cards are watched. `refused` is a release that
    the catalog refuses on the GPU, and that is launched all the same.
    """
    on = ("--gpus", which)
    yield Step("version", (*HARNESS, "--version"), 1, 30)
    yield Step("doctor", (*HARNESS, "doctor", *on, "--seconds", f"{seconds * 1000:.0f}ms"), 10 + seconds, 60 + seconds)
    recording = ("-m", "bench.gpu_check.recording", str(scratch / "nvml.jsonl"), "--seconds", f"{seconds:g}")
    yield Step("nvml", (sys.executable, *recording), 5 + seconds, 30 + seconds)
    if not environment:
        why = "no environment of the catalogue runs natively on this GPU"
        for name in ("images", "verify", "cdi", "runtime", "driver", "quick", "locked"):
            yield Step(name, (), left_out=why)
        return
    images = list(dict.fromkeys(filter(None, [environment, *of_quick, refused])))
    build = (*HARNESS, "images", "build", *images, "--device", "gpu")
    # gigabytes are not fetched for containers that get no GPU
    yield Step("images", build, 900, 3600, counted=False, after="doctor")
    yield Step("verify", (*HARNESS, "images", "verify", environment, "--device", "gpu"), 20, 90)
    matrix = (*HARNESS, "matrix", *on)
    cell = ("-e", environment, "-s", "keras_step", *(word for axis in _CELL for word in ("-a", axis)), *_SHORT)
    for way in gpus.GpuWay:
        results = ("--results", str(scratch / way.value))
        yield Step(way.value, (*matrix, "--gpu-via", way.value, *cell, *results), 60, 120, after="images")
    if refused:
        tried = ("-e", refused, "--try-anyway", "-s", "keras_step", *(word for axis in _CELL for word in ("-a", axis)))
        results = ("-a", "xla=off", *_SHORT, "--results", str(scratch / "refused"))
        yield Step("refused", (*matrix, *tried, *results), 60, 120, after="images")
    quick = ("--suite", "quick", "--rounds", "1", "--results", str(scratch / "quick"))
    if of_quick:
        yield Step("quick", (*matrix, *quick), 120, 240, after="images")
    else:
        yield Step("quick", (), left_out="this GPU runs only one of its releases")
    locked = (*matrix, "--lock-clocks", "base", *cell, "--results", str(scratch / "locked"))
    may = os.geteuid() == 0
    yield Step("locked", locked, 60, 120, left_out="" if may else "only root may lock clocks", after="images")


def _newest(cards: Sequence[Gpu], host: GpuHost) -> str:
    """The newest release that all of the cards run natively; empty where none is."""
    catalog = load_environments(Project(ROOT))
    rows = gpu_rows(catalog.values(), catalog, cards, host)
    native = [row["name"] for row in rows if row["way"] in (Support.NATIVE, Support.PARTLY)]
    return max(native, key=lambda name: Version(catalog[name].tensorflow), default="")


def _refused(cards: Sequence[Gpu], host: GpuHost) -> str:
    """Return the newest release if it is refused here although the driver is new enough, or an empty text."""
    catalog = load_environments(Project(ROOT))
    releases = [environment for environment in catalog.values() if not environment.gpu_image]
    newest = max(releases, key=lambda environment: environment.release)
    is_too_new = all(card.capability >= BLACKWELL for card in cards)
    return newest.name if is_too_new and fit(newest, cards, host).is_impossible else ""


def _measured(typed: Sequence[str]) -> list[str]:
    """The environments in which the command would launch something; none where it cannot say."""
    command = (*HARNESS, "matrix", *typed, "--dry-run", "--json")
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return list(dict.fromkeys(cell["cell"].split()[1] for cell in json.loads(process.stdout)["cells"]))
    except (ValueError, KeyError, IndexError):
        return []


def announce(steps: Sequence[Step], card: Gpu, host: GpuHost, bundle: Path) -> None:
    """Say what will be done, and how long that takes."""
    minutes = sum(step.about for step in steps if step.counted and not step.left_out) / 60
    print(f"GPU {card.index}: {card.name}, compute capability {shown(card.capability)}, driver {host.driver}.")
    print(f"This takes about {minutes:.0f} minutes, {BUDGET / 60:.0f} at most, and the time to make images:")
    for step in steps:
        needs = f"about {step.about:.0f} s" if step.counted else "where images are missing, downloads of 5 to 25 GB"
        print(f"  {step.name}: " + (f"left out, {step.left_out}" if step.left_out else f"{step.typed} ({needs})"))
    print(f"Each step adds its results to {bundle}. Ctrl-C leaves out the next steps.", flush=True)


def walked(steps: Sequence[Step], scratch: Path) -> Iterator[Outcome]:
    """Run the steps one after the other, and say of each at once what became of it."""
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
            outcome, stopped = taken(step, limit, scratch)
            left -= (time.monotonic() - begun) if step.counted else 0.0
        failed |= {step.name} if outcome.status != PASSED else set()
        print(f"[{number}/{len(steps)}] {step.name}: {outcome.status}: {outcome.how}", flush=True)
        yield outcome


def taken(step: Step, limit: float, scratch: Path) -> tuple[Outcome, bool]:
    """Run a step for so many seconds at most; its outcome, and whether Ctrl-C was typed meanwhile."""
    begun, stopped, why = time.monotonic(), False, ""
    with tempfile.TemporaryFile(dir=scratch) as file:
        try:
            with uninterrupted():
                # a session of its own: Ctrl-C reaches it from here, and its children with it
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
    if not why and process.returncode == 0:
        return Outcome(step, PASSED, f"{took:.0f} s", output), stopped
    # the harness's own sentence, where it refused
    message = next((line.partition(": ")[2] for line in output.splitlines() if line.startswith("harness: ")), "")
    how = ". ".join(filter(None, (f"{why or f'exit code {process.returncode}'}, {took:.0f} s", message)))
    return Outcome(step, FAILED, how, output), stopped


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back signals during the block, and raise KeyboardInterrupt at its end if there was one.

    A signal between the start of a process and its handle would leave the process running.
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
    """End a command as Ctrl-C does, so that it leaves nothing; by force where it does not end, and clean up then."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        subprocess.run((*HARNESS, "clean"), cwd=ROOT, capture_output=True, check=False, timeout=_GRACE)


def summary(outcomes: Sequence[Outcome], card: Gpu, host: GpuHost) -> str:
    """Return a line for each step, in the format of the table in docs/dev/gpu-testing.md."""
    where = f"{card.name} ({shown(card.capability)}), driver {host.driver}"
    date = f"{datetime.date.today():%Y-%m-%d}, harness {__version__}"
    lines = [
        f"| {outcome.step.name} | {where} | {date} | {outcome.status}: {_cell(outcome.how)} |" for outcome in outcomes
    ]
    return "\n".join(["| what | card | when | outcome |", "| --- | --- | --- | --- |", *lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def ends(outcomes: Sequence[Outcome]) -> str:
    """What each step said last."""
    parts = []
    for outcome in outcomes:
        if outcome.output:
            last = "\n".join(f"    {line}" for line in outcome.output.strip().splitlines()[-15:])
            parts.append(f"\n## {outcome.step.name}: {outcome.status}\n\n`{outcome.step.typed}`\n\n{last}\n")
    return "".join(parts)


def write(bundle: Path, text: str, outcomes: Sequence[Outcome], scratch: Path, mask: Mask) -> None:
    """The bundle: summary, outputs, the recording, and what is stored of each run, all of it masked."""
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
    """Write the bundle, or leave the last one as it is: it is written again after each step."""
    part = bundle.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{bundle.stem}/{name}", text)
    part.replace(bundle)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    sys.exit(main())

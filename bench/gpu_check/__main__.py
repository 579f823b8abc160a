"""`make gpu-check`: runs everything that needs a GPU, in at most ten minutes, and writes a bundle for an issue.

`make gpu-check ARGS="--gpus 1"` checks a GPU other than the first one, and `--no-engine` checks without containers. The
creation of missing images and environments takes additional time. Each step is recorded, whatever its result. The exit
code is 1 if a step failed, and 4 if there is no GPU.
"""

import argparse
import datetime
import json
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

from packaging.version import Version

from bench.gpu_check.checks import CHECKS, PRODUCTS, RESULT
from bench.gpu_check.masking import Mask
from harness import __version__
from harness.backends.docker import gpus
from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.machine.gpu import selection
from harness.model.errors import CannotRunHereError, Exit, UsageError
from harness.model.gpu import FIRST, Gpu, GpuHost, format_version
from harness.model.texts import counted
from harness.plan.availability import list_gpu_rows
from harness.plan.gpus import AMPERE, BLACKWELL, Support, fit

ROOT = Path(__file__).resolve().parents[2]
#: The total number of seconds for all steps, without the creation of images.
BUDGET = 600.0
#: The seconds within which a step must end after it was stopped, as after Ctrl-C.
_GRACE = 30.0
#: The largest number of bytes in a bundle from an output, and from a run's file. GitHub accepts 25 MB. These limits
#: keep a bundle below 10 MB.
_MOST = 1_000_000

HARNESS = (sys.executable, "-m", "harness")
#: The axes of one cell.
_CELL = ("model=small", "data=small", "call=train_on_batch", "api=tf.keras", "inputs=numpy", "mode=eager")
_SHORT = ("--rounds", "1", "--warmup", "300ms", "--measure", "1s")
#: The options for products of large matrices. They are measured for seconds, because the power readings of some GPUs
#: are means over the last second.
_PRODUCTS = ("-s", f"bench/gpu_check/{PRODUCTS}.py", "-a", "side=8192", "--warmup", "1.5s", "--measure", "2s")
_RUN_FILES = ("run.json", "launches.jsonl", "report.md")

PASSED, FAILED, LEFT_OUT = "passed", "failed", "left out"


@dataclass(frozen=True, slots=True)
class Step:
    """A command with its expected duration and its time limit in seconds, or the reason why it is left out.

    Steps that create images and environments aren't `counted` in the ten minutes. `after` names a step that must pass
    first.
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
        """Return the command as a user would enter it."""
        words = ["harness", *self.command[3:]] if tuple(self.command[:3]) == HARNESS else ["python", *self.command[1:]]
        return " ".join(Path(word).name if word.startswith("/") else word for word in words)


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
            environment=arguments.env or _newest(cards, host),
            which=arguments.gpus,
            seconds=arguments.seconds,
            scratch=Path(scratch),
            refused="" if arguments.env or without else _refused(cards, host),
            lazy="" if without else _compiled(cards, host),
            has_tf32=all(card.capability >= AMPERE for card in cards),
            without_engine=without,
        )
        if not without and (not names or {"images", "quick"} & set(names)):
            plan = replace(plan, of_quick=_find_environments([*plan.matrix[3:], "--suite", "quick"]))
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


@dataclass(frozen=True, slots=True)
class Plan:
    """What is checked, and with which releases.

    - `environment`: the environment for single cells; empty if no environment runs on the GPU.
    - `which`: the GPUs, in the form of the option. `seconds`: how long CPUs and GPUs are watched.
    - `of_quick`: the environments of the suite `quick`; empty if nothing can be compared.
    - `refused`: a release that the catalog refuses on this GPU, and that is launched anyway.
    - `lazy`: a release whose code the driver compiles at the start, unless CUDA loads the code lazily.
    """

    environment: str
    which: str
    seconds: float
    scratch: Path
    of_quick: Sequence[str] = ()
    refused: str = ""
    lazy: str = ""
    has_tf32: bool = False
    without_engine: bool = False

    @property
    def matrix(self) -> Sequence[str]:
        """Return the start of measuring commands. In containers, nobody has to trust the scenario `products`."""
        backend = ("--backend", "local", "--trust") if self.without_engine else ()
        return (*HARNESS, "matrix", "--gpus", self.which, *backend)

    def steps(self) -> Iterator[Step]:
        """Return the steps, in order: the machine, the images, and the launches with the checks of their results."""
        yield from self._machine()
        if not self.environment:
            why = "no environment in the catalog runs natively on this GPU"
            for name in ("images", "verify", "cdi", "runtime", "driver", "products", *CHECKS, "quick", "locked"):
                yield Step(name, (), left_out=why)
            return
        ready = "local" if self.without_engine else "images"
        yield from self._environments()
        tf32 = ("-a", "tf32=on,off") if self.has_tf32 else ()
        products = (*self.matrix, "-e", self.environment, *_PRODUCTS, "-a", "calls=1,10", *tf32, "--rounds", "1")
        yield Step("products", (*products, *self._results("products")), 100, 240, after=ready)
        yield self._check("physics")
        yield self._check("right")
        if self.refused:
            tried = ("-e", self.refused, "--try-anyway", *_keras_options(), "-a", "xla=off", *_SHORT)
            yield Step("refused", (*self.matrix, *tried, *self._results("refused")), 60, 120, after=ready)
        if self.without_engine:
            yield Step("quick", (), left_out="it includes TensorFlow 1, whose CUDA is in an image")
        elif self.of_quick:
            quick = ("--suite", "quick", "--rounds", "1", *self._results("quick"))
            yield Step("quick", (*self.matrix, *quick), 120, 240, after=ready)
        else:
            yield Step("quick", (), left_out="this GPU runs only one of its releases")
        locked = (*self.matrix, "--lock-clocks", "base", "-e", self.environment, *_keras_options(), *_SHORT)
        why = "" if os.geteuid() == 0 else "only root may lock clocks"
        yield Step("locked", (*locked, *self._results("locked")), 40, 120, left_out=why, after=ready)
        if self.lazy:
            lazy = ("-e", self.lazy, *_PRODUCTS, "-a", "calls=1", "-a", "cuda_loading=lazy", "--rounds", "2")
            yield Step("lazy", (*self.matrix, *lazy, *self._results("lazy")), 60, 300, after=ready)
        yield self._check("starts")

    def _machine(self) -> Iterator[Step]:
        """Return the steps that need no environment."""
        # with --gpus, `harness doctor` requires an engine
        on, seconds = () if self.without_engine else ("--gpus", self.which), self.seconds
        yield Step("version", (*HARNESS, "--version"), 1, 30)
        yield self._access("facts", 5, 120)
        yield self._access("ways", 30, 300)
        noise = (*HARNESS, "doctor", *on, "--seconds", f"{seconds * 1000:.0f}ms")
        yield Step("doctor", noise, 10 + seconds, 60 + seconds)
        recording = ("bench.gpu_check.recording", str(self.scratch / "nvml.jsonl"), "--seconds", f"{seconds:g}")
        yield Step("nvml", (sys.executable, "-m", *recording), 5 + seconds, 30 + seconds)

    def _environments(self) -> Iterator[Step]:
        """Return the steps that create environments, and that show how launches get a GPU."""
        cell = ("-e", self.environment, *_keras_options(), *_SHORT)
        if self.without_engine:
            for name in ("images", "verify", *gpus.GpuWay):
                yield Step(str(name), (), left_out="it is about containers, and --no-engine was passed")
            # gigabytes aren't installed for a driver that doesn't work
            yield Step("local", (*self.matrix, *cell, *self._results("local")), 900, 3600, counted=False, after="ways")
            return
        images = list(dict.fromkeys(filter(None, [self.environment, *self.of_quick, self.refused, self.lazy])))
        build = (*HARNESS, "images", "build", *images, "--device", "gpu")
        # gigabytes aren't fetched for containers that get no GPU
        yield Step("images", build, 900, 3600, counted=False, after="ways")
        # the images whose GPU code isn't in the catalog are read too
        read = dict.fromkeys([self.environment, *_unread(images)])
        verify = (*HARNESS, "images", "verify", *read, "--device", "gpu")
        yield Step("verify", verify, 20 * len(read), 90 * len(read), after="images")
        for way in gpus.GpuWay:
            via = (*self.matrix, "--gpu-via", way.value, *cell, *self._results(way.value))
            yield Step(way.value, via, 30, 120, after="images")

    def _access(self, name: str, about: float, limit: float) -> Step:
        without = ("--no-engine",) if self.without_engine else ()
        command = (sys.executable, "-m", "bench.gpu_check.access", name, "--gpus", self.which, *without)
        return Step(name, command, about, limit)

    def _check(self, name: str) -> Step:
        """Return the step that checks the launches of the steps before, also if one of these failed."""
        return Step(name, (sys.executable, "-m", "bench.gpu_check.checks", name, str(self.scratch)), 2, 30)

    def _results(self, name: str) -> Sequence[str]:
        return ("--results", str(self.scratch / name))


def _keras_options() -> list[str]:
    """Return the options for one cell of keras_step, as short as a launch can be."""
    return ["-s", "keras_step", *(word for axis in _CELL for word in ("-a", axis))]


def _newest(cards: Sequence[Gpu], host: GpuHost) -> str:
    """Return the newest release that all of the GPUs run natively; empty if there is none."""
    catalog = load_environments(Project(ROOT))
    rows = list_gpu_rows(catalog.values(), catalog, cards, host)
    native = [row["name"] for row in rows if row["way"] in (Support.NATIVE, Support.PARTLY)]
    return max(native, key=lambda name: Version(catalog[name].tensorflow), default="")


def _unread(names: Sequence[str]) -> list[str]:
    """Return the environments whose GPU code in cuDNN isn't in the catalog: nobody could read their images."""
    catalog = load_environments(Project(ROOT))
    return [name for name in names if not catalog[name].cudnn_code]


def _compiled(cards: Sequence[Gpu], host: GpuHost) -> str:
    """Return the newest release whose code the driver compiles at the first start; empty if there is none.

    Lazy loading, which CUDA has in these releases, probably makes this start short.
    """
    catalog = load_environments(Project(ROOT))
    compiled = [
        environment
        for environment in catalog.values()
        if environment.has_packaged_cuda and fit(environment, cards, host).support is Support.COMPILED
    ]
    newest = max(compiled, key=lambda environment: environment.release, default=None)
    return newest.name if newest else ""


def _refused(cards: Sequence[Gpu], host: GpuHost) -> str:
    """Return the newest release if it is refused here although the driver is new enough, or an empty text."""
    catalog = load_environments(Project(ROOT))
    releases = [environment for environment in catalog.values() if not environment.gpu_image]
    newest = max(releases, key=lambda environment: environment.release)
    is_too_new = all(card.capability >= BLACKWELL for card in cards)
    return newest.name if is_too_new and fit(newest, cards, host).is_impossible else ""


def _find_environments(typed: Sequence[str]) -> list[str]:
    """Return the environments in which the command would launch something; empty if the command can't list them."""
    command = (*HARNESS, *typed, "--dry-run", "--json")
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return list(dict.fromkeys(cell["cell"].split()[1] for cell in json.loads(process.stdout)["cells"]))
    except (ValueError, KeyError, IndexError):
        return []


def announce(steps: Sequence[Step], card: Gpu, host: GpuHost, bundle: Path) -> None:
    """Print the steps and how long they take."""
    minutes = sum(step.about for step in steps if step.counted and not step.left_out) / 60
    print(f"GPU {card.index}: {card.name}, compute capability {format_version(card.capability)}, driver {host.driver}.")
    extra = f"at most {BUDGET / 60:.0f}, and the time to create images or environments"
    print(f"This takes about {counted(math.ceil(minutes), 'minute')}, {extra}:")
    for step in steps:
        needs = f"about {step.about:.0f} s" if step.counted else "if they are missing, downloads of 5 to 25 GB"
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

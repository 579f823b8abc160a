"""The steps of `make gpu-check`, in order, and the releases that they use on a GPU."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from bench.gpu_check.checks import CHECKS, PRODUCTS
from harness.backends.docker import gpus
from harness.environments.catalog import load_environments
from harness.model.gpu import Gpu, GpuHost
from harness.plan.availability import list_gpu_rows
from harness.plan.gpus import BLACKWELL, Support, fit
from harness.project import Project

ROOT = Path(__file__).resolve().parents[2]
HARNESS = (sys.executable, "-m", "harness")
#: The axes of one cell.
_CELL = ("model=small", "data=small", "call=train_on_batch", "api=tf.keras", "inputs=numpy", "mode=eager")
_SHORT = ("--rounds", "1", "--warmup", "300ms", "--measure", "1s")
#: The options for products of large matrices. They are measured for seconds, because the power readings of some GPUs
#: are means over the last second.
_PRODUCTS = ("-s", f"bench/gpu_check/{PRODUCTS}.py", "-a", "side=8192", "--warmup", "1.5s", "--measure", "2s")


@dataclass(frozen=True, slots=True)
class Step:
    """A command with its expected duration and its time limit in seconds, or the reason why it is left out.

    Steps with a `download`, which create images and environments, aren't counted in the ten minutes. It is the size.
    `after` names a step that must pass first.
    """

    name: str
    command: Sequence[str]
    about: float = 0.0
    limit: float = 0.0
    download: str = ""
    left_out: str = ""
    after: str = ""

    @property
    def counted(self) -> bool:
        """Whether the step is part of the ten minutes."""
        return not self.download

    @property
    def typed(self) -> str:
        """Return the command as a user would enter it."""
        words = ["harness", *self.command[3:]] if tuple(self.command[:3]) == HARNESS else ["python", *self.command[1:]]
        return " ".join(Path(word).name if word.startswith("/") else word for word in words)


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
        # 100 products take 14 s on a T4, and at most 6 s on GPUs with TF32
        axes = ("-a", "calls=1,10,100", "-a", "tf32=on,off") if self.has_tf32 else ("-a", "calls=1,10")
        products = (*self.matrix, "-e", self.environment, *_PRODUCTS, *axes, "--rounds", "1")
        yield Step("products", (*products, *self._results("products")), 150 if self.has_tf32 else 100, 300, after=ready)
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
            yield Step("local", (*self.matrix, *cell, *self._results("local")), 900, 3600, "3 to 5 GB", after="ways")
            return
        images = list(dict.fromkeys(filter(None, [self.environment, *self.of_quick, self.refused, self.lazy])))
        build = (*HARNESS, "images", "build", *images, "--device", "gpu")
        # gigabytes aren't fetched for containers that get no GPU
        yield Step("images", build, 900, 3600, f"{3 * len(images)} to {5 * len(images)} GB", after="ways")
        # the images whose GPU code isn't in the catalog are read too
        read = dict.fromkeys([self.environment, *_unread(images)])
        verify = (sys.executable, "-m", "bench.gpu_image", *read)
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


def find_newest(cards: Sequence[Gpu], host: GpuHost) -> str:
    """Return the newest release that all of the GPUs run natively; empty if there is none."""
    catalog = load_environments(Project(ROOT))
    rows = list_gpu_rows(catalog.values(), catalog, cards, host)
    native = [row["name"] for row in rows if row["way"] in (Support.NATIVE, Support.PARTLY)]
    return max(native, key=lambda name: Version(catalog[name].tensorflow), default="")


def _unread(names: Sequence[str]) -> list[str]:
    """Return the environments whose CUDA is in an image: nobody could read the GPU code in these images."""
    catalog = load_environments(Project(ROOT))
    return [name for name in names if not catalog[name].has_packaged_cuda]


def find_compiled(cards: Sequence[Gpu], host: GpuHost) -> str:
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


def find_refused(cards: Sequence[Gpu], host: GpuHost) -> str:
    """Return the newest release if it is refused here although the driver is new enough, or an empty text."""
    catalog = load_environments(Project(ROOT))
    releases = [environment for environment in catalog.values() if not environment.gpu_image]
    newest = max(releases, key=lambda environment: environment.release)
    is_too_new = all(card.capability >= BLACKWELL for card in cards)
    return newest.name if is_too_new and fit(newest, cards, host).is_impossible else ""


def find_environments(typed: Sequence[str]) -> list[str]:
    """Return the environments in which the command would launch something; empty if the command can't list them."""
    command = (*HARNESS, *typed, "--dry-run", "--json")
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return list(dict.fromkeys(cell["cell"].split()[1] for cell in json.loads(process.stdout)["cells"]))
    except (ValueError, KeyError, IndexError):
        return []

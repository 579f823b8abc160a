"""Stand-ins for GPUs: NVIDIA's libraries without a card, for a real harness and for real TensorFlow in real containers.

They are compiled from the C sources beside this file. Device memory is the host's, and streams and events are done at
once. Kernels and small matrix products are computed on the host, convolutions aren't. They serve discovery, placement,
telemetry, faults and results, and no time of theirs is a GPU's.
What they tell is set by environment variables, which the sources name.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.backends.docker.gpus import KIND
from tests.lacking import lacking
from tests.shared_objects import shared_object

SOURCES = Path(__file__).parent

#: Where containers find the libraries.
FOLDER = "/stand-in"

#: Each library that is compiled: its source, and the version that it tells.
COMPILED: Mapping[str, tuple[str, int]] = {
    "libnvidia-ml.so.1": ("libnvidia-ml.c", 0),
    "libcuda.so.1": ("libcuda.c", 0),
    "libcudart.so.10.0": ("libcudart.c", 10000),
    "libcudart.so.10.1": ("libcudart.c", 10010),
    "libcudart.so.11.0": ("libcudart.c", 11080),
    "libcudart.so.12": ("libcudart.c", 12020),
    "libcublas.so.10.0": ("libcublas.c", 100000),
    "libcublas.so.10": ("libcublas.c", 100200),
    "libcublas.so.11": ("libcublas.c", 111103),
    "libcublas.so.12": ("libcublas.c", 120205),
    "libcublasLt.so.11": ("libcublasLt.c", 111103),
    "libcublasLt.so.12": ("libcublasLt.c", 120205),
    "libcudnn.so.7": ("libcudnn.c", 7605),
    "libcudnn.so.8": ("libcudnn.c", 8904),
    "libcudnn.so.9": ("libcudnn.c", 90300),
    "libcupti.so.10.0": ("libcupti.c", 0),
    "libcupti.so.10.1": ("libcupti.c", 0),
    "libcupti.so.11.0": ("libcupti.c", 0),
    "libcupti.so.11.2": ("libcupti.c", 0),
    "libcupti.so.12": ("libcupti.c", 0),
}

#: Libraries that TensorFlow opens, and of which no scenario calls a function.
EMPTY = (
    *("libcufft.so.10.0", "libcufft.so.10", "libcufft.so.11"),
    *("libcurand.so.10.0", "libcurand.so.10"),
    *("libcusolver.so.10.0", "libcusolver.so.10", "libcusolver.so.11"),
    *("libcusparse.so.10.0", "libcusparse.so.10", "libcusparse.so.11", "libcusparse.so.12"),
)


@dataclass(frozen=True, slots=True)
class StandIn:
    """A card: its name, its compute capability, its memory in GiB, and the profile of its instance (MIG), if any."""

    name: str
    capability: str
    gib: float
    profile: str = ""

    def told(self) -> str:
        """What the machine's NVML is told of it."""
        return f"{self.name};{self.capability};{self.gib:g};{self.profile}"

    def given(self) -> str:
        """What a container is told that gets it: the card, or its instance."""
        if not self.profile:
            return self.told()
        # as the driver names an instance; its profile, such as 3g.20gb, tells its memory
        gib = self.profile.partition(".")[2].removesuffix("gb")
        return f"{self.name} MIG {self.profile};{self.capability};{gib};"


T4 = StandIn("Tesla T4", "7.5", 15)
RTX_3090 = StandIn("NVIDIA GeForce RTX 3090", "8.6", 24)
H100 = StandIn("NVIDIA H100 80GB HBM3", "9.0", 80)
MIG = StandIn("NVIDIA A100-SXM4-40GB", "8.0", 40, "3g.20gb")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with these cards. `faults` are further settings of the stand-ins, in the harness and in containers."""

    libraries: Path
    cards: Sequence[StandIn] = ()
    faults: Mapping[str, str] = field(default_factory=dict)

    def environ(self) -> dict[str, str]:
        """What a process of the machine has to have: where its NVML is, and what that tells."""
        cards = {f"STAND_IN_GPU_{index}": card.told() for index, card in enumerate(self.cards)}
        return {"LD_LIBRARY_PATH": str(self.libraries), **cards, **self.faults}

    def installed(self, folder: Path) -> dict[str, str]:
        """Copy the libraries and their settings to a folder, and return the variables of a process that uses them."""
        libraries = shutil.copytree(self.libraries, folder)
        settings = {name: value for name, value in self.environ().items() if name != "LD_LIBRARY_PATH"}
        (libraries / "settings").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return {"LD_LIBRARY_PATH": str(libraries)}

    def specification(self) -> dict[str, Any]:
        """The machine's CDI specification: each card, or its instance, by the name that nvidia-ctk gives it."""
        entries = [
            {
                "name": f"{index}:0" if card.profile else str(index),
                "containerEdits": {"env": [f"STAND_IN_GPU_{index}={card.given()}"]},
            }
            for index, card in enumerate(self.cards)
        ]
        every = [line for entry in entries for line in entry["containerEdits"]["env"]]
        settings = {"LD_LIBRARY_PATH": FOLDER, **self.faults}
        return {
            "cdiVersion": "0.5.0",
            "kind": KIND,
            "devices": [*entries, {"name": "all", "containerEdits": {"env": every}}] if entries else [],
            "containerEdits": {
                "env": [f"{name}={value}" for name, value in settings.items()],
                "mounts": [{"hostPath": str(self.libraries), "containerPath": FOLDER, "options": ["ro", "bind"]}],
            },
        }

    @contextmanager
    def offered(self, folder: Path) -> Iterator[None]:
        """The specification is in one of the engine's folders of CDI specifications during the block."""
        path = folder / "harness-stand-in.json"
        is_made = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.specification()))
        except OSError as error:
            lacking(f"{folder} cannot be written, where the engine reads CDI specifications: {error.strerror}")
        try:
            yield
        finally:
            path.unlink()
            if is_made:
                folder.rmdir()


def build(folder: Path) -> Path:
    """Put all libraries into this folder, and return it. Skips the test where there is no C compiler.

    All processes of the tests share one compilation, which a change of the sources repeats.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        lacking("there is no C compiler (cc, gcc): the stand-ins for GPUs are C")
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    sources = [path.read_bytes() for path in sorted(SOURCES.iterdir()) if path.is_file()]
    digest = hashlib.sha256(b"".join([version, *sources])).hexdigest()[:16]
    compiled = Path(tempfile.gettempdir(), f"harness-tests-stand-ins-{os.getuid()}-{digest}")
    with compiled.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all((compiled / soname).exists() for soname in (*EMPTY, *COMPILED, "ptxas")):
            compile_all(compiled, compiler)
    shutil.copytree(compiled, folder, dirs_exist_ok=True)
    folder.chmod(0o755)  # a launch's user reads it
    return folder


def compile_all(folder: Path, compiler: str) -> None:
    """Make all libraries in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCES / "ptxas", folder)
    for soname in EMPTY:
        (folder / soname).write_bytes(shared_object(soname))
    for soname, (source, version) in COMPILED.items():
        # these use the driver's
        is_driver = source in ("libcuda.c", "libnvidia-ml.c")
        driver = [] if is_driver else [str(folder / "libcuda.so.1"), "-Wl,-rpath,$ORIGIN"]
        options = ["-std=gnu11", "-O1", "-w", "-shared", "-fPIC", f"-DVERSION={version}", f"-Wl,-soname,{soname}"]
        command = [compiler, *options, "-o", str(folder / soname), str(SOURCES / source), *driver, "-lm"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr

"""A project of the tests' own: its GPU images are this one's without NVIDIA's libraries, whose place stand-ins take.

The Dockerfile, the scenarios and the catalogue's lines are the real ones, and TensorFlow's wheels. Of NVIDIA's packages
only the compiler stays, whose assembler and device library XLA calls. Environments up to 2.4 copy their CUDA out of
TensorFlow's own image: for each of these stands one image of all stand-ins, where CUDA lies in it. For NVIDIA's image
with its own build of TensorFlow 1.15.5 stands Google's wheel of that release, which no lock names there either.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.commands import run_harness
from tests.conftest import ROOT, copy_part
from tests.stand_in.gpus import Machine

#: Images of these tests are apart from the user's: a registry that nothing answers for.
REGISTRY = "127.0.0.1:9/stand-in/"

#: In place of TensorFlow's own images, which CUDA is copied out of.
CUDA_IMAGE = f"{REGISTRY}harness/cuda"
CUDA = """\
FROM python:3.11-slim-bookworm
COPY --chmod=755 . /usr/local/cuda/lib64/
"""

#: In place of NVIDIA's image, which has a TensorFlow of its own.
NGC, NGC_IMAGE, WITHIN = "tf1.15-ngc", f"{REGISTRY}harness/ngc", "tf1.15-gpu.txt"
NGC_DOCKERFILE = f"""\
FROM python:3.7-slim-bookworm
COPY {WITHIN} /
RUN python3 -m pip install --no-cache-dir --no-deps --require-hashes --requirement /{WITHIN}
"""


@dataclass(frozen=True, slots=True)
class StandInProject:
    """The project in `root`, with images of these environments."""

    root: Path
    names: Sequence[str]

    @classmethod
    def make(cls, root: Path, names: Sequence[str]) -> "StandInProject":
        """Make it; of these environments are its images."""
        for folder in ("scenarios", "images"):
            copy_part(folder, root)
        catalogue = (ROOT / "docker-bake.hcl").read_text()
        for kind, image in (("cuda_image", CUDA_IMAGE), ("gpu_image", NGC_IMAGE)):
            catalogue = re.sub(f'{kind} = ".*?"', f'{kind} = "{image}"', catalogue)
        (root / "docker-bake.hcl").write_text(catalogue)
        for name in names:
            lock = root / "images" / "locks" / f"{name}-gpu.txt"
            lock.write_text(without_nvidia(lock.read_text()))
        return cls(root, names)

    def run(self, machine: Machine, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `harness` with these arguments and further variables in the project, on this machine."""
        environ = {**os.environ, "HARNESS_PROJECT": str(self.root), "REGISTRY": REGISTRY, **machine.environ()}
        return run_harness(*arguments, cwd=self.root, environ=environ, **variables)

    def build(self, libraries: Path) -> None:
        """Build the images one after another, since each is large."""
        self._base(CUDA_IMAGE, CUDA, libraries)
        if NGC in self.names:
            self._base(NGC_IMAGE, NGC_DOCKERFILE, self.root / "images" / "locks")
        for name in self.names:
            process = self.run(Machine(libraries), "images", "build", name, "--device", "gpu")
            assert process.returncode == 0, process.stderr

    def _base(self, image: str, dockerfile: str, context: Path) -> None:
        (self.root / "base.Dockerfile").write_text(dockerfile)
        docker("build", "--file", str(self.root / "base.Dockerfile"), "--tag", image, str(context))

    def remove(self) -> None:
        """Remove the images, and what launches left in volumes."""
        ids = docker("image", "ls", "--no-trunc", "--quiet", f"{REGISTRY}harness/*").split()
        prefixes = tuple(f"harness-ptx-{entry.partition(':')[2][:12]}" for entry in ids)
        volumes = [word for word in docker("volume", "ls", "--quiet").split() if word.startswith(prefixes)]
        # a test that was killed may have left containers
        for left in {
            word for volume in volumes for word in docker("ps", "-aq", "--filter", f"volume={volume}").split()
        }:
            docker("rm", "--force", left)
        if volumes:
            docker("volume", "rm", *volumes)
        docker("image", "rm", "--force", *ids)


def without_nvidia(lock: str) -> str:
    """A lock without NVIDIA's packages, but for the compiler's."""
    return re.sub(r"^nvidia-(?!cuda-nvcc)(?:.*\\\n)*.*\n", "", lock, flags=re.MULTILINE)


def docker(*arguments: str) -> str:
    """What `docker` says to these arguments."""
    process = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout

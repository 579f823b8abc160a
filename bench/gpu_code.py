"""`python -m bench.gpu_code [NAME]…`: which GPU code the wheels in the GPU locks hold, kept in docs/gpu-code.json.

Of each environment the wheels of TensorFlow, cuDNN and cuBLAS are downloaded by pip, one at a time, read, and removed
again: up to 0.9 GB at once, and 12 GB in all where nothing is kept yet. A wheel that is kept is not read again. Needs
no GPU. CUDA that is copied from an image, and NVIDIA's own TensorFlow, are in no package: `harness images verify`
reads these in the image.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.backends.docker import fatbins
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.model.environment import Device, Environment

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "gpu-code.json"

#: TensorFlow under both of its names, cuDNN and cuBLAS for any CUDA.
WANTED = re.compile(r"tensorflow(-gpu)?|nvidia-(cudnn|cublas)-cu\d+")
#: Of cuDNN, what every use needs; its engines are kernels for single architectures, thousands of them.
PASSED_OVER = re.compile(r"libcudnn_(engines|heuristic|graph)")

#: From the oldest wheel's to the newest's.
PLATFORMS = ("manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28")


def main(names: Sequence[str]) -> None:
    """Read what is not kept yet."""
    kept = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    environments = load_environments(Project(ROOT))
    for environment in (environments[name] for name in names or environments):
        for requirement in wheels(environment):
            if requirement not in kept:
                kept[requirement] = held(requirement, environment.python)
                KEPT.write_text(dumped(kept))
            print(requirement)


def wheels(environment: Environment) -> list[str]:
    """The requirements of its GPU lock whose wheels have GPU code; none where TensorFlow is an image's own."""
    if environment.gpu_image:
        return []
    lock = load_lock(Project(ROOT), environment, Device.GPU).lock
    return [f"{name}=={version}" for name, version in lock.pins.items() if WANTED.fullmatch(name)]


def held(requirement: str, python: str) -> dict[str, list[str]]:
    """What each library of a wheel holds: `NUMBER x CODE …` of alike modules, those with the most bytes first."""
    with tempfile.TemporaryDirectory() as folder:
        platforms = [f"--platform={tag}_x86_64" for tag in PLATFORMS]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run(
            [*command, f"--python-version={python}", *platforms, f"--dest={folder}", requirement], check=True
        )
        (wheel,) = Path(folder).glob("*.whl")
        return dict(libraries(wheel, Path(folder)))


def libraries(wheel: Path, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The names of the shared objects that have GPU code, each with what it holds."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" not in Path(name).name or PASSED_OVER.match(Path(name).name):
                continue
            path = Path(archive.extract(name, folder))
            modules = fatbins.summary(path)["modules"]
            path.unlink()
            if modules:
                yield path.name, [f"{number} x {' '.join(code)}" for number, _, code in modules]


def dumped(kept: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """As JSON, one line for each group of alike modules."""
    return json.dumps(dict(sorted(kept.items())), indent=1) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])

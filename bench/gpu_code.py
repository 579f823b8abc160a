"""`python -m bench.gpu_code [NAME]…`: record the GPU code in the wheels of the GPU locks in docs/gpu-code.json.

For each environment, pip downloads the wheels of TensorFlow, cuDNN and cuBLAS, one at a time. Each wheel is read and
then removed. This needs up to 0.9 GB of disk space and, if nothing is recorded yet, downloads 12 GB in total. A
recorded wheel isn't read again. No GPU is needed. CUDA libraries that are copied from an image, and NVIDIA's own
TensorFlow, aren't in packages. `python -m bench.gpu_image` reads them in the image.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.backends import fatbins
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.model.environment import Device, Environment
from harness.project import Project

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "gpu-code.json"

#: The packages with GPU code: TensorFlow (two names), and cuDNN and cuBLAS for any version of CUDA.
WANTED = re.compile(r"tensorflow(-gpu)?|nvidia-(cudnn|cublas)-cu\d+")
#: The cuDNN libraries that all work needs. The engines are thousands of kernels for single architectures.
PASSED_OVER = re.compile(r"libcudnn_(engines|heuristic|graph)")

#: The GPU architectures, from the oldest to the newest.
PLATFORMS = ("manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28")


def main(names: Sequence[str]) -> None:
    """Read the wheels that aren't recorded yet."""
    kept = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    environments = load_environments(Project(ROOT))
    for environment in (environments[name] for name in names or environments):
        for requirement in list_wheels(environment):
            if requirement not in kept:
                kept[requirement] = describe_code(requirement, environment.python)
                KEPT.write_text(format_json(kept))
            print(requirement)


def list_wheels(environment: Environment) -> list[str]:
    """Return the requirements in the GPU lock whose wheels have GPU code; none if there is no such lock.

    TensorFlow of an image has none, and neither has a release that is only for CPUs.
    """
    if environment.gpu_image or Device.GPU not in environment.devices:
        return []
    lock = load_lock(Project(ROOT), environment, Device.GPU).lock
    return [f"{name}=={version}" for name, version in lock.pins.items() if WANTED.fullmatch(name)]


def describe_code(requirement: str, python: str) -> dict[str, list[str]]:
    """Return the GPU code of each library in a wheel, as `NUMBER x CODE …` for equal modules, the most common first."""
    with tempfile.TemporaryDirectory() as folder:
        return dict(read_libraries(download(requirement, python, Path(folder)), Path(folder)))


def download(requirement: str, python: str, folder: Path) -> Path:
    """Download the wheel of a requirement to a folder, for Linux on x86-64."""
    platforms = [f"--platform={tag}_x86_64" for tag in PLATFORMS]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*command, f"--python-version={python}", *platforms, f"--dest={folder}", requirement], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def read_libraries(
    wheel: Path, folder: Path, keep: Callable[[Path], object] = lambda _: None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of the shared objects with GPU code, each with its modules. `keep` gets the path of each."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" not in Path(name).name or PASSED_OVER.match(Path(name).name):
                continue
            path = Path(archive.extract(name, folder))
            modules = fatbins.count_modules(path)
            if modules:
                keep(path)
                yield path.name, [f"{number} x {' '.join(code)}" for code, number in modules.most_common()]
            path.unlink()


def format_json(kept: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Format as JSON, with one line for each group of equal modules."""
    return json.dumps(dict(sorted(kept.items())), indent=1) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])

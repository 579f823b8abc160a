"""`python -m bench.gpu_oracle [--ptx FOLDER] [NAME…]`: NVIDIA's assembler judges the PTX in the wheels, without a GPU.

A driver compiles PTX with the assembler of its CUDA version. The package index has this assembler, `ptxas`, for CUDA
11.7 to 13.0. For each environment, this module downloads TensorFlow's wheel, takes one module of each version and
target of PTX out of it, and assembles it with each `ptxas` for each compute capability. It writes:

- docs/gpu-code.json: the GPU code in the wheels
- images/gpu-code.json: the GPU code of each environment, for the catalog
- docs/gpu-ptx.json: for each version and target of PTX and each CUDA version, the compute capabilities for which
  `ptxas` assembles the PTX of all wheels, and those for which it refuses it

Then it compares the answers of `harness.plan.gpus.judge` with these facts, for drivers from R450 to R580. It prints the
number of answers that `ptxas` decides, and each contradiction. With a contradiction, the exit status is 1. Without
--ptx, this downloads 10 GB, one wheel at a time. FOLDER keeps the PTX, so that a wheel in it isn't downloaded again.
"""

import argparse
import json
import mmap
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path

from bench.gpu_code import KEPT, ROOT, download, format_json, list_wheels, read_libraries
from harness.backends import fatbins
from harness.backends.gpu_code import describe_libraries
from harness.environments.catalog import load_environments
from harness.files import write_atomically
from harness.model.environment import Environment
from harness.model.gpu import Capability, format_version
from harness.plan.gpus import CAPABILITIES, Support, judge
from harness.project import Project

VERDICTS = ROOT / "docs" / "gpu-ptx.json"
#: The keys of an environment in images/gpu-code.json.
KEYS = ("gpu_code", "ptx_alone", "cudnn_code")

#: The package with `ptxas` of each CUDA version.
ASSEMBLERS: Mapping[tuple[int, int], str] = {
    (11, 7): "nvidia-cuda-nvcc-cu11==11.7.99",
    (11, 8): "nvidia-cuda-nvcc-cu11==11.8.89",
    (12, 0): "nvidia-cuda-nvcc-cu12==12.0.140",
    (12, 1): "nvidia-cuda-nvcc-cu12==12.1.105",
    (12, 2): "nvidia-cuda-nvcc-cu12==12.2.140",
    (12, 3): "nvidia-cuda-nvcc-cu12==12.3.107",
    (12, 4): "nvidia-cuda-nvcc-cu12==12.4.131",
    (12, 5): "nvidia-cuda-nvcc-cu12==12.5.82",
    (12, 6): "nvidia-cuda-nvcc-cu12==12.6.85",
    (12, 8): "nvidia-cuda-nvcc-cu12==12.8.93",
    (12, 9): "nvidia-cuda-nvcc-cu12==12.9.86",
    (13, 0): "nvidia-cuda-nvcc==13.0.88",
}
#: A driver of each branch, and the newest CUDA version that it supports.
DRIVERS: Mapping[str, tuple[int, int]] = {
    "450.80.02": (11, 0),
    "470.82.01": (11, 4),
    "525.60.13": (12, 0),
    "535.104.05": (12, 2),
    "550.54.15": (12, 4),
    "570.86.10": (12, 8),
    "580.65.06": (13, 0),
}
#: The version of the PTX that XLA up to 2.21 generates.
XLA = "8.5"
#: The reasons of `judge` that are about PTX.
ABOUT_PTX = re.compile(r"too old to compile|no driver can compile")

#: For each version and target of PTX (`8.5/sm_90a`) and each CUDA version, whether each capability's code is assembled.
Verdicts = dict[str, dict[str, dict[str, bool]]]
#: Each library of each wheel, with its modules (`NUMBER x CODE …`).
Code = dict[str, dict[str, list[str]]]


def main() -> int:
    """Read the wheels, assemble their PTX, write the facts, and compare the catalog with them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ptx", metavar="FOLDER", type=Path, help="keeps the PTX of wheels")
    parser.add_argument("names", metavar="NAME", nargs="*", help="environments (default: all)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        ptx = arguments.ptx or Path(temporary)
        code: Code = json.loads(KEPT.read_text())
        catalog = _load_gpu_environments()
        for environment in (catalog[name] for name in arguments.names or catalog):
            for wheel in filter(_is_tensorflow, list_wheels(environment)):
                if not list(ptx.glob(f"{wheel}@*.ptx")):
                    print(f"reading {wheel}", flush=True)
                    code[wheel] = read_wheel(wheel, environment.python, ptx)
        write_atomically(KEPT, format_json(code))
        assemblers = {cuda: get_assembler(cuda, Path(temporary)) for cuda in ASSEMBLERS}
        verdicts = assemble_all(sorted(ptx.glob("*.ptx")), assemblers)
    write_atomically(VERDICTS, _format_verdicts(verdicts))
    project = Project(ROOT)
    write_atomically(project.gpu_code_file, json.dumps(describe_catalog(catalog.values(), code), indent=1) + "\n")
    return compare(_load_gpu_environments().values(), code, verdicts)


def _load_gpu_environments() -> dict[str, Environment]:
    """Return the environments that are for GPUs too, also if their GPU code isn't known yet."""
    return {name: environment for name, environment in load_environments(Project(ROOT)).items() if environment.cuda}


def _is_tensorflow(wheel: str) -> bool:
    return wheel.startswith("tensorflow")


def read_wheel(wheel: str, python: str, ptx: Path) -> dict[str, list[str]]:
    """Return the GPU code in a wheel, and put the smallest module of each kind of PTX into a folder."""
    ptx.mkdir(parents=True, exist_ok=True)
    smallest: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = download(wheel, python, Path(folder))

        def keep(library: Path) -> None:
            for kind, text in find_ptx(library):
                if b".entry" in text and not 0 < len(smallest.get(kind, b"")) <= len(text):
                    smallest[kind] = text

        modules = dict(read_libraries(path, Path(folder), keep))
    for kind, text in smallest.items():
        (ptx / f"{wheel}@{kind.replace('/', '_')}.ptx").write_bytes(text)
    return modules


def find_ptx(library: Path, most: int = 20_000) -> Iterator[tuple[str, bytes]]:
    """Yield the kind (`8.5/sm_90a`) and the text of each module of PTX in a library, up to a stored size in bytes."""
    with library.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if library.stat().st_size else b""
        for code, start, end, is_compressed in (entry for entries in fatbins.find_entries(data) for entry in entries):
            kind = code.partition(":")[2]
            if kind and end - start <= most:
                text = fatbins.decompress_block(data[start:end]) if is_compressed else bytes(data[start:end])
                yield kind, text[: text.rfind(b"}") + 1] + b"\n"


def get_assembler(cuda: tuple[int, int], folder: Path) -> Path:
    """Download `ptxas` of a CUDA version."""
    wheel = download(ASSEMBLERS[cuda], "3.11", folder / format_version(cuda))
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/bin/ptxas"))
        path = Path(archive.extract(name, wheel.parent))
    path.chmod(0o755)
    wheel.unlink()
    return path


def assemble_all(files: Sequence[Path], assemblers: Mapping[tuple[int, int], Path]) -> Verdicts:
    """Assemble each file with each assembler for each capability that it knows, and a header of XLA's for each."""
    texts = [(_parse_kind(file), file.read_text(errors="replace")) for file in files]
    headers = {capability: f"{XLA}/{_format_target(capability)}" for capability in CAPABILITIES if capability >= (9, 0)}
    tasks = [(kind, text, capability) for kind, text in texts for capability in CAPABILITIES]
    tasks += [(f"XLA {kind}", _make_header(kind), capability) for capability, kind in headers.items()]
    work = [(task, cuda) for task, cuda in product(tasks, assemblers) if task[2] in list_known(assemblers[cuda])]
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda item: assemble(assemblers[item[1]], item[0][1], item[0][2]), work)
        verdicts: Verdicts = {}
        for ((kind, _, capability), cuda), is_assembled in zip(work, results, strict=True):
            known = verdicts.setdefault(kind, {}).setdefault(format_version(cuda), {})
            known[format_version(capability)] = known.get(format_version(capability), True) and is_assembled
    print(f"assembled {len(files)} modules: {len(work)} runs of ptxas")
    return verdicts


def _parse_kind(file: Path) -> str:
    return file.stem.rpartition("@")[2].replace("_", "/", 1)


def _format_target(capability: Capability) -> str:
    return f"sm_{capability[0]}{capability[1]}"


def _make_header(kind: str) -> str:
    version, _, target = kind.partition("/")
    return f".version {version}\n.target {target}\n.address_size 64\n.visible .entry f() {{ ret; }}\n"


@cache
def list_known(assembler: Path) -> frozenset[Capability]:
    """Return the capabilities that an assembler knows. CUDA 13 knows none below 7.5, unlike its driver."""
    text = subprocess.run([assembler, "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"'(sm_\d+)'", text))
    return frozenset(capability for capability in CAPABILITIES if _format_target(capability) in known)


def assemble(assembler: Path, text: str, capability: Capability) -> bool:
    """Return whether PTX is assembled for a GPU of a capability. `--compile-only` leaves calls of other modules open.

    A driver also compiles PTX whose target is the GPU's own set of features, such as sm_90a for 9.0.
    """
    name = _format_target(capability)
    name += "a" if re.search(rf"^\.target {name}a\b", text, re.MULTILINE) else ""
    command = [assembler, "--compile-only", f"--gpu-name={name}", "--output-file=/dev/null", "-"]
    process = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return process.returncode == 0


def describe_catalog(environments: Iterable[Environment], code: Code) -> dict[str, dict[str, str]]:
    """Return the GPU code of each environment. Facts that no wheel contains are copied from the catalog."""
    described = {}
    for environment in environments:
        facts = {key: getattr(environment, key) for key in KEYS}
        wheels = list_wheels(environment)
        if wheels and code.keys() >= set(wheels):
            libraries = {path: _list_modules(lines) for wheel in wheels for path, lines in code[wheel].items()}
            read = describe_libraries(libraries)
            facts |= {"gpu_code": read.gpu_code, "ptx_alone": read.ptx_alone}
            facts["cudnn_code"] = read.cudnn_code or environment.cudnn_code
        described[environment.name] = {key: value for key, value in facts.items() if value}
    return described


def _list_modules(lines: Iterable[str]) -> list[list[str]]:
    return [line.split()[2:] for line in lines]


def find_needed(modules: Iterable[Sequence[str]], capability: Capability) -> set[str]:
    """Return the kinds of PTX that a driver compiles for a capability: of each module without machine code for it.

    A module without any machine code is linked to code elsewhere. One without PTX for the capability is for older GPUs.
    """
    number, needed = capability[0] * 10 + capability[1], set()
    for module in modules:
        machine = [fatbins.parse_architecture(code) for code in module if code.startswith("sm_")]
        if machine and not any(own // 10 == number // 10 and own <= number for own in machine):
            ptx = [code for code in module if code.startswith("ptx_") and fatbins.parse_architecture(code) <= number]
            needed |= {max(ptx, key=fatbins.parse_architecture).partition(":")[2]} if ptx else set()
    return needed


def decide(needed: Iterable[str], capability: Capability, cuda: tuple[int, int], verdicts: Verdicts) -> bool | None:
    """Return whether `ptxas` of a driver's CUDA version assembles all needed PTX; None if no `ptxas` decides it.

    For a CUDA version before the oldest `ptxas`, only its refusals count.
    """
    oldest = min(ASSEMBLERS)
    known = [
        verdicts.get(kind, {}).get(format_version(max(cuda, oldest)), {}).get(format_version(capability))
        for kind in needed
    ]
    if False in known:
        return False
    return True if known and all(known) and cuda >= oldest else None


def compare(environments: Iterable[Environment], code: Code, verdicts: Verdicts) -> int:
    """Print how many answers of the plan `ptxas` decides, and each contradiction. Return the exit status."""
    counts: Counter[str] = Counter()
    contradictions = []
    modules_of = {environment: _list_tensorflow(environment, code) for environment in environments}
    for (environment, modules), capability, (driver, cuda) in product(
        modules_of.items(), CAPABILITIES, DRIVERS.items()
    ):
        needed = find_needed(modules, capability)
        answer, verdict = judge(environment, capability, cuda, driver), decide(needed, capability, cuda, verdicts)
        is_refused = answer.is_impossible and bool(ABOUT_PTX.search(answer.reason))
        if not modules:
            counts["in images that were not read"] += 1
        elif not needed:
            counts["without PTX to compile"] += 1
        elif answer.is_impossible and not is_refused:
            counts["refused for another reason"] += 1
        elif verdict is None:
            counts["without a ptxas that decides"] += 1
        else:
            counts["decided by ptxas"] += 1
            # without machine code in some modules, the answer is either a refusal, or that the driver compiles them
            expected = {Support.PARTLY, Support.LAZY, Support.COMPILED, Support.OLDER} if verdict else {Support.CANNOT}
            if answer.support not in expected:
                contradictions.append(
                    f"{environment.name} on {format_version(capability)} with {driver}: {answer.support.value}, "
                    f"but ptxas {'assembles' if verdict else 'refuses'} {' and '.join(sorted(needed))}"
                )
    for line in contradictions:
        print(line)
    print(f"{counts.total()} answers: {', '.join(f'{number} {name}' for name, number in counts.most_common())}")
    print(f"contradictions: {len(contradictions)}")
    return 1 if contradictions else 0


def _list_tensorflow(environment: Environment, code: Code) -> list[list[str]]:
    """Return the modules in an environment's wheel of TensorFlow; empty if TensorFlow comes from an image."""
    wheels = filter(_is_tensorflow, list_wheels(environment))
    return [module for wheel in wheels for lines in code[wheel].values() for module in _list_modules(lines)]


def load_verdicts() -> Verdicts:
    """Return the recorded verdicts."""
    return {
        kind: {
            cuda: dict.fromkeys(known["assembles"].split(), True) | dict.fromkeys(known["refuses"].split(), False)
            for cuda, known in by_cuda.items()
        }
        for kind, by_cuda in json.loads(VERDICTS.read_text()).items()
    }


def _format_verdicts(verdicts: Verdicts) -> str:
    """Format as JSON, with two lists of capabilities for each CUDA version."""
    document = {
        kind: {
            cuda: {
                name: " ".join(capability for capability, is_assembled in known.items() if is_assembled is wanted)
                for name, wanted in (("assembles", True), ("refuses", False))
            }
            for cuda, known in by_cuda.items()
        }
        for kind, by_cuda in sorted(verdicts.items())
    }
    return re.sub(r"\{\s+(\"assembles.*)\s+(\"refuses.*)\s+\}", r"{\1 \2}", json.dumps(document, indent=1)) + "\n"


if __name__ == "__main__":
    sys.exit(main())

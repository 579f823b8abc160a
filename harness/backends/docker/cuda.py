"""The proof, without a GPU, that a GPU image has every CUDA library its TensorFlow will load.

`cuda_probe.py` runs in a container: TensorFlow's own loader opens what it will ask for, then each library is opened by
itself and asked for its version. Here that is set against the catalogue: what TensorFlow was built with.

TensorFlow links no CUDA library: it opens each by name when it needs it, so that one wheel starts without a GPU too.
The names are those of its own loader (`GetCublasDsoHandle` and so on).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backends.docker import cuda_probe
from harness.backends.docker.container import CELL_LABEL, RUN_LABEL, Specification, created
from harness.backends.docker.engine import Engine
from harness.backends.text import Tail, one_line
from harness.model.environment import Environment
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits

#: From this CUDA on, the number in each library's name, in the order of _NAMES: each counts its own binary interface.
_NUMBERS = {
    (10, 0): ("10.0", "10.0", "10.0", "10.0", "10.0", "10.0"),
    (10, 1): ("10.1", "10", "10", "10", "10", "10"),
    (11, 0): ("11.0", "11", "10", "10", "10", "11"),
    (11, 1): ("11.0", "11", "10", "10", "11", "11"),
    (12, 0): ("12", "12", "11", "10", "11", "12"),
}
_NAMES = {
    "CudaRuntime": "libcudart",
    "Cublas": "libcublas",
    "Cufft": "libcufft",
    "Curand": "libcurand",
    "Cusolver": "libcusolver",
    "Cusparse": "libcusparse",
}

#: Releases that were made with an older one leave this library to cuBLAS, which opens it by itself.
_CUBLAS_LT_FROM = (11, 0)
#: Up to CUDA 11 its name has CUDA's minor version.
_CUPTI_MAJOR_FROM = (12, 0)

#: What cuDNN opens by itself, by its major version. 7 is in one piece.
_CUDNN_PARTS = {
    8: ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train"),
    9: ("graph", "engines_precompiled", "engines_runtime_compiled", "heuristic", "ops", "cnn", "adv"),
}

#: How long it may take, in seconds: TensorFlow starts once, and reads up to four gigabytes of libraries.
_SECONDS = 300.0

_PROBE = "cuda_probe.py"


@dataclass(frozen=True, slots=True)
class CudaReport:
    """What a GPU image has of CUDA.

    `opened` maps each library that TensorFlow asks for, and what those open by themselves, to its version (empty where
    it does not tell); `missing` maps those that do not open to the loader's words. `disagreements` are sentences: a
    library older than TensorFlow was built with, a wheel that the catalogue does not describe. `notes` are sentences
    too, of what is not there and not needed. `by_tensorflow` is False where TensorFlow's own loader could not be asked
    and the list was made from the catalogue's CUDA alone. `cuda` and `cudnn` are what it was built with.
    """

    environment: str
    cuda: str
    cudnn: str
    opened: Mapping[str, str]
    missing: Mapping[str, str]
    disagreements: Sequence[str] = ()
    notes: Sequence[str] = ()
    by_tensorflow: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether everything opens and nothing disagrees."""
        return not self.missing and not self.disagreements

    def lines(self) -> list[str]:
        """The report for a terminal: one line where all is well, else one for each library and disagreement."""
        if self.is_complete:
            return [self._summary(), *self.notes]
        opened = [f"{soname}: {version or 'opens'}" for soname, version in self.opened.items()]
        missing = [f"{soname}: MISSING, {words}" for soname, words in self.missing.items()]
        return [*opened, *missing, *self.disagreements, *self.notes]

    def _summary(self) -> str:
        cuda, cudnn = _version(self.opened, "libcudart."), _version(self.opened, "libcudnn.")
        return (
            f"{len(self.opened)} CUDA libraries open: CUDA {cuda or 'unknown'} (built for {self.cuda}), "
            f"cuDNN {cudnn or 'unknown'} (built for {self.cudnn})"
        )


def check_cuda(engine: Engine, image: str, environment: Environment) -> CudaReport:
    """Run the probe in a container of the image, and judge what it found. `image` is an id or a name.

    Raises CannotRunHereError where it does not run to its end.
    """
    expected = libraries(environment.cuda, environment.cudnn)
    sonames = [soname for library in expected for soname in library.sonames]
    specification = Specification(
        image=image,
        command=("python", _PROBE, *sonames, *parts(environment.cudnn)),
        environ={"PYTHONDONTWRITEBYTECODE": "1"},
        labels={RUN_LABEL: "images", CELL_LABEL: "verify"},
        limits=Limits(seconds=_SECONDS),
    )
    stdout, stderr = Tail(1024**2), Tail()
    with created(engine, specification) as container:
        container.put({_PROBE: Path(cuda_probe.__file__).read_bytes()})
        _, ending = container.run(stdout.feed, stderr.feed)
    try:
        found: dict[str, Any] = json.loads(stdout.text())
    except ValueError:
        raise CannotRunHereError(
            f"{environment.name}'s CUDA libraries could not be checked ({ending}):\n{stderr.text()}"
        ) from None
    return judge(environment, found)


def judge(environment: Environment, found: Mapping[str, Any]) -> CudaReport:
    """Set what the probe printed against the catalogue."""
    asked: Mapping[str, Sequence[Sequence[str]]] = found["asked"]
    expected = {library.name: library.sonames for library in libraries(environment.cuda, environment.cudnn)}
    needed = {name: tuple(soname for soname, _ in tried) for name, tried in asked.items()} or expected
    words = {soname: why for tried in asked.values() for soname, why in tried if why} | found["closed"]
    wanted = [*needed.values(), *((part,) for part in parts(environment.cudnn))]
    opened, missing = _split(wanted, found["opened"], words)
    xla = _xla(found)
    # TensorFlow's own images, which CUDA is copied from where it has no packages, came without XLA's tools
    needs_xla = not environment.cuda_image
    return CudaReport(
        environment=environment.name,
        cuda=environment.cuda,
        cudnn=environment.cudnn,
        opened=opened,
        missing=missing,
        disagreements=[
            *([one_line(found["trouble"])] if found["trouble"] else []),
            *_other_names(needed, expected),
            *_too_old(environment, opened),
            *_drifted(environment, found["build"]),
            *(xla if needs_xla else ()),
        ],
        notes=() if needs_xla else xla,
        by_tensorflow=bool(asked),
    )


def _split(
    wanted: Iterable[Sequence[str]], versions: Mapping[str, str], words: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Of each library's names the first that opens, with its version; else the first, with the loader's words."""
    opened, missing = {}, {}
    for sonames in wanted:
        found = next((soname for soname in sonames if soname in versions), None)
        if found is not None:
            opened[found] = versions[found]
        else:
            missing[sonames[0]] = one_line(words.get(sonames[0], "it was not tried"))
    return opened, missing


def _other_names(needed: Mapping[str, Sequence[str]], expected: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"TensorFlow asks for {sonames[0]}, and the catalogue's CUDA has {expected[name][0]}."
        for name, sonames in needed.items()
        if name in expected and sonames[0] not in expected[name]
    ]


def _too_old(environment: Environment, opened: Mapping[str, str]) -> list[str]:
    built = {"CUDA": ("libcudart.", environment.cuda), "cuDNN": ("libcudnn.", environment.cudnn)}
    found = {what: (_version(opened, start), version) for what, (start, version) in built.items()}
    return [
        f"{what} is {has}, and TensorFlow was built with {version}."
        for what, (has, version) in found.items()
        if has and not is_enough(has, version)
    ]


def _drifted(environment: Environment, build: Mapping[str, Any]) -> list[str]:
    """Where the wheel's own build info is not what the catalogue says. Releases before 2.3 have none."""
    pairs = {
        "CUDA": (_digits(build.get("cuda_version"), 2), environment.cuda),
        "cuDNN": (_digits(build.get("cudnn_version"), 1), environment.cudnn.partition(".")[0]),
        "the GPU code": (" ".join(build.get("cuda_compute_capabilities") or ()), environment.gpu_code),
    }
    return [
        f"The wheel says that {what} is {says}, the catalogue {known}."
        for what, (says, known) in pairs.items()
        if says and says != known
    ]


def _digits(version: object, count: int) -> str:
    return ".".join(str(version or "").split(".")[:count])


def _xla(found: Mapping[str, Any]) -> list[str]:
    missing = {
        "ptxas": "ptxas is not there: XLA leaves its work to the driver, or fails.",
        "libdevice": "libdevice is not there: XLA compiles no function for a GPU that needs it, such as tanh.",
    }
    return [sentence for what, sentence in missing.items() if not found[what]]


def _version(opened: Mapping[str, str], start: str) -> str:
    return next((version for soname, version in opened.items() if soname.startswith(start)), "")


@dataclass(frozen=True, slots=True)
class CudaLibrary:
    """A library by the name that TensorFlow's loader has for it; it takes the first of `sonames` that opens."""

    name: str
    sonames: tuple[str, ...]


def libraries(cuda: str, cudnn: str) -> tuple[CudaLibrary, ...]:
    """What a TensorFlow built with this CUDA and cuDNN (each `X.Y`) may ask for. No release asks for all of them.

    Raises ValueError for a CUDA before 10.0.
    """
    version = _numbers(cuda)
    numbers = _NUMBERS[max(known for known in _NUMBERS if known <= version)]
    named = zip(_NAMES.items(), numbers, strict=True)
    found = [CudaLibrary(name, (f"{file}.so.{number}",)) for (name, file), number in named]
    if version >= _CUBLAS_LT_FROM:
        found.append(CudaLibrary("CublasLt", (f"libcublasLt.so.{version[0]}",)))
    cupti = str(version[0]) if version >= _CUPTI_MAJOR_FROM else cuda
    # where CUDA is newer than at build time, CUPTI's name has changed, and the plain name is tried next
    found.append(CudaLibrary("Cupti", (f"libcupti.so.{cupti}", "libcupti.so")))
    found.append(CudaLibrary("Cudnn", (f"libcudnn.so.{_numbers(cudnn)[0]}",)))
    return tuple(found)


def parts(cudnn: str) -> tuple[str, ...]:
    """The libraries that this cuDNN opens by itself."""
    major = _numbers(cudnn)[0]
    return tuple(f"libcudnn_{part}.so.{major}" for part in _CUDNN_PARTS.get(major, ()))


def is_enough(found: str, built: str) -> bool:
    """Whether a library of version `found` serves what was built with `built`: the same major version, and no older."""
    return _numbers(found)[0] == _numbers(built)[0] and _numbers(found) >= _numbers(built)


def _numbers(version: str) -> tuple[int, int]:
    major, _, rest = version.partition(".")
    return int(major), int(rest.partition(".")[0] or 0)

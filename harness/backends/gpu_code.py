"""The GPU code in a wheel and its libraries, from their fat binaries, in the catalog's notation.

Each group of equal modules is described by its code, as in `fatbins.py`: `sm_80` is machine code, and
`ptx_90:8.5/sm_90a` is PTX of version 8.5 with the target sm_90a, labeled 9.0.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import PurePath

from harness.model.environment import Environment

Code = Collection[str]

#: The libraries that every use of cuDNN needs. In _UNIFORM, each module has code for the same architectures. In _MIXED,
#: some modules are only for single architectures. The libraries with cuDNN's engines contain only such modules, and
#: cuDNN searches them for an engine that runs on the GPU.
_UNIFORM = re.compile(r"libcudnn_(ops|adv)")
_MIXED = re.compile(r"libcudnn(_cnn\w*)?\.so")
_CUBLAS = re.compile(r"libcublas(Lt)?\.so")


@dataclass(frozen=True, slots=True)
class LibraryCode:
    """The GPU code in an image, in the notation of images/gpu-code.json; empty if nothing was found.

    `gpu_code` and `ptx_alone` describe TensorFlow's own libraries. `cudnn_code` and `cublas_code` contain the machine
    code in these libraries.
    """

    gpu_code: str = ""
    ptx_alone: str = ""
    cudnn_code: str = ""
    cublas_code: str = ""


def describe_libraries(libraries: Mapping[str, Iterable[Code]]) -> LibraryCode:
    """Return the catalog's facts about the libraries of an image or of wheels, by path."""
    by_path = {path: [frozenset(code) for code in modules] for path, modules in libraries.items()}
    cudnn = {path: modules for path, modules in by_path.items() if _matches(_UNIFORM, path) or _matches(_MIXED, path)}
    cublas = {path: modules for path, modules in by_path.items() if _matches(_CUBLAS, path)}
    tensorflow_modules = [
        code for path, modules in by_path.items() if not PurePath(path).name.startswith("libcu") for code in modules
    ]
    return LibraryCode(*_describe_wheel(tensorflow_modules), _find_common_code(cudnn), _find_common_code(cublas))


def replace_assumed_code(environment: Environment, libraries: Mapping[str, Iterable[Code]]) -> Environment | None:
    """Return the environment with the code of its libraries instead of assumed code; None if they contain no GPU code.

    `libraries` contains the code of the modules in each library, by path.
    """
    code = describe_libraries(libraries)
    if not code.gpu_code:
        return None
    return replace(
        environment,
        gpu_code=code.gpu_code,
        ptx_alone=code.ptx_alone,
        cudnn_code=code.cudnn_code or environment.cudnn_code,
        gpu_code_of="",
    )


def _matches(pattern: re.Pattern[str], path: str) -> bool:
    return pattern.match(PurePath(path).name) is not None


def _describe_wheel(modules: Sequence[frozenset[str]]) -> tuple[str, str]:
    """Return `gpu_code` (the architectures of all machine code) and `ptx_alone`.

    An entry of `gpu_code` starts with `compute_` if a module also has PTX for the architecture, otherwise with `sm_`.
    """
    machine, ptx = (_find_architectures(frozenset().union(*modules), kind) for kind in ("sm", "ptx"))
    ptx_versions = {
        architecture: version
        for code in modules
        for architecture, version in _find_ptx_alone(code)
        if architecture in machine
    }
    return (
        " ".join(f"{'compute' if architecture in ptx else 'sm'}_{architecture}" for architecture in machine),
        " ".join(f"compute_{architecture} of PTX {version}" for architecture, version in ptx_versions.items()),
    )


def _find_ptx_alone(code: Code) -> list[tuple[int, str]]:
    """Return the architectures for which a module has PTX, but no machine code that runs on them, with `V for T`.

    A module without any machine code isn't counted: it is linked to code elsewhere.
    """
    machine = _find_architectures(code, "sm")
    found = [match for entry in code if (match := re.fullmatch(r"ptx_(\d+):([\d.]+)/(\w+)", entry))]
    by_architecture = [(int(match[1]), f"{match[2]} for {match[3]}") for match in found]
    return [
        (architecture, ptx)
        for architecture, ptx in by_architecture
        if machine and not any(own // 10 == architecture // 10 and own <= architecture for own in machine)
    ]


def _find_common_code(parts: Mapping[str, Sequence[frozenset[str]]]) -> str:
    """Return the machine code that all parts of a library contain."""
    part_codes = [
        reduce(frozenset.intersection if _matches(_UNIFORM, path) else frozenset.union, modules)
        for path, modules in parts.items()
        if modules
    ]
    common = reduce(frozenset.intersection, part_codes) if part_codes else frozenset()
    return " ".join(f"sm_{architecture}" for architecture in _find_architectures(common, "sm"))


def _find_architectures(code: Code, kind: str) -> list[int]:
    """Return the architectures of one kind of code, in order."""
    return sorted({int(match[1]) for entry in code if (match := re.match(rf"{kind}_(\d+)", entry))})

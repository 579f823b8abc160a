"""The CUDA libraries that TensorFlow loads at run time, by the CUDA and cuDNN that it was built with.

TensorFlow links none of them: it opens each by name when it needs it, so that one wheel starts without a GPU too. The
names are those of its own loader (`GetCublasDsoHandle` and so on).
"""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Library:
    """A library by the name that TensorFlow's loader has for it; it takes the first of `sonames` that opens."""

    name: str
    sonames: tuple[str, ...]


def libraries(cuda: str, cudnn: str) -> tuple[Library, ...]:
    """What a TensorFlow built with this CUDA and cuDNN (each `X.Y`) may ask for. No release asks for all of them.

    Raises ValueError for a CUDA before 10.0.
    """
    version = _numbers(cuda)
    numbers = _NUMBERS[max(known for known in _NUMBERS if known <= version)]
    found = [
        Library(name, (f"{file}.so.{number}",)) for (name, file), number in zip(_NAMES.items(), numbers, strict=True)
    ]
    if version >= _CUBLAS_LT_FROM:
        found.append(Library("CublasLt", (f"libcublasLt.so.{version[0]}",)))
    cupti = str(version[0]) if version >= _CUPTI_MAJOR_FROM else cuda
    # where CUDA is newer than at build time, CUPTI's name has changed, and the plain name is tried next
    found.append(Library("Cupti", (f"libcupti.so.{cupti}", "libcupti.so")))
    found.append(Library("Cudnn", (f"libcudnn.so.{_numbers(cudnn)[0]}",)))
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

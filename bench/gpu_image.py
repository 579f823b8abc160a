"""`python -m bench.gpu_image NAME…`: check that GPU images have every CUDA library that their TensorFlow loads.

The images must be built. The check doesn't need a GPU. Exit code 1 means that an image differs from the catalog.

In a container, `gpu_image_probe.py` calls TensorFlow's own loader, then opens each library and reads its version. Then
`fatbins.py` reads the GPU code in TensorFlow, cuDNN and cuBLAS. This module compares the results with the catalog,
which lists the CUDA and cuDNN versions of TensorFlow's build, and the GPUs that it supports.

TensorFlow isn't linked to any CUDA library. It opens each library by name when it needs the library, so that one wheel
also starts without a GPU. The names are the names in TensorFlow's own loader (`GetCublasDsoHandle` and so on).
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import gpu_image_probe
from harness.backends import fatbins
from harness.backends.docker import recipe
from harness.backends.docker.container import run_script
from harness.backends.docker.engine import Engine, connect
from harness.backends.gpu_code import LibraryCode, describe_libraries
from harness.backends.untrusted_text import join_lines
from harness.files import parse_json
from harness.model.environment import Device, Environment
from harness.model.errors import CannotRunHereError, HarnessError
from harness.model.gpu import GpuCode, format_version
from harness.session import images

#: The first CUDA version with these numbers in the libraries' file names, and the numbers in the order of _NAMES. They
#: differ, because each library counts the versions of its own binary interface.
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

#: The first CUDA version with which TensorFlow's loader opens cuBLASLt. In older builds, cuBLAS itself opens it.
_CUBLAS_LT_FROM = (11, 0)
#: The first CUDA version for which CUPTI's file name has only the major version.
_CUPTI_MAJOR_FROM = (12, 0)

#: The libraries that cuDNN loads, by its major version. Version 7 is one library.
_CUDNN_PARTS = {
    8: ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train"),
    9: ("graph", "engines_precompiled", "engines_runtime_compiled", "heuristic", "ops", "cnn", "adv"),
}

#: The CUDA tools that XLA needs, and the effect if one is missing.
_XLA = {
    "ptxas": "ptxas is missing: XLA leaves the compilation to the driver, or fails.",
    "libdevice": "libdevice is missing: XLA can't compile functions that need it for a GPU, such as tanh.",
}

#: Time limit of a script in seconds. In this time, TensorFlow starts once, and up to 4 GB of libraries are read.
_CHECK_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class CudaReport:
    """The CUDA libraries of a GPU image.

    `opened` maps each library that TensorFlow loads, directly or through another library, to its version (empty if
    unknown). `missing` maps each library that can't be opened to the loader's message. `disagreements` are sentences,
    for example about a library that is older than in TensorFlow's build. `notes` are other sentences, for example about
    missing tools that this image doesn't need.
    """

    environment: Environment
    opened: Mapping[str, str]
    missing: Mapping[str, str]
    disagreements: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all libraries can be opened and there are no disagreements."""
        return not self.missing and not self.disagreements

    def lines(self) -> list[str]:
        """Return the lines for a terminal: one line if all is complete, otherwise one per library and disagreement."""
        if self.is_complete:
            versions = [
                f"{name} {_find_version(self.opened, start) or 'unknown'} (built for {build_version})"
                for name, start, build_version in _list_versions(self.environment)
            ]
            return [f"{len(self.opened)} CUDA libraries open: {', '.join(versions)}", *self.notes]
        opened_lines = [f"{soname}: {version or 'opens'}" for soname, version in self.opened.items()]
        missing_lines = [f"{soname}: MISSING, {words}" for soname, words in self.missing.items()]
        return [*opened_lines, *missing_lines, *self.disagreements, *self.notes]


def main(names: Sequence[str]) -> int:
    """Check the images, print the results, and return the exit code."""
    are_complete = True
    try:
        _, requirements = images.select_images(names, Device.GPU)
        engine = connect()
        for environment, tag in ((entry.environment, recipe.make_tag(entry)) for entry in requirements):
            report = check_image(engine, tag, environment)
            are_complete = are_complete and report.is_complete
            for line in report.lines():
                print(f"{environment.name}: {line}", flush=True)
    except HarnessError as error:
        sys.exit(str(error))
    return 0 if are_complete else 1


def check_image(engine: Engine, image: str, environment: Environment) -> CudaReport:
    """Run the probe in a container of the image, and judge its results. `image` is an id or a name.

    Raises CannotRunHereError if the probe doesn't finish.
    """
    expected = list_libraries(environment.cuda, environment.cudnn).values()
    sonames = [*(soname for names in expected for soname in names), *list_cudnn_parts(environment.cudnn)]

    def run_probe(script: str, arguments: Sequence[str]) -> dict[str, Any]:
        source = Path(script).read_bytes()
        stdout, stderr, ending = run_script(engine, image, source, arguments, run="images", seconds=_CHECK_SECONDS)
        try:
            return dict(parse_json(stdout))
        except (ValueError, TypeError):
            raise CannotRunHereError(f"{environment.name} could not be checked ({ending}):\n{stderr}") from None

    probe = run_probe(gpu_image_probe.__file__, sonames)
    libraries_to_read = [path for path in probe["files"].values() if re.search(r"/libcu(dnn|blas)", path)]
    return judge(environment, probe, run_probe(fatbins.__file__, [*probe["folders"], *libraries_to_read]))


def judge(environment: Environment, probe: Mapping[str, Any], code: Mapping[str, Any]) -> CudaReport:
    """Compare the output of the probe and of `fatbins.py` with the catalog."""
    attempts: Mapping[str, Sequence[Sequence[str]]] = probe["asked"]
    expected = list_libraries(environment.cuda, environment.cudnn)
    # if TensorFlow's own loader couldn't be called, the catalog's CUDA determines the libraries
    needed = {name: tuple(soname for soname, _ in tries) for name, tries in attempts.items()} or expected
    messages = {soname: reason for tries in attempts.values() for soname, reason in tries if reason} | probe["closed"]
    groups = [*needed.values(), *((part,) for part in list_cudnn_parts(environment.cudnn))]
    opened, missing = _split_by_result(groups, probe["opened"], messages)
    xla = [sentence for tool, sentence in _XLA.items() if not probe[tool]]
    gpu_code = describe_libraries(code)
    # if CUDA has no packages, it is copied from TensorFlow's own images, which don't contain XLA's tools
    needs_xla = not environment.cuda_image
    return CudaReport(
        environment,
        opened,
        missing,
        disagreements=[
            *([join_lines(probe["trouble"])] if probe["trouble"] else []),
            *_find_other_names(needed, expected),
            *_find_old_libraries(environment, opened),
            *_find_differences(environment, probe["build"]),
            *_compare_code(environment, gpu_code),
            *_find_import_errors(environment, probe["broken"]),
            *(xla if needs_xla else ()),
        ],
        notes=[*_format_code(gpu_code), *(() if needs_xla else xla)],
    )


def _split_by_result(
    groups: Iterable[Sequence[str]], versions: Mapping[str, str], messages: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings: the libraries that can be opened, with versions, and the libraries that can't, with errors.

    Each group contains the possible names of one library, in the order in which the loader tries them.
    """
    opened, missing = {}, {}
    for sonames in groups:
        opened_name = next((soname for soname in sonames if soname in versions), None)
        if opened_name is not None:
            opened[opened_name] = versions[opened_name]
        else:
            missing[sonames[0]] = join_lines(messages.get(sonames[0], "it was not tried"))
    return opened, missing


def _find_other_names(needed: Mapping[str, Sequence[str]], expected: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"TensorFlow loads {sonames[0]}, but the CUDA and cuDNN in the catalog provide {expected[name][0]}."
        for name, sonames in needed.items()
        if name in expected and sonames[0] not in expected[name]
    ]


def _find_old_libraries(environment: Environment, opened: Mapping[str, str]) -> list[str]:
    return [
        f"{name} is {version}, but TensorFlow was built with {build_version}."
        for name, start, build_version in _list_versions(environment)
        if (version := _find_version(opened, start)) and not is_enough(version, build_version)
    ]


def _list_versions(environment: Environment) -> list[tuple[str, str, str]]:
    """Return the libraries with a version to compare: name, file name prefix, and TensorFlow's build version."""
    return [("CUDA", "libcudart.", environment.cuda), ("cuDNN", "libcudnn.", environment.cudnn)]


def _find_version(opened: Mapping[str, str], start: str) -> str:
    return next((version for soname, version in opened.items() if soname.startswith(start)), "")


def _find_differences(environment: Environment, build: Mapping[str, Any]) -> list[str]:
    """Return the differences between the wheel's build info and the catalog. Releases before 2.3 have no build info."""
    cuda, cudnn = (str(build.get(key) or "").split(".") for key in ("cuda_version", "cudnn_version"))
    pairs = {
        "CUDA": (".".join(cuda[:2]), environment.cuda),
        "cuDNN": (cudnn[0], environment.cudnn.partition(".")[0]),
        "the GPU code": (" ".join(build.get("cuda_compute_capabilities") or ()), environment.gpu_code),
    }
    # builds list the code in any order
    return [
        f"According to the wheel, {subject} is {wheel_value}, but according to the catalog, it is {catalog_value}."
        for subject, (wheel_value, catalog_value) in pairs.items()
        if wheel_value and sorted(wheel_value.split()) != sorted(catalog_value.split())
    ]


def _find_import_errors(environment: Environment, broken: Mapping[str, str]) -> list[str]:
    """Return a sentence for each module that an image with its own TensorFlow can't import.

    Other images contain these modules, because their locks list them.
    """
    if not environment.gpu_image:
        return []
    return [f"The module {name} can't be imported ({join_lines(message)})." for name, message in broken.items()]


def _format_code(gpu_code: LibraryCode) -> list[str]:
    """Return the GPU code on one line; empty if none was read."""
    ptx_note = f" ({gpu_code.ptx_alone} alone in some kernels)" if gpu_code.ptx_alone else ""
    parts = [
        ("TensorFlow", gpu_code.gpu_code + ptx_note),
        ("cuDNN", gpu_code.cudnn_code),
        ("cuBLAS", gpu_code.cublas_code),
    ]
    descriptions = [f"{name} {code}" for name, code in parts if code]
    return [f"GPU code: {', '.join(descriptions)}"] if descriptions else []


def _compare_code(environment: Environment, gpu_code: LibraryCode) -> list[str]:
    """Return the differences between the GPU code and the catalog.

    If the catalog doesn't list cuDNN's code, any code is accepted. The catalog doesn't list cuBLAS's code, which must
    support the catalog's GPUs.
    """
    pairs = {
        "The libraries of TensorFlow contain this GPU code": ("gpu_code", gpu_code.gpu_code, bool(gpu_code.gpu_code)),
        "The libraries of TensorFlow contain this PTX without machine code": (
            "ptx_alone",
            gpu_code.ptx_alone,
            bool(gpu_code.gpu_code),
        ),
        "cuDNN has machine code for": (
            "cudnn_code",
            gpu_code.cudnn_code,
            bool(gpu_code.cudnn_code and environment.cudnn_code),
        ),
    }
    differences = [
        f"{subject} {found_code or 'nothing'}; `{key}` in images/gpu-code.json is "
        f"{getattr(environment, key) or 'not set'}."
        for subject, (key, found_code, is_known) in pairs.items()
        if is_known and found_code != getattr(environment, key)
    ]
    wheel, cudnn, cublas = (
        GpuCode.parse(text) for text in (environment.gpu_code, environment.cudnn_code, gpu_code.cublas_code)
    )
    missing = [
        format_version(architecture)
        for architecture in wheel.machine
        if cublas.machine and not cublas.runs_on(architecture) and (not cudnn.machine or cudnn.runs_on(architecture))
    ]
    if missing:
        differences.append(f"cuBLAS contains no code for {', '.join(missing)}, which the catalog lists as supported.")
    return differences


def list_libraries(cuda: str, cudnn: str) -> dict[str, tuple[str, ...]]:
    """Return the libraries that a build with this CUDA and cuDNN (each `X.Y`) may load; no release loads all of them.

    The result maps the loader's name of a library to file names. The loader uses the first name that can be opened.
    Raises ValueError for a CUDA before 10.0.
    """
    version = _parse_numbers(cuda)
    numbers = _NUMBERS[max(release for release in _NUMBERS if release <= version)]
    sonames = {name: (f"{file}.so.{number}",) for (name, file), number in zip(_NAMES.items(), numbers, strict=True)}
    if version >= _CUBLAS_LT_FROM:
        sonames["CublasLt"] = (f"libcublasLt.so.{version[0]}",)
    cupti = str(version[0]) if version >= _CUPTI_MAJOR_FROM else cuda
    # with a newer CUDA than at build time, CUPTI has another name, and the plain name is tried next
    return {
        **sonames,
        "Cupti": (f"libcupti.so.{cupti}", "libcupti.so"),
        "Cudnn": (f"libcudnn.so.{_parse_numbers(cudnn)[0]}",),
    }


def list_cudnn_parts(cudnn: str) -> tuple[str, ...]:
    """Return the libraries that this cuDNN opens by itself."""
    major = _parse_numbers(cudnn)[0]
    return tuple(f"libcudnn_{part}.so.{major}" for part in _CUDNN_PARTS.get(major, ()))


def is_enough(found: str, built: str) -> bool:
    """Return whether a library of version `found` works for a build with `built`: same major version, not older."""
    return _parse_numbers(found)[0] == _parse_numbers(built)[0] and _parse_numbers(found) >= _parse_numbers(built)


def _parse_numbers(version: str) -> tuple[int, int]:
    major, _, remainder = version.partition(".")
    return int(major), int(remainder.partition(".")[0] or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

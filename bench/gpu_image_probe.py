"""Script for GPU images: opens CUDA's libraries, and prints the results as JSON.

    python gpu_image_probe.py SONAME...

    {"asked":  {NAME: [[SONAME, WORDS], ...]},   files that TensorFlow's own loader tried, by the loader's name for a
                                                 library; WORDS is the system's error, empty if the file was opened
     "opened": {SONAME: VERSION},                each library that can be opened, with its version
     "files":  {SONAME: PATH},                   the file of each opened library
     "closed": {SONAME: WORDS},                  each library that can't be opened, with the system's error
     "ptxas": VERSION, "libdevice": PATH,        XLA's assembler and device library, empty if missing
     "build": {...}, "folders": [PATH, ...],     TensorFlow's build info, and the folders of its own libraries
     "broken": {MODULE: WORDS},                  the errors of imports of MODULES
     "trouble": WORDS}                           why TensorFlow's loader could not be called; empty if it was called

The script needs no GPU and no driver. It doesn't depend on harness, and runs on Python 3.7 and later. Python 3.7 is the
oldest version in the catalog.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Libraries for which TensorFlow's loader has a function, except the driver and the optional TensorRT.
NAMES = ("CudaRuntime", "Cublas", "CublasLt", "Cufft", "Curand", "Cusolver", "Cusparse", "Cudnn", "Cupti", "Nccl")

#: The C++ namespace of the loader up to TensorFlow 2.10, and in later releases.
NAMESPACES = ("stream_executor", "tsl")

#: The path at which XLA finds libdevice in every release.
LIBDEVICE = Path("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc")

#: Modules that scenarios or Keras import. Locks contain them, but an image with its own TensorFlow may not.
MODULES = ("keras", "yaml", "h5py", "scipy")

MARK = "harness asks for "
TRIED = re.compile(
    r"Successfully opened dynamic library '?(?P<opened>[\w.-]+)"
    r"|Could not load dynamic library '(?P<closed>[^']+)'; dlerror: (?P<words>.*)"
)


def main(sonames: list[str]) -> None:
    """Call TensorFlow's loader in a separate process, and open the libraries in this one."""
    log, output, loader_error = call_loader()
    by_name = parse_attempts(log)
    candidates = [*sonames, *(soname for tries in by_name.values() for soname, message in tries if not message)]
    opened: dict[str, str] = {}
    files: dict[str, str] = {}
    closed: dict[str, str] = {}
    for soname in dict.fromkeys(candidates):
        try:
            opened[soname] = find_version(soname, ctypes.CDLL(soname))
            files[soname] = str(find_mapped_file(soname) or "")
        except OSError as error:
            closed[soname] = str(error)
    report = {
        "asked": by_name,
        "opened": opened,
        "files": files,
        "closed": closed,
        "ptxas": read_ptxas_version(),
        "libdevice": str(LIBDEVICE) if LIBDEVICE.is_file() else "",
        "build": output.get("build", {}),
        "folders": output.get("folders", []),
        "broken": find_broken(),
        "trouble": loader_error,
    }
    print(json.dumps(report))


def call_loader() -> tuple[str, dict[str, Any], str]:
    """Return the log of TensorFlow's loader, its other output, and the error."""
    process = subprocess.run(
        [sys.executable, "-u", __file__, "--tensorflow"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "dso_loader=2"},
        capture_output=True,
        check=False,
    )
    log = process.stderr.decode("utf-8", "replace")
    last_lines = " ".join(log.split("\n")[-2:]).strip()
    try:
        output = json.loads(process.stdout.decode("utf-8", "replace").splitlines()[-1])
    except (IndexError, ValueError):
        return log, {}, f"TensorFlow does not start: {last_lines}"
    if process.returncode:
        return log, output, f"TensorFlow's loader ended with code {process.returncode}: {last_lines}"
    return log, output, "" if parse_attempts(log) else "TensorFlow's loader can't be called, or printed nothing"


def find_broken() -> dict[str, str]:
    """Return the modules that can't be imported in a new process, with the errors."""
    process = subprocess.run([sys.executable, __file__, "--import"], capture_output=True, check=False)
    try:
        return dict(json.loads(process.stdout.decode("utf-8", "replace").splitlines()[-1]))
    except (IndexError, ValueError):
        return dict.fromkeys(MODULES, f"the process ended with code {process.returncode}")


def import_modules() -> None:
    """Import the modules, and print the errors."""
    errors = {}
    for name in MODULES:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001, modules raise anything
            errors[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(errors))


def parse_attempts(log: str) -> dict[str, list[tuple[str, str]]]:
    """Return the file names that the loader tried for each library, in order, with errors."""
    by_name: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in log.splitlines():
        if line.startswith(MARK):
            name = line[len(MARK) :]
        attempt = TRIED.search(line)
        if name and attempt:
            by_name.setdefault(name, []).append((attempt["opened"] or attempt["closed"], attempt["words"] or ""))
    return by_name


def run_tensorflow() -> None:
    """Print TensorFlow's build info and folders, then call its loader for each library; the log goes to stderr."""
    tf: Any = importlib.import_module("tensorflow")
    folder = Path(tf.__file__).parent
    # some releases keep their libraries in a package other than the imported one
    folders = (folder, folder.parent / "tensorflow_core", folder.parent.parent / "tensorflow_core")
    patterns = ("libtensorflow_framework.so.*", "libtensorflow_cc.so.*", "python/_pywrap_tensorflow_internal.so")
    paths = [path for directory in folders for pattern in patterns for path in sorted(directory.glob(pattern))]
    libraries = [ctypes.CDLL(str(path)) for path in paths]
    build = getattr(tf.sysconfig, "get_build_info", dict)  # from 2.3 on
    info = {
        "build": dict(build()),
        "folders": sorted({str(directory.resolve()) for directory in folders if directory.is_dir()}),
    }
    print(json.dumps(info), flush=True)
    for name in NAMES:
        function = find_function(libraries, name)
        if function is not None:
            os.write(2, f"\n{MARK}{name}\n".encode())
            # the function writes an object to memory that the caller provides; its result is in the log
            function(ctypes.create_string_buffer(256))


def find_function(loaded: list[ctypes.CDLL], name: str) -> Any:
    """Return the C++ function `DsoLoader::GetNAMEDsoHandle()`, by its mangled name; None if it is missing."""
    method = f"Get{name}DsoHandle"
    symbols = [f"_ZN{len(namespace)}{namespace}8internal9DsoLoader{len(method)}{method}Ev" for namespace in NAMESPACES]
    functions = (getattr(library, symbol, None) for symbol in symbols for library in loaded)
    return next(filter(None, functions), None)


def find_version(soname: str, library: ctypes.CDLL) -> str:
    """Return the version from the library, its file name, or its package; empty if none has it."""
    name = soname.partition(".so")[0]
    return read_version(name, library) or find_file_version(name, soname)


def read_version(name: str, library: ctypes.CDLL) -> str:
    """Return the version that the library reports; empty if it fails. Some libraries need a driver to report it."""
    try:
        if name == "libcudart":
            encoded = call_for_number(library.cudaRuntimeGetVersion)
            return f"{encoded // 1000}.{encoded % 1000 // 10}"
        if name == "libnccl":
            encoded = call_for_number(library.ncclGetVersion)
            return f"{encoded // 10000}.{encoded % 10000 // 100}.{encoded % 100}"
        # functions such as cublasGetProperty: 0, 1 and 2 request the major, minor and patch number
        return ".".join(str(call_for_number(getattr(library, f"{name[3:]}GetProperty"), kind)) for kind in range(3))
    except (AttributeError, ValueError):
        return ""


def call_for_number(function: Any, *arguments: int) -> int:
    """Return the value that a C function writes to its last argument. Raises ValueError if it returns an error."""
    value = ctypes.c_int()
    if function(*arguments, ctypes.byref(value)):
        raise ValueError
    return value.value


def find_file_version(name: str, soname: str) -> str:
    """Return the version in the name of the opened file, or of its package."""
    path = find_mapped_file(soname)
    if path is None:
        return ""
    if path.name != soname:
        return path.name.partition(".so.")[2]
    # .../site-packages/nvidia/cuda_runtime/lib/libcudart.so.11.0
    packages = path.parents[3].glob(f"nvidia_{path.parents[1].name}_cu*.dist-info") if len(path.parents) > 4 else ()
    return next((package.stem.split("-")[1] for package in packages), "")


def find_mapped_file(soname: str) -> Path | None:
    """Return the file of a library that this process has opened."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    match = re.search(rf"\S+/{re.escape(soname.partition('.so')[0])}\.so[.\d]*$", maps, flags=re.MULTILINE)
    return Path(match.group()) if match else None


def read_ptxas_version() -> str:
    """Return the version of XLA's assembler; empty if it can't be run."""
    try:
        output = subprocess.run(["ptxas", "--version"], capture_output=True, check=False).stdout
    except OSError:
        return ""
    match = re.search(r"release [\d.]+, V([\d.]+)", output.decode("utf-8", "replace"))
    return match.group(1) if match else ""


if __name__ == "__main__":
    if sys.argv[1:] == ["--tensorflow"]:
        run_tensorflow()
    elif sys.argv[1:] == ["--import"]:
        import_modules()
    else:
        main(sys.argv[1:])

"""Makes locks: the packages that users had when a release was new, with their hashes."""

import tempfile
from pathlib import Path

from packaging.version import Version

from harness.machine.interpreters import find_python
from harness.machine.uv import last_words, run_uv
from harness.model.environment import Device, Environment
from harness.model.errors import CannotRunHereError

#: The images' base is Debian 12 on x86-64; the newest wheels ask for a C library of 2.28.
PLATFORM = "x86_64-manylinux_2_28"

#: From here on there is a package without the GPU's code, of the same day and a third of the size.
_FIRST_CPU_PACKAGE = Version("2.1")


def inputs(environment: Environment, device: Device) -> list[str]:
    """What is asked of the resolver: the release, its Keras, and the tools that old source packages are built with."""
    cpu_only = device is Device.CPU and Version(environment.tensorflow) >= _FIRST_CPU_PACKAGE
    package = "tensorflow-cpu" if cpu_only else "tensorflow"
    keras = [f"keras=={environment.keras}"] if environment.keras else []
    return [f"{package}=={environment.tensorflow}", *keras, "setuptools", "wheel"]


def resolve(environment: Environment, device: Device) -> str:
    """The text of the lock as of `environment.as_of`: the same whenever and wherever it is made.

    Raises UnavailableError without an interpreter of that Python (old source packages are built to read their
    dependencies), CannotRunHereError, with the resolver's own words, for what does not resolve.
    """
    python = find_python(environment.python)
    with tempfile.TemporaryDirectory() as folder:
        asked, lock = Path(folder) / "asked.txt", Path(folder) / "lock.txt"
        asked.write_text("\n".join(inputs(environment, device)) + "\n", encoding="utf-8")
        done = run_uv(
            [
                "pip",
                "compile",
                str(asked),
                f"--output-file={lock}",
                f"--exclude-newer={environment.as_of}",
                f"--python={python}",
                f"--python-platform={PLATFORM}",
                "--generate-hashes",
                "--no-emit-index-url",
                "--no-header",
                "--no-annotate",
                "--quiet",
            ]
        )
        if done.returncode:
            raise CannotRunHereError(f"{environment.name} does not resolve:\n{last_words(done.stderr, 20)}")
        return _heading(environment, device) + lock.read_text(encoding="utf-8")


def _heading(environment: Environment, device: Device) -> str:
    return (
        f"# {environment.title} for the {device.value}, Python {environment.python}, as of {environment.as_of}.\n"
        f"# Made by: harness images lock {environment.name}\n"
    )

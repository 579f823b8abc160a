"""`images/install.sh`, which makes environments and images from locks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.packageindex import make_lock, serving

#: Builds a wheel that says which version of `wheel` it was built with.
BUILDS = """\
import importlib.metadata, pathlib, zipfile


def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "thing-1.0-py3-none-any.whl", "thing-1.0.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.writestr("thing.py", f"BUILT_WITH = {importlib.metadata.version('wheel')!r}\\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""

PROJECT = """\
[build-system]
requires = ["wheel"]
build-backend = "builds"
backend-path = ["."]
[project]
name = "thing"
version = "1.0"
"""


@pytest.mark.slow
def test_a_source_is_built_with_the_tools_of_its_own_lock_and_nothing_is_left_beside(tmp_path):
    (tmp_path / "tmp").mkdir()
    with serving(tmp_path / "index") as index:
        index.add_source("thing-1.0", others={"builds.py": BUILDS, "pyproject.toml": PROJECT})
        environ = {**os.environ, **index.environ, "TMPDIR": str(tmp_path / "tmp")}
        environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
        for version in ("0.33", "0.36"):
            lock, folder = tmp_path / f"{version}.txt", tmp_path / version
            wheel = index.add(f"wheel-{version}-py3-none-any")
            lock.write_text(make_lock(wheel, index.folder / "thing-1.0.tar.gz"))
            subprocess.run(
                ["sh", ROOT / "images" / "install.sh", sys.executable, lock, folder], env=environ, check=True
            )
            command = [folder / "bin" / "python", "-c", "import thing; print(thing.BUILT_WITH)"]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == version
    assert not list((tmp_path / "tmp").iterdir())

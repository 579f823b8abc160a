import os
import shutil

import pytest

from harness.machine.uv import run_uv
from tests.packageindex import serving


@pytest.fixture(scope="session")
def interpreters(tmp_path_factory):
    """Return a cache in which uv has already queried the interpreters, which is slow."""
    folder = tmp_path_factory.mktemp("uv")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("UV_NO_CACHE", raising=False)
        patch.setenv("UV_CACHE_DIR", str(folder))
        run_uv(["pip", "compile", os.devnull, "--offline"])
    return folder


@pytest.fixture
def package_index(tmp_path, interpreters, monkeypatch):
    """Return the package index of the test, which uv uses instead of any other."""
    shutil.copytree(interpreters, tmp_path / "uv")
    with serving(tmp_path / "index") as index:
        for name in ("UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS", "UV_OFFLINE", "UV_NO_CACHE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        yield index

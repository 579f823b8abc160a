from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packageindex import PackageIndex, serving


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """An index of the test's own, which uv asks in place of any other."""
    folder = tmp_path / "index"
    folder.mkdir()
    with serving(folder) as index:
        for name in ("UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS", "UV_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
        monkeypatch.setenv("UV_NO_CACHE", "1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        yield index

"""`harness images pack` and `unpack`, for the parts that need no engine; tests/docker has the others."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Harness
from tests.packageindex import PackageIndex, make_lock, serving


@pytest.fixture
def package_index(tmp_path: Path, harness: Harness) -> Iterator[PackageIndex]:
    """An index with what the lock of `old` names; uv itself is no part of this."""
    with serving(tmp_path / "index") as index:
        lock = make_lock(index.add("one-1.0-py3-none-any"))
        (harness.root / "images" / "locks" / "old-cpu.txt").write_text(lock)
        (harness.root / "images" / "uv.txt").write_text("# nothing\n")
        harness.environ |= index.environ
        yield index


@pytest.mark.slow
def test_a_pack_has_all_for_an_environment_without_the_index(package_index, harness, tmp_path):
    folder = tmp_path / "pack"
    process = harness("images", "pack", str(folder), "old", "--no-images")
    assert process.returncode == 0, process.stderr
    assert "1 environment, 1 file" in process.stdout
    (wheel,) = (folder / "wheels").iterdir()

    harness.environ["UV_DEFAULT_INDEX"] = "http://127.0.0.1:9/simple"
    unpacked = harness("images", "unpack", str(folder))
    assert unpacked.returncode == 0, unpacked.stderr
    _, assignment = shlex.split(unpacked.stdout)
    name, _, value = assignment.partition("=")
    assert (name, value) == ("HARNESS_WHEELS", str(folder / "wheels"))
    selection = ("-e", "old", "-s", "ways", "-a", "way=fine", "--rounds", "1")
    assert harness.matrix(*selection).returncode == 4
    assert harness.matrix(*selection, **{name: value}).returncode == 0

    without_index = harness.call("images", "pack", str(tmp_path / "other"), "old", "--no-images")
    assert (without_index.returncode, " index " in without_index.stderr) == (4, True)
    wheel.write_text("changed")
    harness.environ["HARNESS_CACHE_DIR"] = str(tmp_path / "empty")
    assert harness.matrix(*selection, **{name: value}).returncode == 4

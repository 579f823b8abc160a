"""`harness images pack` and `unpack`, for the parts that need no engine; tests/docker has the others."""

import hashlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Harness
from tests.packageindex import PackageIndex, serving


@pytest.fixture
def package_index(tmp_path: Path, harness: Harness) -> Iterator[PackageIndex]:
    """An index with what the lock of `old` names; uv itself is no part of this."""
    (tmp_path / "index").mkdir()
    with serving(tmp_path / "index") as index:
        path = index.add("one-1.0-py3-none-any")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lock = f"one==1.0 \\\n    --hash=sha256:{digest}\n"
        (harness.root / "images" / "locks" / "old-cpu.txt").write_text(lock)
        (harness.root / "images" / "uv.txt").write_text("# nothing\n")
        harness.environ |= {
            "UV_DEFAULT_INDEX": f"{index.url}/simple",
            "UV_NO_CACHE": "1",
            "NO_PROXY": "127.0.0.1",
            "UV_HTTP_RETRIES": "0",
        }
        yield index


@pytest.fixture
def folder(package_index: PackageIndex, harness: Harness, tmp_path: Path) -> Path:
    """A pack of `old`; the index is gone."""
    folder = tmp_path / "pack"
    done = harness("images", "pack", str(folder), "old", "--no-images")
    assert done.returncode == 0, done.stderr
    assert "1 environment, 1 file" in done.stdout
    harness.environ["UV_DEFAULT_INDEX"] = "http://127.0.0.1:9/simple"
    return folder


def test_a_pack_says_what_it_holds(folder: Path) -> None:
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    (wheel,) = (folder / "wheels").iterdir()
    assert manifest["environments"] == {"old": ["cpu"]}
    assert manifest["files"] == {f"wheels/{wheel.name}": hashlib.sha256(wheel.read_bytes()).hexdigest()}


def test_an_environment_is_made_of_it_without_the_index(folder: Path, harness: Harness) -> None:
    unpacked = harness("images", "unpack", str(folder))
    assert unpacked.returncode == 0, unpacked.stderr
    _, assignment = shlex.split(unpacked.stdout)
    name, _, value = assignment.partition("=")
    assert (name, value) == ("HARNESS_WHEELS", str(folder / "wheels"))

    wanted = ("-e", "old", "-s", "ways", "-a", "way=fine", "--rounds", "1")
    without = harness.matrix(*wanted)
    assert without.returncode == 4, without.stderr
    done = harness.matrix(*wanted, **{name: value})
    assert done.returncode == 0, done.stderr


def test_a_pack_that_was_changed_on_the_way_is_refused(folder: Path, harness: Harness) -> None:
    (wheel,) = (folder / "wheels").iterdir()
    wheel.write_text("changed")
    done = harness("images", "unpack", str(folder))
    assert done.returncode == 2
    assert f"wheels/{wheel.name} was changed" in done.stderr


def test_without_the_index_nothing_is_packed(folder: Path, harness: Harness, tmp_path: Path) -> None:
    done = harness("images", "pack", str(tmp_path / "other"), "old", "--no-images")
    assert done.returncode == 4
    assert "The package index does not answer" in done.stderr
    assert not (tmp_path / "other" / "MANIFEST.json").exists()

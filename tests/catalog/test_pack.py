from pathlib import Path

import pytest

from harness.catalog import pack
from harness.catalog.download import sha256
from harness.catalog.pack import Manifest
from harness.model.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wheels").mkdir()
    for name in ("one.whl", "two.whl"):
        (tmp_path / "wheels" / name).write_text(name)
    files = {f"wheels/{path.name}": sha256(path) for path in (tmp_path / "wheels").iterdir()}
    pack.write(tmp_path, Manifest("1.0", {"tf2.0": ["cpu"]}, {}, files))
    return tmp_path


def test_a_whole_pack_is_right(folder: Path) -> None:
    manifest = pack.read(folder)
    assert manifest.environments == {"tf2.0": ["cpu"]}
    pack.check(folder, manifest)


def test_what_is_missing_or_was_changed_is_named(folder: Path) -> None:
    (folder / "wheels" / "one.whl").write_text("changed")
    (folder / "wheels" / "two.whl").unlink()
    with pytest.raises(UsageError, match=r"wheels/one\.whl was changed; wheels/two\.whl is missing"):
        pack.check(folder, pack.read(folder))


def test_what_is_packed_later_is_added(folder: Path) -> None:
    older = pack.read(folder)
    image = {"images/a.tar": {"reference": "a", "id": "sha256:0"}}
    both = Manifest("1.1", {"tf2.0": ["gpu"], "tf2.1": ["cpu"]}, image, {"images/a.tar": "0"}).over(older)
    assert both.environments == {"tf2.0": ["cpu", "gpu"], "tf2.1": ["cpu"]}
    assert set(both.files) == {"wheels/one.whl", "wheels/two.whl", "images/a.tar"}
    assert (both.harness, both.images) == ("1.1", image)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "is not a pack"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"schema": 1, "more": 2}', "is damaged"),
        ('{"schema": 2}', "has schema 2"),
    ],
)
def test_a_folder_that_is_no_pack_gets_a_sentence(tmp_path: Path, text: str | None, problem: str) -> None:
    if text is not None:
        (tmp_path / pack.FILE).write_text(text)
    with pytest.raises(UsageError, match=problem):
        pack.read(tmp_path)

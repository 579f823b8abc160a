"""Archives from other machines: each is unpacked whole into a new folder, or not at all."""

import io
import tarfile
from pathlib import Path
from random import Random

import pytest

from harness.catalog.project import Project
from harness.catalog.scenarios import find_scenarios
from harness.fleet import parcel
from harness.model.errors import CannotRunHereError
from harness.session.request import Request


def archive(*members: tuple[str, bytes | str | int]) -> io.BytesIO:
    """Make an archive of files with a content. A text makes a member a link to it, and a number states a size."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
            info.size = content if isinstance(content, int) else len(content) if isinstance(content, bytes) else 0
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    buffer.seek(0)
    return buffer


SCENARIO = """# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "Mine"
# files = ["data/names.txt"]
# ///
def scenario(bench):
    bench.measure(int)
"""


def test_scenarios_beside_harness_s_own_are_sent_with_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"my_step.py": SCENARIO, "data/names.txt": "a", "other.py": SCENARIO}.items():
        (tmp_path / "scenarios" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "scenarios" / name).write_text(text)
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)
    found = find_scenarios(Project.find()).scenarios
    scenarios = [found["my_step"], found["keras_step"]]
    sent, asked = parcel.pack(Request(scenarios=["*_step"]), scenarios)
    assert asked.scenarios == ["typed/my_step/my_step.py", "keras_step"]
    with tarfile.open(fileobj=io.BytesIO(sent.archive)) as tar:
        names = {name for name in tar.getnames() if name.startswith("typed/")}
    assert names == {"typed/my_step/my_step.py", "typed/my_step/data/names.txt"}
    assert parcel.pack(Request(suite="seed"), scenarios[1:])[1].scenarios == []


def test_an_archive_becomes_a_new_folder_without_its_links(tmp_path: Path) -> None:
    parcel.unpack(archive(("run/run.json", b"{}"), ("run/link", "/etc/passwd")), tmp_path / "shards" / "1.1")
    assert [path.name for path in (tmp_path / "shards" / "1.1" / "run").iterdir()] == ["run.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


@pytest.mark.parametrize(
    "given",
    [
        archive(("run/run.json", b"{}"), ("../other/run.json", b"{}")),
        archive(("run/a", ".."), ("run/a/x", b"{}"), ("run/a/../../../x", b"{}")),
        archive(("run/run.json", parcel.MOST_OF_FILE["run.json"] + 1)),
        archive(("run/artifacts/a", parcel.MOST_BYTES + 1)),
        archive(("/".join("d" * 40), b"{}")),
        archive(("run/file", b"{}"), ("run/file/below", b"{}")),
        io.BytesIO(archive(("run/a", Random(1).randbytes(99_999))).getvalue()[:-9_999]),
        io.BytesIO(b"no archive"),
        io.BytesIO(b""),
    ],
    ids=["outside", "dots", "long run.json", "long", "deep", "below a file", "cut off", "other", "empty"],
)
def test_an_archive_that_is_wrong_leaves_nothing(given: io.BytesIO, tmp_path: Path) -> None:
    (tmp_path / "results" / "shards").mkdir(parents=True)
    with pytest.raises(CannotRunHereError, match="can't be unpacked"):
        parcel.unpack(given, tmp_path / "results" / "shards" / "1.1")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "results" / "shards" / "1.1").exists()


def test_an_archive_of_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel, "MOST_FILES", 2)
    with pytest.raises(CannotRunHereError, match="more than 2 files"):
        parcel.unpack(archive(("a", b""), ("b", b""), ("c", b"")), tmp_path / "shards" / "1.1")


def test_a_folder_that_exists_keeps_what_it_has(tmp_path: Path) -> None:
    there = tmp_path / "shards" / "1.1"
    there.mkdir(parents=True)
    (there / "run.json").write_text("mine")
    with pytest.raises(CannotRunHereError, match="exists"):
        parcel.unpack(archive(("run.json", b"{}")), there)
    assert (there / "run.json").read_text() == "mine"

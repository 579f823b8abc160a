"""Archives from other machines: each is unpacked whole into a new folder, or not at all."""

import io
import tarfile
from random import Random

import pytest

from harness.fleet import parcel
from harness.model.errors import CannotRunHereError
from harness.project import Project
from harness.scenarios.catalog import find_scenarios
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


@pytest.mark.slow
def test_scenarios_beside_harness_s_own_are_sent_with_their_files(tmp_path, monkeypatch):
    for name, text in {"my_step.py": SCENARIO, "data/names.txt": "a", "other.py": SCENARIO}.items():
        (tmp_path / "scenarios" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "scenarios" / name).write_text(text)
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)
    catalog = find_scenarios(Project.find()).scenarios
    scenarios = [catalog["my_step"], catalog["keras_step"]]
    sent, request = parcel.pack(Request(scenarios=["*_step"]), scenarios)
    assert request.scenarios == ["typed/my_step/my_step.py", "keras_step"]
    with tarfile.open(fileobj=io.BytesIO(sent)) as tar:
        names = {name for name in tar.getnames() if name.startswith("typed/")}
    assert names == {"typed/my_step/my_step.py", "typed/my_step/data/names.txt"}
    assert parcel.pack(Request(suite="seed"), scenarios[1:])[1].scenarios == []


def test_an_archive_becomes_a_new_folder_without_its_links_and_one_that_exists_keeps_what_it_has(tmp_path):
    folder = tmp_path / "shards" / "1.1"
    parcel.unpack(archive(("run/run.json", b"{}"), ("run/link", "/etc/passwd")), folder)
    assert [path.name for path in (folder / "run").iterdir()] == ["run.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]
    with pytest.raises(CannotRunHereError, match="exists"):
        parcel.unpack(archive(("run/run.json", b"other")), folder)
    assert (folder / "run" / "run.json").read_bytes() == b"{}"


def test_an_archive_that_is_wrong_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "results" / "shards").mkdir(parents=True)
    target = tmp_path / "results" / "shards" / "1.1"
    cut_off = archive(("run/a", Random(1).randbytes(99_999))).getvalue()[:-9_999]
    wrong = {
        "outside": archive(("run/run.json", b"{}"), ("../other/run.json", b"{}")),
        "dots": archive(("run/a", ".."), ("run/a/x", b"{}"), ("run/a/../../../x", b"{}")),
        "long run.json": archive(("run/run.json", parcel.MOST_OF_FILE["run.json"] + 1)),
        "long": archive(("run/artifacts/a", parcel.MOST_BYTES + 1)),
        "deep": archive(("/".join("d" * 40), b"{}")),
        "below a file": archive(("run/file", b"{}"), ("run/file/below", b"{}")),
        "cut off": io.BytesIO(cut_off),
        "other": io.BytesIO(b"no archive"),
        "empty": io.BytesIO(b""),
    }
    for name, file in wrong.items():
        with pytest.raises(CannotRunHereError, match="unpacked"):
            parcel.unpack(file, target)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == [], name
        assert not target.exists(), name
    monkeypatch.setattr(parcel, "MOST_FILES", 2)
    parcel.unpack(archive(("a", b""), ("b", b"")), target)
    with pytest.raises(CannotRunHereError, match="2 files"):
        parcel.unpack(archive(("a", b""), ("b", b""), ("c", b"")), target.with_name("2.1"))

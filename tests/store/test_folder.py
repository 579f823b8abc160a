import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Status
from harness.store import folder as store
from harness.store.codec import dump
from harness.store.folder import RunFolder
from tests.runs import launch, run


def test_files_that_a_killed_harness_did_not_finish_are_removed(folder: RunFolder) -> None:
    folder.write_reports({"report.md": "whole", "charts/a.svg": "<svg/>"})
    (folder.path / "artifacts" / "launch").mkdir(parents=True)
    left = [".report.md.0123abcd.part", "charts/.a.svg.0123abcd.part", "artifacts/launch/.x.txt.0123abcd.part"]
    for name in (*left, "artifacts/launch/data.part"):
        (folder.path / name).touch()
    folder.repair()
    assert not [name for name in left if (folder.path / name).exists()]
    kept = ("report.md", "charts/a.svg", "artifacts/launch/data.part")
    assert all((folder.path / name).exists() for name in kept)


@pytest.mark.parametrize(
    ("name", "files", "is_nothing"),
    [
        ("2026-11-21T00-00-00Z-dead", {}, True),
        ("2026-11-21T00-00-00Z-dead", {".launches.jsonl.0123abcd.part": ""}, True),
        ("2026-11-21T00-00-00Z-dead", {"launches.jsonl": "", ".run.json.0123abcd.part": "{"}, True),
        ("2026-11-21T00-00-00Z-dead", {"notes.txt": ""}, False),
        ("2026-11-21T00-00-00Z-dead", {"launches.jsonl": "", "notes.txt": ""}, False),
        ("2026-11-21T00-00-00Z-dead", {"mine.part": ""}, False),
        ("mine", {}, False),
        ("mine", {".launches.jsonl.0123abcd.part": ""}, False),
        ("2026-11-21T00-00-00Z-dead", {"launches.jsonl": "{}\n"}, False),
        ("2026-11-21T00-00-00Z-dead", {"launches.jsonl": "", "run.json": ""}, False),
    ],
)
def test_only_what_a_run_leaves_that_came_to_nothing_is_discarded(
    tmp_path: Path, name: str, files: dict[str, str], is_nothing: bool
) -> None:
    path = tmp_path / name
    path.mkdir()
    for each, text in files.items():
        (path / each).write_text(text)
    if is_nothing:
        with pytest.raises(UsageError, match="killed before the first launch"):
            RunFolder.open(path)
    assert (RunFolder.is_unbegun(path) and RunFolder(path).discard()) is is_nothing
    assert path.exists() is not is_nothing
    assert not RunFolder.is_unbegun(tmp_path / "no such")


def test_launches_without_a_run_are_told(tmp_path: Path) -> None:
    (tmp_path / "launches.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match=r"a merge was killed\.\n.*rm -r"):
        RunFolder.open(tmp_path)


def test_what_was_stored_is_read_again(folder: RunFolder) -> None:
    launches = [launch(round=1), launch(round=2, status=Status.FAILED, error="a | b\nc")]
    for value in launches:
        folder.append(value)
    assert [dump(entry) for entry in folder.read_launches()] == [dump(item) for item in launches]
    assert dump(folder.read_run()) == dump(run())


def test_a_launch_that_is_read_is_written_as_the_same_line(folder: RunFolder) -> None:
    folder.append(launch(phases={"import": 1.5}, phases_cpu={"import": 0.5}, resources={"warmup_steps": 3.0}))
    (entry,) = folder.read_launches()
    assert dump(entry) + b"\n" == (folder.path / "launches.jsonl").read_bytes()
    assert entry.resources.get("warmup_steps") == 3.0
    assert entry.resources.get("cpu_seconds") is None
    assert entry.phases == {"import": 1.5}


def test_launches_share_equal_values_and_only_those(folder: RunFolder) -> None:
    outputs = [0.25, 0.5]
    for number in (1, 1.0, True):
        folder.append(launch(fingerprint={"outputs": outputs, "number": number}, pins={"numpy": "1.17.4"}))
    entries = folder.read_launches()
    assert len({id(entry.pins) for entry in entries}) == 1
    assert len({id(entry.fingerprint["outputs"]) for entry in entries}) == 1
    assert [type(entry.fingerprint["number"]) for entry in entries] == [int, float, bool]


def test_each_launch_is_one_line_whatever_its_strings_hold(folder: RunFolder) -> None:
    folder.append(launch(error="a\nb\u2028c\r\x00", stderr="\ud800".encode("utf-8", "replace").decode()))
    assert (folder.path / "launches.jsonl").read_bytes().count(b"\n") == 1
    assert folder.read_launches()[0].error == "a\nb\u2028c\r\x00"


def test_a_torn_last_line_is_passed_over_and_cut_off_before_the_next(folder: RunFolder) -> None:
    folder.append(launch(round=1))
    path = folder.path / "launches.jsonl"
    whole = path.read_bytes()
    assert not folder.is_torn
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert folder.is_torn
    assert len(folder.read_launches()) == 1
    assert folder.repair()
    assert path.read_bytes() == whole
    assert not folder.repair()
    folder.append(launch(round=2))
    assert [entry.round for entry in folder.read_launches()] == [1, 2]


def test_damage_in_the_middle_is_named_by_its_line(folder: RunFolder) -> None:
    folder.append(launch(round=1))
    with (folder.path / "launches.jsonl").open("ab") as file:
        file.write(b'{"not": "a launch"}\n')
    with pytest.raises(UsageError, match=r"launches\.jsonl, line 2 is damaged: .*: Field required"):
        folder.read_launches()


def test_a_newer_schema_is_refused_with_a_sentence(folder: RunFolder) -> None:
    path = folder.path / "run.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))
    with pytest.raises(UsageError, match="has schema 99, but this version of harness reads only schemas up to 1"):
        folder.read_run()


def test_keys_of_a_later_minor_change_are_passed_over(folder: RunFolder) -> None:
    folder.append(launch(round=1))
    path = folder.path / "launches.jsonl"
    path.write_bytes(path.read_bytes().replace(b"{", b'{"telemetry":{"clock":1},', 1))
    assert folder.read_launches()[0].round == 1


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="isn't the folder of a run"):
        RunFolder.open(tmp_path)
    with pytest.raises(UsageError, match="cannot be read: File name too long"):
        RunFolder.open(tmp_path / ("n" * 300))


def test_a_results_folder_that_cannot_be_made_is_said_before_the_first_launch(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRunHereError, match=r"cannot be written: Not a directory"):
        RunFolder.create(tmp_path / "file", "run")


def test_a_disk_without_room_is_said_before_the_first_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "ROOM", 2**62)
    with pytest.raises(CannotRunHereError, match="MiB free; a run needs"):
        RunFolder.create(tmp_path, "run")
    assert not (tmp_path / "run").exists()


FILL = """
import resource, sys
from pathlib import Path
from harness.model.errors import CannotRunHereError
from harness.store.folder import RunFolder
from tests.runs import launch
folder = RunFolder.open(Path(sys.argv[1]))
size = (folder.path / "launches.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))
try:
    folder.append(launch(round=2, error="x" * 10_000))
except CannotRunHereError as error:
    print(error)
"""


def test_a_disk_that_fills_up_leaves_no_part_of_a_line(folder: RunFolder) -> None:
    folder.append(launch(round=1))
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(folder.path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot be written: File too large. Finished launches are saved." in done.stdout
    assert f"harness matrix --resume {folder.path}" in done.stdout
    assert [entry.round for entry in folder.read_launches()] == [1]
    assert not folder.repair()


def test_artifacts_never_leave_their_folder(folder: RunFolder) -> None:
    kept = folder.write_artifacts("g-round1", {"../../evil": b"x", "profile.pstats": b"y"})
    assert kept == ["artifacts/g-round1/evil", "artifacts/g-round1/profile.pstats"]


def test_one_name_in_two_folders_stays_two_files(folder):
    kept = folder.write_artifacts("g", {"x/data.txt": b"1", "y/data.txt": b"2"})
    assert [(folder.path / entry).read_bytes() for entry in kept] == [b"1", b"2"]


def test_a_report_takes_the_place_of_an_older_one(folder: RunFolder) -> None:
    folder.write_reports({"report.md": "1", "details.md": "1", "charts/old.svg": "<svg/>", "charts/both.svg": "<svg/>"})
    written = folder.write_reports({"report.md": "2", "charts/both.svg": "<svg>2</svg>", "charts/../out.svg": "<svg/>"})
    assert written == [folder.path / "report.md"]
    assert written[0].read_text() == "2"
    assert not (folder.path / "details.md").exists()
    assert {path.name: path.read_text() for path in (folder.path / "charts").iterdir()} == {
        "both.svg": "<svg>2</svg>",
        "out.svg": "<svg/>",
    }
    assert not (folder.path / "out.svg").exists()
    folder.write_reports({"report.md": "3"})
    assert not list(folder.path.glob("charts*"))


def test_charts_that_cannot_be_written_get_a_sentence(folder: RunFolder) -> None:
    (folder.path / "charts").write_text("a file")
    with pytest.raises(CannotRunHereError, match=r"charts cannot be written"):
        folder.write_reports({"charts/a.svg": "<svg/>"})


def test_a_run_that_came_to_nothing_leaves_no_folder(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path, "run")
    made.discard()
    assert not made.path.exists()


def received(folder: RunFolder, victim: Path, name: str) -> Path:
    """A folder in which something is a link to a file or a folder of the victim's."""
    path = folder.path / name
    if path.is_file():
        path.unlink()
    path.symlink_to(victim)
    return path


@pytest.mark.parametrize(
    "name",
    ["report.md", "report.html", "run.json.part", ".lock", "launches.jsonl", "details.md", "charts", "artifacts"],
)
def test_a_folder_with_a_link_in_it_is_refused_by_the_links_name(folder: RunFolder, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path = received(folder, victim, name)
    with pytest.raises(UsageError, match=f"{path} is a link. harness doesn't read or write through links"):
        RunFolder.open(folder.path)
    assert victim.read_text() == "mine"


def test_nothing_is_written_through_a_link(folder: RunFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "old.svg").write_text("mine")
    for name in ("charts", "charts.part", "artifacts", "report.md"):
        received(folder, elsewhere, name)
    received(folder, elsewhere / "old.svg", "launches.jsonl")
    for write in (
        lambda: folder.write_reports({"charts/a.svg": "<svg/>"}),
        lambda: folder.write_reports({"report.md": "1"}),
        lambda: folder.write_artifacts("g", {"x": b"x"}),
        lambda: folder.append(launch()),
    ):
        with pytest.raises(UsageError, match="is a link"):
            write()
    with pytest.raises(UsageError, match=r"launches\.jsonl cannot be read: it is a link"):
        folder.read_launches()
    assert [path.name for path in elsewhere.iterdir()] == ["old.svg"]
    assert (elsewhere / "old.svg").read_text() == "mine"


@pytest.mark.parametrize("kind", ["missing", "a folder", "a pipe"])
def test_launches_that_are_no_file_get_a_sentence(folder: RunFolder, kind: str) -> None:
    path = folder.path / "launches.jsonl"
    path.unlink()
    if kind != "missing":
        path.mkdir() if kind == "a folder" else os.mkfifo(path)
    for read in (folder.read_launches, folder.repair):
        with pytest.raises(UsageError, match=r"launches\.jsonl cannot be read: "):
            read()


@pytest.mark.parametrize("name", ["artifacts/../steady.json", "/etc/steady.json", "artifacts/link/steady.json"])
def test_a_launchs_artifacts_lie_below_the_runs_folder(folder: RunFolder, tmp_path: Path, name: str) -> None:
    (tmp_path / "steady.json").write_text("{}")
    (folder.path / "artifacts").mkdir()
    (folder.path / "artifacts" / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError, match=r"cannot be read: .*(link|leaves the folder)"):
        folder.read_profiles(launch(artifacts=[name]))


def test_a_run_is_known_as_ones_own_until_it_is_changed(folder: RunFolder) -> None:
    assert not folder.is_from_here()
    folder.write_run(run(), signed=True)
    assert folder.is_from_here()
    assert dump(folder.read_run()) == dump(run())
    path = folder.path / "run.json"
    path.write_text(path.read_text().replace('"docker"', '"local"'))
    assert not folder.is_from_here()


def test_a_results_folder_whose_name_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not UTF-8"):
        RunFolder.create(tmp_path / os.fsdecode(b"\xff"), "run")
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_written_aside_so_that_a_reader_has_the_old_one_whole(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run")
    folder.write_reports({"report.md": "old"})
    (tmp_path / "opened before").hardlink_to(folder.path / "report.md")
    folder.write_reports({"report.md": "new"})
    assert (folder.path / "report.md").read_text() == "new"
    assert (tmp_path / "opened before").read_text() == "old"

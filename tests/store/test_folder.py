import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Status
from harness.store import folder as store
from harness.store.codec import dump
from harness.store.folder import RunFolder
from tests.runs import launch, run


def test_files_that_a_killed_harness_did_not_finish_are_removed(folder):
    folder.write_reports({"report.md": "whole", "charts/a.svg": "<svg/>"})
    (folder.path / "artifacts" / "launch" / "inner").mkdir(parents=True)
    left = [".report.md.0123abcd.part", "charts/.a.svg.0123abcd.part"]
    left += ["artifacts/launch/.x.txt.0123abcd.part", "artifacts/launch/inner/.x.txt.0123abcd.part"]
    for name in (*left, "artifacts/launch/data.part"):
        (folder.path / name).touch()
    folder.repair()
    assert not [name for name in left if (folder.path / name).exists()]
    others = ("report.md", "charts/a.svg", "artifacts/launch/data.part")
    assert all((folder.path / name).exists() for name in others)


RUN_NAME = "2026-11-21T00-00-00Z-dead"
LEFTOVERS: list[tuple[str, dict[str, str], bool]] = [
    (RUN_NAME, {}, True),
    (RUN_NAME, {".launches.jsonl.0123abcd.part": ""}, True),
    (RUN_NAME, {"launches.jsonl": "", ".run.json.0123abcd.part": "{"}, True),
    (RUN_NAME, {"notes.txt": ""}, False),
    (RUN_NAME, {"launches.jsonl": "", "notes.txt": ""}, False),
    (RUN_NAME, {"mine.part": ""}, False),
    ("mine", {}, False),
    ("mine", {".launches.jsonl.0123abcd.part": ""}, False),
    ("mine", {"launches.jsonl": ""}, True),
    (RUN_NAME, {"launches.jsonl": "{}\n"}, False),
    (RUN_NAME, {"launches.jsonl": "", "run.json": ""}, False),
]


def test_only_what_a_run_leaves_that_came_to_nothing_is_discarded(tmp_path):
    for number, (name, files, is_nothing) in enumerate(LEFTOVERS):
        path = tmp_path / str(number) / name
        path.mkdir(parents=True)
        for file, text in files.items():
            (path / file).write_text(text)
        assert (RunFolder.is_unbegun(path) and RunFolder(path).discard()) is is_nothing, (name, files)
        assert path.exists() is not is_nothing
    assert not RunFolder.is_unbegun(tmp_path / "no such")
    assert not RunFolder(tmp_path / str(len(LEFTOVERS) - 1) / RUN_NAME).discard()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.dictionaries(TEXTS, st.floats(1e-9, 1e9), max_size=3)
LAUNCHES = st.builds(
    launch,
    round=st.integers(0, 10**6),
    status=st.sampled_from(Status),
    error=TEXTS,
    stderr=TEXTS,
    phases=NUMBERS,
    phases_cpu=NUMBERS,
    resources=NUMBERS,
    observations=st.dictionaries(TEXTS, TEXTS | st.integers(0, 9) | st.lists(st.floats(-9, 9)), max_size=3),
)


@pytest.mark.slow
@given(st.lists(LAUNCHES, max_size=4))
def test_what_was_stored_is_read_again_a_line_each(launches):
    with tempfile.TemporaryDirectory() as results:
        folder = RunFolder.create(Path(results), "run")
        folder.write_run(run())
        for value in launches:
            folder.append(value)
        lines = [dump(entry) + b"\n" for entry in folder.read_launches()]
        assert lines == [dump(entry) + b"\n" for entry in launches]
        assert (folder.path / "launches.jsonl").read_bytes() == b"".join(lines)
        assert b"".join(lines).count(b"\n") == len(launches)
        assert dump(folder.read_run()) == dump(run())


def test_launches_share_equal_values_and_keys_of_a_later_minor_change_are_passed_over(folder):
    outputs = [0.25, 0.5]
    for number in (1, 1.0, True):
        folder.append(launch(fingerprint={"outputs": outputs, "number": number}, pins={"numpy": "1.17.4"}))
    entries = folder.read_launches()
    assert len({id(entry.pins) for entry in entries}) == 1
    assert len({id(entry.fingerprint["outputs"]) for entry in entries}) == 1
    assert [type(entry.fingerprint["number"]) for entry in entries] == [int, float, bool]
    folder.append(launch(round=1))
    path = folder.path / "launches.jsonl"
    path.write_bytes(path.read_bytes().replace(b"{", b'{"telemetry":{"clock":1},', 1))
    assert folder.read_launches()[0].round == 1


def test_a_torn_last_line_is_passed_over_and_cut_off_before_the_next(folder):
    folder.append(launch(round=1))
    path = folder.path / "launches.jsonl"
    line = path.read_bytes()
    assert not folder.is_torn
    for torn in (line[:1], line + line[: len(line) // 2]):
        path.write_bytes(torn)
        assert folder.is_torn
    assert len(folder.read_launches()) == 1
    assert folder.repair()
    assert path.read_bytes() == line
    assert not folder.repair()
    folder.append(launch(round=2))
    assert [entry.round for entry in folder.read_launches()] == [1, 2]


def read_problem(action: Callable[[], object], folder: Path) -> str:
    with pytest.raises((UsageError, CannotRunHereError)) as raised:
        action()
    return str(raised.value).replace(str(folder), "FOLDER").encode(errors="replace").decode()


def test_folders_that_are_no_runs_are_refused(tmp_path, snapshot):
    paths = {name: tmp_path / name for name in ("merged", "begun too", "other", "links")}
    for path in paths.values():
        path.mkdir()
    (paths["merged"] / "launches.jsonl").write_text("{}\n")
    (paths["begun too"] / "launches.jsonl").touch()
    (paths["links"] / "run.json").touch()
    (paths["links"] / "report.md").symlink_to(tmp_path)
    problems = {name: read_problem(lambda path=path: RunFolder.open(path), tmp_path) for name, path in paths.items()}
    problems["name"] = read_problem(lambda: RunFolder.open(tmp_path / ("n" * 300)), tmp_path).replace("n" * 300, "NAME")
    assert problems == snapshot


def test_a_results_folder_that_cannot_be_made_is_said_before_the_first_launch(tmp_path, monkeypatch, snapshot):
    (tmp_path / "file").touch()
    results = {"file": tmp_path / "file", "no UTF-8": tmp_path / os.fsdecode(b"\xff")}
    problems = {
        name: read_problem(lambda path=path: RunFolder.create(path, "run"), tmp_path) for name, path in results.items()
    }
    usage = SimpleNamespace(free=store.ROOM)
    monkeypatch.setattr(store.shutil, "disk_usage", lambda _: usage)
    RunFolder.create(tmp_path, "enough")
    usage.free -= 1
    problems["full"] = read_problem(lambda: RunFolder.create(tmp_path, "full"), tmp_path)
    assert problems == snapshot
    assert sorted(path.name for path in tmp_path.iterdir()) == ["enough", "file"]


def test_launches_that_cannot_be_read_get_a_sentence(folder, monkeypatch, snapshot):
    path = folder.path / "launches.jsonl"
    line, problems = dump(launch()) + b"\n", {}
    newer = line.replace(b'"schema":1', b'"schema":99')
    for name, content in {"no launch": line + b'{"not": "one"}\n', "newer": newer, "no JSON": b"{\n"}.items():
        path.write_bytes(content)
        problems[name] = read_problem(folder.read_launches, folder.path)
    path.write_bytes(line + b"\n \n" + line)
    assert len(folder.read_launches()) == 2
    monkeypatch.setattr(store, "LINE_MOST", len(line))
    assert len(folder.read_launches()) == 2
    path.write_bytes(b"x" * 2**20 + b"\n")
    monkeypatch.setattr(store, "LINE_MOST", 2**20)
    problems["long line"] = read_problem(folder.read_launches, folder.path)
    for kind, make in {"missing": lambda: None, "folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}.items():
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        make()
        problems[kind] = read_problem(folder.read_launches, folder.path)
        assert read_problem(folder.repair, folder.path) == problems[kind]
    assert problems == snapshot


def test_a_disk_that_fills_up_leaves_no_part_of_a_line(folder, snapshot):
    folder.append(launch(round=1))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((folder.path / "launches.jsonl").stat().st_size + 100, limits[1]))
    try:
        assert read_problem(lambda: folder.append(launch(round=2, error="x" * 10_000)), folder.path) == snapshot
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [entry.round for entry in folder.read_launches()] == [1]
    assert not folder.repair()


def test_artifacts_never_leave_their_folder_and_stay_apart(folder):
    paths = folder.write_artifacts("g-round1", {"../../evil": b"x", "profile.pstats": b"y"})
    assert paths == ["artifacts/g-round1/evil", "artifacts/g-round1/profile.pstats"]
    paths = folder.write_artifacts("g", {"x/data.txt": b"1", "y/data.txt": b"2"})
    assert [(folder.path / path).read_bytes() for path in paths] == [b"1", b"2"]


def test_a_report_takes_the_place_of_an_older_one(folder):
    folder.write_reports({"report.md": "1", "details.md": "1", "charts/old.svg": "<svg/>", "charts/both.svg": "<svg/>"})
    (folder.path / "opened before").hardlink_to(folder.path / "report.md")
    written = folder.write_reports({"report.md": "2", "charts/both.svg": "<svg>2</svg>", "charts/../out.svg": "<svg/>"})
    assert written == [folder.path / "report.md"]
    assert (written[0].read_text(), (folder.path / "opened before").read_text()) == ("2", "1")
    assert not (folder.path / "details.md").exists()
    assert {path.name: path.read_text() for path in (folder.path / "charts").iterdir()} == {
        "both.svg": "<svg>2</svg>",
        "out.svg": "<svg/>",
    }
    assert not (folder.path / "out.svg").exists()
    folder.write_reports({"report.md": "3"})
    assert not list(folder.path.glob("charts*"))


def test_what_cannot_be_written_is_told_with_the_command_that_goes_on(folder, snapshot):
    (folder.path / "charts").write_text("a file")
    problems = {"run": read_problem(lambda: folder.write_reports({"charts/a.svg": "<svg/>"}), folder.path)}
    (folder.path / "run.json").unlink()
    problems["new run"] = read_problem(lambda: folder.write_reports({"charts/a.svg": "<svg/>"}, "again"), folder.path)
    assert problems == snapshot


def put_link(folder: RunFolder, victim: Path, name: str) -> Path:
    path = folder.path / name
    if path.is_file():
        path.unlink()
    path.symlink_to(victim)
    return path


def test_a_folder_with_a_link_in_it_is_refused_by_the_links_name(folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("report.md", "run.json.part", ".lock", "launches.jsonl", "charts", "artifacts"):
        path = put_link(folder, victim, name)
        with pytest.raises(UsageError, match=f"{path} is a link"):
            RunFolder.open(folder.path)
        path.unlink()
    assert victim.read_text() == "mine"


def test_nothing_is_written_through_a_link(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "old.svg").write_text("mine")
    for name in ("charts", "charts.part", "artifacts", "report.md"):
        put_link(folder, elsewhere, name)
    put_link(folder, elsewhere / "old.svg", "launches.jsonl")
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


def test_a_launchs_artifacts_lie_below_the_runs_folder(folder, tmp_path):
    (tmp_path / "steady.json").write_text("{}")
    (folder.path / "artifacts").mkdir()
    (folder.path / "artifacts" / "link").symlink_to(tmp_path)
    for name in ("artifacts/../steady.json", "/etc/steady.json", "artifacts/link/steady.json"):
        with pytest.raises(UsageError, match=r"cannot be read: .*(link|leaves the folder)"):
            folder.read_profiles(launch(artifacts=[name]))


def test_a_run_is_known_as_ones_own_until_it_is_changed(folder):
    assert not folder.is_from_here()
    folder.write_run(run(), signed=True)
    assert folder.is_from_here()
    assert dump(folder.read_run()) == dump(run())
    path = folder.path / "run.json"
    path.write_text(path.read_text().replace('"docker"', '"local"'))
    assert not folder.is_from_here()

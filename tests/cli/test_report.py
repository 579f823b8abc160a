import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.report.formats import render
from tests.cli.conftest import Harness, stored
from tests.report.formats.examples import example, nothing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path, *example())


def test_a_report_is_made_again_from_the_launches(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "2")
    path = harness.run / "report.md"
    first = path.read_text()
    path.unlink()
    done = harness("report", str(harness.run))
    assert done.returncode == 0, done.stderr
    assert path.read_text() == first
    assert "TensorFlow 2.0.0 takes " in done.stdout


def test_a_report_is_made_with_as_little_address_space_as_a_small_machine_allows(harness: Harness) -> None:
    folder = stored(harness.root / "results", *example())
    limited = f"ulimit -v 7000000 && exec {shlex.join(harness.command('report', str(folder)))}"
    done = subprocess.run(
        ["sh", "-c", limited], cwd=harness.root, env=harness.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "report.md").is_file()


def test_without_a_run_it_is_the_newest_of_the_results(harness: Harness) -> None:
    none = harness("report")
    assert (none.returncode, none.stdout) == (2, "")
    assert "The folder results has no run, but this command needs 1.\nPass the folder of a run" in none.stderr
    run, launches = example()
    for name in ("b", "a"):
        stored(harness.root / "results", replace(run, id=name), launches)
    done = harness("report")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "The newest run: results/a"
    assert (harness.root / "results" / "a" / "report.md").is_file()
    assert not (harness.root / "results" / "b" / "report.md").exists()


def test_what_ended_a_run_early_is_said_before_the_report_s_path_and_in_the_report(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--budget", "2s", "--rounds", "90")
    for value in (done, harness("report", str(harness.run))):
        said, every = value.stderr, value.stdout + value.stderr
        assert said.splitlines()[-1].startswith("Report: ")
        assert re.search(
            r"The budget of 2 s ended the run after \d+ rounds? \(planned: at most 90 rounds\)\.", value.stderr
        )
        # once, if the verdict is unclear: both cells do the same work, and a quiet machine may settle that in 2 s
        suggested = re.findall(r"harness matrix --resume \S+ --rounds \d+$", every, re.MULTILINE)
        assert len(suggested) == bool(re.search(r"unclear|too few rounds", every)), every
    assert "The budget of 2 s ended the run after " in (harness.run / "report.md").read_text()


def test_the_pictures_that_a_report_shows_lie_beside_it(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "2")
    texts = ((harness.run / name).read_text() for name in ("report.md", "details.md"))
    shown = [entry for text in texts for entry in re.findall(r"\]\((charts/[^)]*\.svg)\)", text)]
    assert shown
    assert sorted(shown) == sorted(f"charts/{path.name}" for path in (harness.run / "charts").iterdir())
    (harness.run / "charts" / "old.svg").write_text("")
    assert harness("report", str(harness.run)).returncode == 0
    assert sorted(shown) == sorted(f"charts/{path.name}" for path in (harness.run / "charts").iterdir())


def test_the_page_lies_beside_the_report_and_is_written_alone_too(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "2")
    assert "report.md (and details.md, report.html)" in done.stderr
    page = harness.run / "report.html"
    text = page.read_text()
    page.unlink()
    assert harness("report", str(harness.run), "--format", "html", "--output", str(page)).returncode == 0
    assert page.read_text() == text


def test_in_full_all_is_in_one_file(harness: Harness, folder: Path) -> None:
    assert harness("report", str(folder)).returncode == 0
    pasted, details = ((folder / name).read_text() for name in ("report.md", "details.md"))
    done = harness("report", str(folder), "--full")
    assert done.returncode == 0, done.stderr
    assert "(and report.html)" in done.stderr
    assert not (folder / "details.md").exists()
    full = (folder / "report.md").read_text()
    headings = [
        line for line in (pasted + details).splitlines() if line.startswith("## ") and line != "## Not in this file"
    ]
    assert headings
    assert set(headings) == {line for line in full.splitlines() if line.startswith("## ")}
    done = harness("report", str(folder), "--full", "--format", "md")
    assert done.returncode == 2
    assert "Omit --full or --format." in done.stderr


def test_the_report_of_a_run_without_a_number_is_written_and_ends_as_the_run_did(
    harness: Harness, folder: Path
) -> None:
    path = folder / "launches.jsonl"
    launches = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [json.dumps({**launch, "status": "failed", "samples": [], "observations": {}}) for launch in launches]
    path.write_text("\n".join([*lines, ""]))
    done = harness("report", str(folder))
    assert done.returncode == 1, done.stderr
    assert (folder / "report.md").is_file()
    assert harness("report", str(folder), "--format", "json").returncode == 0


def test_a_report_of_a_moved_run_names_the_folder_in_which_it_is(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1", "--budget", "10m")
    path = harness.run / "run.json"
    document = json.loads(path.read_text())
    document["stops"] = {name: {**stop, "reason": "interrupted"} for name, stop in document["stops"].items()}
    path.write_text(json.dumps(document))
    recorded = harness.run.relative_to(harness.root)
    assert f"harness matrix --resume {recorded}\n" in harness("report", str(harness.run)).stderr
    harness.run.rename(harness.root / "moved")
    done = harness("report", "moved")
    assert "    harness matrix --resume moved\n" in done.stderr
    assert str(recorded) not in done.stdout + done.stderr + (harness.root / "moved" / "report.md").read_text()


def test_what_is_no_run_or_a_damaged_one_gets_a_sentence(harness: Harness, folder: Path) -> None:
    (folder / "run.json").write_text("{")
    for path, told in ((str(folder), "run.json is damaged"), ("results/none", "isn't the folder of a run")):
        done = harness("report", path)
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_launches_that_end_in_the_middle_of_a_line_are_told_and_can_be_measured_again(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1", "--budget", "10m")
    path, folder = harness.run / "launches.jsonl", harness.run.relative_to(harness.root)
    path.write_bytes(path.read_bytes()[:-100])
    done = harness("report", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(
        f"{folder}/launches.jsonl ends in the middle of a line: its run was killed, or the file was truncated. The "
        f"complete launches are used.\nTo measure the missing launches: harness matrix --resume {folder}\n"
    )
    report = (harness.run / "report.md").read_text()
    assert "its launches are missing from launches.jsonl, so the file is truncated" in report
    assert "the budget ended" not in report
    assert "ends in the middle of a line" in harness("compare", str(folder), str(folder)).stderr
    resumed = harness("matrix", "--resume", str(folder))
    assert resumed.returncode == 0, resumed.stderr
    assert "truncated" not in (harness.run / "report.md").read_text()


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_format_goes_to_stdout_and_nothing_else_does(harness: Harness, folder: Path, format: str) -> None:
    before = sorted(folder.iterdir())
    done = harness("report", str(folder), "--format", format)
    assert (done.returncode, done.stderr) == (0, "")
    # subprocess makes line ends of CSV's
    assert done.stdout == render(format, Results(*example())).replace("\r\n", "\n")
    assert sorted(folder.iterdir()) == before


def test_a_format_goes_into_a_file(harness: Harness, folder: Path) -> None:
    path = harness.root / "launches.csv"
    done = harness("report", str(folder), "--format", "csv", "--output", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert path.read_bytes() == render("csv", Results(*example())).encode()
    assert not list(path.parent.glob("*.part"))


@pytest.mark.parametrize("name", ["docker-bake.hcl/report.json", "images", "none/report.json"])
def test_a_file_that_cannot_be_written_gets_a_sentence(harness: Harness, folder: Path, name: str) -> None:
    path = harness.root / name
    done = harness("report", str(folder), "--format", "json", "--output", str(path))
    assert done.returncode == 4
    assert f"{path} cannot be written: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(harness.root.glob("*.part"))
    assert not (harness.root / "none").exists()


@pytest.mark.parametrize("name", [".", ""])
def test_a_folder_without_a_name_gets_the_sentence_of_any_folder(harness: Harness, folder: Path, name: str) -> None:
    done = harness("report", str(folder), "--format", "json", "--output", name)
    assert done.returncode == 4
    assert ". cannot be written: Is a directory.\nChoose another file with --output." in done.stderr


def test_a_file_without_a_format_gets_a_sentence(harness: Harness, folder: Path) -> None:
    done = harness("report", str(folder), "--output", "report.json")
    assert done.returncode == 2
    assert "--output needs --format" in done.stderr


def test_a_format_that_cannot_say_that_there_is_no_number_gets_a_sentence(harness: Harness, tmp_path: Path) -> None:
    run, launches = nothing()
    done = harness("report", str(stored(tmp_path, run, launches[:1])), "--format", "pyperf")
    assert done.returncode == 3
    assert "No cell has a result" in done.stderr

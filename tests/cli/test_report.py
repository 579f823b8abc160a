import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.report.formats import render
from tests.cli.conftest import SHORT, stored
from tests.report.formats.examples import example

OPTIONS = ("-s", "ways", "-a", "way=fine", *SHORT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path, *example())


@pytest.mark.slow
def test_a_report_is_made_with_as_little_address_space_as_a_small_machine_allows(harness):
    folder = stored(harness.root / "results", *example())
    limited = f"ulimit -v 7000000 && exec {shlex.join(harness.command('report', str(folder)))}"
    process = subprocess.run(
        ["sh", "-c", limited], cwd=harness.root, env=harness.environ, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert (folder / "report.md").is_file()


@pytest.mark.slow
def test_without_a_run_it_is_the_newest_of_the_results(harness):
    run, launches = example()
    for name in ("b", "a"):
        stored(harness.root / "results", replace(run, id=name), launches)
    process = harness("report")
    assert process.returncode == 0, process.stderr
    assert "results/a" in process.stderr.splitlines()[0]
    reports = [(harness.root / "results" / name / "report.md").exists() for name in ("a", "b")]
    assert reports == [True, False]


@pytest.mark.slow
def test_a_report_is_made_again_from_the_launches_with_its_page_and_pictures(harness, instant):
    process = harness.call("matrix", *OPTIONS, "--rounds", "2")
    assert "report.md (and report.html)" in process.stderr
    names = ("report.md", "details.md", "report.html")
    before = {name: (harness.run / name).read_text() for name in names}
    for name in names:
        (harness.run / name).unlink()
    (harness.run / "charts" / "old.svg").write_text("")
    process = harness.call("report", str(harness.run))
    assert process.returncode == 0, process.stderr
    assert {name: (harness.run / name).read_text() for name in names} == before
    assert "TensorFlow 2.0.0 takes " in process.stdout
    pictures = re.findall(r'src(?:set)?="(charts/[^"]*\.svg)"', before["report.md"] + before["details.md"])
    assert pictures
    assert sorted(pictures) == sorted(f"charts/{path.name}" for path in (harness.run / "charts").iterdir())
    page = harness.run / "report.html"
    page.unlink()
    assert harness.call("report", str(harness.run), "--format", "html", "--output", str(page)).returncode == 0
    assert page.read_text() == before["report.html"]


@pytest.mark.slow
def test_in_full_all_is_in_one_file(harness, folder):
    harness.call("report", str(folder))
    texts = [(folder / name).read_text() for name in ("report.md", "details.md")]
    process = harness.call("report", str(folder), "--full")
    assert (process.returncode, "(and report.html)" in process.stderr) == (0, True)
    assert not (folder / "details.md").exists()
    headings, full = (
        {line for line in text.splitlines() if line.startswith("## ")}
        for text in ("".join(texts), (folder / "report.md").read_text())
    )
    assert headings
    assert headings - full == {"## Not in this file"}


def test_the_report_of_a_run_without_a_number_is_written_and_ends_as_the_run_did(harness, folder):
    path = folder / "launches.jsonl"
    launches = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [json.dumps({**launch, "status": "failed", "samples": [], "observations": {}}) for launch in launches]
    path.write_text("\n".join([*lines, ""]))
    process = harness("report", str(folder))
    assert process.returncode == 1, process.stderr
    assert (folder / "report.md").is_file()
    assert harness.call("report", str(folder), "--format", "json").returncode == 0


@pytest.mark.slow
@pytest.mark.usefixtures("instant")
def test_truncated_launches_are_told_and_measured_again_and_a_moved_run_is_named_by_its_folder(harness):
    harness.call("matrix", *OPTIONS, "--rounds", "1", "--budget", "10m")
    path, folder = harness.run / "launches.jsonl", harness.run.relative_to(harness.root)
    path.write_bytes(path.read_bytes()[:-100])
    process = harness.call("report", str(folder))
    assert process.returncode == 0, process.stderr
    assert process.stderr.startswith(f"{folder}/launches.jsonl ")
    assert process.stderr.splitlines()[1].endswith(f": harness matrix --resume {folder}")
    report = (harness.run / "report.md").read_text()
    assert ("truncated" in report, "the budget ended" in report) == (True, False)
    assert f"{folder}/launches.jsonl " in harness.call("compare", str(folder), str(folder)).stderr
    resumed = harness.call("matrix", "--resume", str(folder))
    assert resumed.returncode == 0, resumed.stderr
    assert "truncated" not in (harness.run / "report.md").read_text()

    path = harness.run / "run.json"
    document = json.loads(path.read_text())
    document["stops"] = {name: {**stop, "reason": "interrupted"} for name, stop in document["stops"].items()}
    path.write_text(json.dumps(document))
    harness.run.rename(harness.root / "charts")  # also the name of a folder of reports
    process = harness.call("report", "charts")
    assert (process.returncode, "harness matrix --resume charts\n" in process.stderr) == (0, True)
    assert str(folder) not in process.stdout + process.stderr + (harness.root / "charts" / "report.md").read_text()


def test_a_format_goes_to_stdout_or_into_a_file_and_nothing_else_does(harness, folder):
    before = sorted(folder.iterdir())
    run, launches = example()
    for name in ("json", "csv"):
        process = harness.call("report", str(folder), "--format", name)
        expected = render(name, Results(replace(run, folder=str(folder)), launches))
        assert (process.returncode, process.stdout, process.stderr) == (0, expected, "")
        path = harness.root / f"launches.{name}"
        process = harness.call("report", str(folder), "--format", name, "--output", str(path))
        assert (process.returncode, process.stdout) == (0, "")
        assert path.read_bytes() == expected.encode()
    assert sorted(folder.iterdir()) == before
    assert not list(harness.root.glob("*.part"))
    (folder / "run.json").write_text("{")
    damaged = harness.call("report", str(folder))
    assert (damaged.returncode, "run.json is damaged" in damaged.stderr) == (2, True)


def test_a_template_lays_the_report_out_and_a_mistake_in_it_is_told_with_its_line(harness, folder):
    (harness.root / "own.md.j2").write_text("One: {{ title }}\n")
    process = harness.call("report", str(folder), "--template", "own.md.j2")
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.startswith("One: One training step")
    (harness.root / "own.md.j2").write_text("One\n{{ titel }}\n")
    process = harness.call("report", str(folder), "--template", "own.md.j2", "--output", "own.md")
    assert (process.returncode, process.stdout) == (2, "")
    assert "own.md.j2:2: 'titel' is undefined." in process.stderr

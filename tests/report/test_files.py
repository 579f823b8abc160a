"""All files of a report."""

from xml.etree import ElementTree

from harness.analysis.results import Results
from harness.report import files, markdown, sections
from harness.report.blocks import REPORT, Section, Text
from tests.factories import cells
from tests.report.formats.examples import example
from tests.report.handmade import everything


def test_each_file_is_made_and_every_picture_that_is_shown() -> None:
    made = files.render_files(Results(*example()), everything(cells()))
    charts = ["charts/points.svg", "charts/panels.svg", "charts/folded.svg"]
    assert list(made) == ["report.md", "details.md", "report.html", *charts]
    assert b"](charts/points.svg)" in made["report.md"]
    assert b"](charts/panels.svg)" in made["details.md"]
    assert b'data-chart="folded"' in made["report.html"]
    for name in charts:
        ElementTree.fromstring(made[name])


def test_the_markdown_names_the_folder_of_the_details() -> None:
    results = Results(*example())
    told = sections.build(results)
    made = files.render_files(results, told)
    assert {name: made[name].decode() for name in ("report.md", "details.md")} == {
        "report.md": markdown.split_report(told, results.run.shown_folder).report,
        "details.md": markdown.split_report(told, results.run.shown_folder).details,
    }
    assert "results/2026-11-21T04-10-00Z-3f2a/details.md" in made["report.md"].decode()


def test_where_nothing_is_left_there_are_no_details() -> None:
    made = files.render_files(Results(*example()), [Section("Title", "title", [Text("All.", where=REPORT)])])
    assert list(made) == ["report.md", "report.html"]


def test_in_full_all_is_in_one_file() -> None:
    told = everything(cells())
    made = files.render_files(Results(*example()), told, full=True)
    assert "details.md" not in made
    assert made["report.md"].decode() == markdown.render_full(told)
    assert b"Phases of it" in made["report.md"]

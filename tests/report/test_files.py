"""All files of a report."""

from xml.etree import ElementTree

from harness.analysis.results import Results
from harness.report import files
from harness.report.blocks import REPORT, Section, Text
from tests.factories import cells
from tests.report.formats.examples import example
from tests.report.handmade import everything


def test_each_file_is_made_and_every_picture_that_is_shown():
    files_by_name = files.render_files(Results(*example()), everything(cells()))
    charts = ["charts/points.svg", "charts/panels.svg", "charts/folded.svg"]
    assert list(files_by_name) == ["report.md", "details.md", "report.html", *charts]
    assert b"](charts/points.svg)" in files_by_name["report.md"]
    assert b"](charts/panels.svg)" in files_by_name["details.md"]
    assert b'data-chart="folded"' in files_by_name["report.html"]
    for name in charts:
        ElementTree.fromstring(files_by_name[name])


def test_where_nothing_is_left_there_are_no_details():
    files_by_name = files.render_files(Results(*example()), [Section("Title", "title", [Text("All.", where=REPORT)])])
    assert list(files_by_name) == ["report.md", "report.html"]

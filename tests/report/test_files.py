"""All files of a report."""

from xml.etree import ElementTree

from harness.analysis.results import Results
from harness.report import files
from harness.report.blocks import REPORT, Section, Text
from tests.factories import cells
from tests.report.formats.examples import example
from tests.report.handmade import everything


def test_each_file_is_made_and_no_details_where_nothing_is_left():
    files_by_name = files.render_files(Results(*example()), everything(cells()))
    charts = [f"charts/{name}{theme}.svg" for name in ("points", "panels", "folded") for theme in ("", "-dark")]
    assert list(files_by_name) == ["report.md", "details.md", "report.html", *charts]
    for name, file in (("points", "report.md"), ("panels", "details.md")):
        assert f'(prefers-color-scheme: dark)" srcset="charts/{name}-dark.svg">' in files_by_name[file].decode()
        assert f'src="charts/{name}.svg">' in files_by_name[file].decode()
    assert b'data-chart="folded"' in files_by_name["report.html"]
    for name in charts:
        root = ElementTree.fromstring(files_by_name[name])
        ground = next(root.iter("{http://www.w3.org/2000/svg}rect")).attrib["fill"]
        assert (ground == "white") is ("dark" not in name)
    files_by_name = files.render_files(Results(*example()), [Section("Title", "title", [Text("All.", where=REPORT)])])
    assert list(files_by_name) == ["report.md", "report.html"]

"""Sweeps, statements and observations on the page."""

import re

from harness.report import markdown
from harness.report.html.page import render
from tests.observing import example
from tests.swept import CROSSING, seconds, swept, swept_run


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]+)</h2>", page)


def test_a_sweep_has_its_picture_its_sentences_and_its_table() -> None:
    page = render(*swept_run(seconds(CROSSING), spread=0.001))
    assert "Sweeps" in headings(page)
    assert 'data-chart="sweeps-sigmoid"' in page
    assert "on, compiled takes less time than numpy (tf1.14)." in page
    assert '<th scope="row">compiled against numpy, tf1.14</th><td>numpy</td>' in page


def test_observations_and_statements_are_tables_whose_changes_are_bold() -> None:
    page = render(*example())
    assert {"What the sources state", "What was observed"} <= set(headings(page))
    assert "<b>[1, 3]</b>" in page
    assert "<td>as stated</td>" in page


def test_a_cut_value_is_whole_below_and_harmless() -> None:
    code = "<script>alert(1)</script>\n" * 9
    page = render(*example((code, code, "short")))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\n&lt;script&gt;" in page


def test_the_sections_are_those_of_the_markdown() -> None:
    for made in (example(), swept_run(seconds(CROSSING), of=swept())):
        told = re.findall(r"^## (.*)$", markdown.render(*made), re.MULTILINE)
        found = [heading for heading in headings(render(*made)) if heading in told]
        assert found == told

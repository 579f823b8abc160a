"""report.html, as text. tests/browser/ opens it."""

import json
import os
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.report import sections
from harness.report.blocks import Block, Bold, Entry, Folded, Head, Line, Link, Section, Table, Text, Where
from harness.report.html import page as pages
from harness.report.html.assets import load_assets
from tests.factories import cell, cells, run
from tests.report.formats.examples import HOSTILE, example, hostile, nothing, one_launch
from tests.report.handmade import compared, everything, phases

SNAPSHOT = Path(__file__).parent / "body.html"

#: Elements that have no end.
VOID = {"meta", "input", "br"}


class Reader(HTMLParser):
    """What stands in a page; raises AssertionError where an element is not closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice: {attrs}"
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def find(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        wanted = attributes.items()
        return [
            attributes_of for name, attributes_of in self.elements if name == tag and wanted <= attributes_of.items()
        ]

    def text(self, tag: str) -> list[str]:
        return [" ".join(text.split()) for text in self.texts.get(tag, [])]


def render(stored=example, contents: list[Section] | None = None) -> str:
    """The page of a run, with its own sections or with those that are given."""
    results = Results(*stored())
    return pages.render(results, sections.build(results) if contents is None else contents)


def render_blocks(*blocks: Block) -> str:
    """What the page makes of blocks in a section of their own, in a run of `cells()`."""
    first = Section("Title", "title", [Text("An answer.")])
    text = pages.render(Results(run(), []), [first, Section("Section", "section", blocks)])
    return text.split('<h2 id="section">Section</h2>')[1].split("</main>")[0]


@pytest.fixture(scope="module")
def page() -> Reader:
    return Reader(render())


@pytest.fixture(scope="module")
def handmade() -> Reader:
    return Reader(render(contents=everything(cells())))


def body(text: str) -> str:
    """What a reader sees: the page without its style, its scripts and its data."""
    start, end = text.index("<body>"), text.index('<script type="application/json"')
    return re.sub(r"\n{2,}", "\n", text[start:end]) + "</body>\n"


def test_the_body_is_the_snapshot() -> None:
    """UPDATE_SNAPSHOTS=1 writes it anew; read the difference before committing it."""
    text = body(render(contents=everything(cells())))
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text)
    assert text == SNAPSHOT.read_text()


@pytest.mark.parametrize("stored", [example, hostile, nothing, one_launch])
def test_it_has_the_sections_in_their_order_and_a_table_of_all_cells(stored) -> None:
    titles = [section.title for section in sections.build(Results(*stored())) if section.shown(Where.PAGE)]
    reader = Reader(body(render(stored)))
    # what the page has beside: a table over all scenarios, and the dialog of a cell
    headings = [heading for heading in reader.text("h2") if heading not in {"All cells", ""}]
    assert [*reader.text("h1"), *headings] == [" ".join(re.sub(r"\x1b\[\d*m", "", title).split()) for title in titles]
    assert reader.text("h2").count("All cells") == 1


def test_contents_are_links_to_every_section_and_all_cells_begin_what_is_not_pasted(handmade: Reader) -> None:
    names = ["made-compared", "cells", "made-phases", "made-again"]
    assert [link["href"] for link in handmade.find("a")][1:5] == [f"#{name}" for name in names]
    assert set(names) <= {attributes.get("id") for _, attributes in handmade.elements}
    assert handmade.text("h2")[:-1] == ["Comparisons", "All cells", "Phases of it", "Again"]
    assert handmade.text("nav") == ["Comparisons All cells Phases of it Again"]
    # what is for other outputs is left out
    text = " ".join(handmade.text("p"))
    assert "only pasted" not in text
    assert "only printed" not in text
    assert "below 1 faster" not in handmade.text("th")


def test_the_answer_comes_first(page: Reader) -> None:
    answer = sections.build(Results(*example()))[0].blocks[0]
    assert isinstance(answer, Text)
    assert page.text("h1") == ["One training step: tf1.14, tf2.0, tf2.1"]
    (sentence,) = answer.words
    assert isinstance(sentence, Bold)
    assert page.text("p")[1] == sentence.text
    assert page.find("p", **{"class": "answer"})


def test_its_scripts_are_the_only_ones_that_run(page: Reader) -> None:
    (policy,) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
    content = policy["content"] or ""
    assert content.startswith("default-src 'none'; ")
    for script in load_assets().scripts:
        assert script.source in content
    assert "unsafe-eval" not in content
    assert re.search(r"script-src ('sha256-[\w+/=]+' ?){3};", content)


def test_nothing_is_asked_of_any_host(handmade: Reader) -> None:
    addresses = [
        (tag, value)
        for tag, attributes in handmade.elements
        for name, value in attributes.items()
        if name in {"src", "href", "action"}
    ]
    assert {tag for tag, _ in addresses} == {"a"}
    assert [value for _, value in addresses if not (value or "").startswith("#")] == ["https://example.org/question/1"]


def test_each_number_knows_its_cell_and_a_ratio_both(page: Reader) -> None:
    items = json.loads(page.texts["script"][1])["cells"]
    tables = " ".join(page.text("table"))
    places = [(entry.get("data-cells") or "").split() for entry in page.find("td")]
    singles = {place for place, *others in filter(None, places) if not others}
    # a column without a single number is left out, and so are its cells
    assert len(singles) == 7
    for place in singles:
        assert items[int(place)]["number"].removesuffix(" ms") in tables
    pairs = [pair for pair in places if len(pair) == 2]
    assert pairs
    for pair in pairs:
        one, other = (items[int(place)] for place in pair)
        assert (one["environment"], one["axes"]["mode"]) != (other["environment"], other["axes"]["mode"])


def test_a_line_about_one_cell_is_opened_by_its_name() -> None:
    text = render_blocks(phases(cells()))
    assert re.findall(r'<th scope="row" data-cells="(\d+)">', text) == ["0", "1", "2", "3"]
    assert text.count("data-cells") == 4
    # a number of a cell that the run has not opens nothing
    assert "data-cells" not in render_blocks(phases([cell("tf9.9")]))
    line = Line([Entry("a"), Entry("1.0", cells=[cell(), cell("tf9.9")])])
    assert "data-cells" not in render_blocks(Table("T", [Head("", is_label=True), Head("b")], [line]))


def test_a_table_that_is_searched_is_sorted_by_numbers_and_filtered_by_verdict() -> None:
    text = render_blocks(compared(cells()))
    assert re.findall(r'data-sort="([^"]*)"', text) == ["10.0", "", "8.0"]
    assert re.findall(r'<tr data-verdict="([^"]*)"', text) == ["slower", "no verdict", "faster"]
    assert re.findall(r"<option>([^<]*)", text) == ["slower", "no verdict", "faster"]
    assert re.findall(r'class="verdict" data-verdict="([^"]*)"', text) == ["slower", "faster"]
    assert 'data-words="{matching} of {all} comparisons"' in text


def test_a_table_whose_lines_have_one_verdict_has_no_choice() -> None:
    assert "<select" not in render_blocks(compared(cells(), 1))
    assert "<input" in render_blocks(compared(cells(), 1))
    assert "<input" not in render_blocks(phases(cells()))


def test_a_long_table_is_folded_with_its_count() -> None:
    assert "<summary>Compared: 41 comparisons</summary>" in render_blocks(compared(cells(), 41))
    assert "<summary>Compared" not in render_blocks(compared(cells(), 40))


def test_a_heading_without_words_is_no_heading_and_the_first_column_names_the_line() -> None:
    text = render_blocks(Table("T", [Head(""), Head("b")], [Line([Entry("a"), Entry("1", stands_out=True)])]))
    assert '<tr><td></td><th scope="col">b</th></tr>' in text
    assert '<th scope="row">a</th><td><b>1</b></td>' in text


def test_only_long_texts_are_wrapped() -> None:
    heads = [Head("a", is_label=True), Head("b"), Head("c", is_number=True)]
    text = render_blocks(Table("T", heads, [Line([Entry("x"), Entry("word " * 9), Entry("1" * 50)])]))
    assert text.count('class="long"') == 1
    assert '<td class="long">word' in text


def test_what_is_no_address_is_text() -> None:
    text = render_blocks(
        Text(["see ", Link("<here>", "javascript:alert(1)"), " or ", Link("<there>", "https://a.org/?b=<c>")])
    )
    assert "<p>see javascript:alert(1) or " in text
    assert '<a href="https://a.org/?b=%3Cc%3E">&lt;there&gt;</a>' in text


def test_what_is_folded_may_hold_anything_but_an_unknown_block() -> None:
    text = render_blocks(Folded("More", [Text("words"), Folded("Still more", [phases(cells())])]))
    assert re.search(r"<summary>More</summary>\s*<p>words</p>\s*<details>\s*<summary>Still more</summary>\s*<div", text)
    with pytest.raises(TypeError, match="Block"):
        render_blocks(Block())


def test_every_chart_has_its_data_and_its_words(handmade: Reader) -> None:
    data = json.loads(handmade.texts["script"][1])
    charts = [chart for chart in handmade.find("div", role="img") if "data-chart" in chart]
    assert [chart["data-chart"] for chart in charts] == list(data["charts"]) == ["points", "panels", "folded"]
    assert all((chart["aria-label"] or "").startswith("Chart of ") for chart in charts)


def test_headings_go_down_one_level_at_a_time(handmade: Reader) -> None:
    levels = [int(tag[1]) for tag, _ in handmade.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_id_is_there_once(page: Reader, handmade: Reader) -> None:
    for reader in (page, handmade):
        ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
        assert len(ids) == len(set(ids))


def test_every_table_has_as_many_cells_in_every_row() -> None:
    for contents in (None, everything(cells())):
        for table in re.findall(r"<table>.*?</table>", body(render(contents=contents)), re.DOTALL):
            rows = [len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]
            assert len(set(rows)) == 1, table


def outside(text: str) -> str:
    """The page without the three scripts that are ours."""
    for script in load_assets().scripts:
        assert text.count(script.text) == 1
        text = text.replace(script.text, "")
    return text


@pytest.mark.parametrize("contents", [None, everything(cells(), text=f"{HOSTILE}\"' \x1b[31m\u202e")])
def test_hostile_strings_are_text(contents: list[Section] | None) -> None:
    text = outside(render(hostile, contents))
    assert len(text) < 400_000
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    reader = Reader(text)
    data = {"type": "application/json", "id": "data"}
    assert [attributes for tag, attributes in reader.elements if tag == "script"] == [{}, data, {}, {}]
    assert any(HOSTILE in title for title in reader.text("h2"))
    assert not [link for link in reader.find("a") if "javascript" in (link.get("href") or "")]
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]


def test_lines_of_code_are_kept_and_harmless() -> None:
    (first, *_) = Reader(render(contents=everything(cells(), text=f"{HOSTILE}\n\x1b[2J"))).texts["pre"]
    assert first == f"harness matrix -s step\nharness report{HOSTILE}"


def test_a_page_is_the_same_each_time() -> None:
    assert render() == render()

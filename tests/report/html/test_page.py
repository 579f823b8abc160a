"""report.html, as text. tests/browser/ opens it."""

import re
from html.parser import HTMLParser

import pytest

from harness.analysis.results import Results
from harness.report import sections
from harness.report.blocks import Block, Entry, Folded, Head, Line, Link, Section, Table, Text, Where
from harness.report.html import page as pages
from harness.report.html.assets import load_scripts
from tests.factories import cell, cells, run
from tests.report.formats.examples import HOSTILE, example, hostile, nothing, one_launch
from tests.report.handmade import compared, everything, phases

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
    results = Results(*stored())
    return pages.render(results, sections.build(results) if contents is None else contents).decode()


def render_blocks(*blocks: Block) -> str:
    first = Section("Title", "title", [Text("An answer.")])
    text = pages.render(Results(run(), []), [first, Section("Section", "section", blocks)]).decode()
    return text.split('<h2 id="section">Section</h2>')[1].split("</main>")[0]


@pytest.fixture(scope="module")
def page() -> Reader:
    return Reader(render())


def body(text: str) -> str:
    start, end = text.index("<body>"), text.index('<script type="application/json"')
    return re.sub(r"\n{2,}", "\n", text[start:end]) + "</body>\n"


@pytest.mark.slow
def test_the_body_is_its_golden_file(golden_html):
    assert body(render(contents=everything(cells()))) == golden_html


@pytest.mark.parametrize("stored", [example, nothing, one_launch])
def test_it_has_the_sections_in_their_order_and_a_table_of_all_cells(stored):
    titles = [section.title for section in sections.build(Results(*stored())) if section.shown(Where.PAGE)]
    reader = Reader(body(render(stored)))
    # what the page has beside: a table over all scenarios, and the dialog of a cell
    headings = [heading for heading in reader.text("h2") if heading not in {"All cells", ""}]
    assert [*reader.text("h1"), *headings] == titles
    assert reader.text("h2").count("All cells") == 1
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_its_scripts_are_the_only_ones_that_run(page):
    (policy,) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
    content = policy["content"] or ""
    assert content.startswith("default-src 'none'; ")
    for script in load_scripts():
        assert script.source in content
    assert "unsafe-eval" not in content
    assert re.search(r"script-src ('sha256-[\w+/=]+' ?){3};", content)


def test_tables_are_chosen_from_folded_and_wrapped_as_their_lines_need():
    assert "<select" not in render_blocks(compared(cells(), 1))
    assert "<input" in render_blocks(compared(cells(), 1))
    assert "<input" not in render_blocks(phases(cells()))
    assert "<summary>Compared: 41 comparisons</summary>" in render_blocks(compared(cells(), 41))
    assert "<summary>Compared" not in render_blocks(compared(cells(), 40))
    entries = [Entry("x"), Entry("w" * 41), Entry("w" * 40), Entry("1" * 50)]
    heads = [Head("a", is_label=True), Head("b"), Head("c"), Head("d", is_number=True)]
    text = render_blocks(Table("T", heads, [Line(entries)]))
    assert re.findall(r'class="long">(w+)', text) == ["w" * 41]
    assert "data-cells" not in render_blocks(phases([cell("tf9.9")]))
    line = Line([Entry("a"), Entry("1.0", cells=[cell(), cell("tf9.9")])])
    assert "data-cells" not in render_blocks(Table("T", [Head("", is_label=True), Head("b")], [line]))


def test_what_is_folded_may_hold_anything_but_an_unknown_block():
    text = render_blocks(Folded("More", [Text("words"), Folded("Still more", [phases(cells())])]))
    assert re.search(r"<summary>More</summary>\s*<p>words</p>\s*<details>\s*<summary>Still more</summary>\s*<div", text)
    with pytest.raises(TypeError, match="Block"):
        render_blocks(Block())


def outside(text: str) -> str:
    for script in load_scripts():
        assert text.count(script.text) == 1
        text = text.replace(script.text, "")
    return text


def test_a_long_address_is_whole():
    address = f"https://example.org/{'a' * 1000}"
    assert f'<a href="{address}?a&amp;b">source</a>' in render_blocks(Text([Link("source", f"{address}?a&b")]))


@pytest.mark.parametrize("contents", [None, everything(cells(), text=f"{HOSTILE}\"' \x1b[31m\u202e")])
def test_hostile_strings_are_text(contents):
    text = outside(render(hostile, contents))
    assert len(text) < 400_000
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    reader = Reader(text)
    data = {"type": "application/json", "id": "data"}
    assert [attributes for tag, attributes in reader.elements if tag == "script"] == [{}, data, {}, {}]
    assert any(HOSTILE in title for title in reader.text("h2"))
    assert not [link for link in reader.find("a") if "javascript" in (link.get("href") or "")]
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]

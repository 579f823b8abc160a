"""report.html, as text. tests/browser/ opens it."""

import json
import os
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from jinja2 import TemplateNotFound

from harness.backends import registry
from harness.model.launch import Launch
from harness.model.run import Run
from harness.report import markdown
from harness.report.html.assets import assets
from harness.report.html.page import render
from tests.factories import cells, launch, rounds, run, scenario
from tests.report.formats.examples import HOSTILE, example, hostile, nothing, one_launch

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

    def found(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        wanted = attributes.items()
        return [had for name, had in self.elements if name == tag and wanted <= had.items()]

    def text(self, tag: str) -> list[str]:
        return [" ".join(text.split()) for text in self.texts.get(tag, [])]


@pytest.fixture(scope="module")
def page() -> Reader:
    return Reader(render(*example()))


def body(text: str) -> str:
    """What a reader sees: the page without its style, its scripts and its data."""
    start, end = text.index("<body>"), text.index('<script type="application/json"')
    return re.sub(r"\n{2,}", "\n", text[start:end]) + "</body>\n"


def test_the_body_is_the_snapshot() -> None:
    """UPDATE_SNAPSHOTS=1 writes it anew; read the difference before committing it."""
    text = body(render(*example(), by_hand=registry.by_hand))
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text)
    assert text == SNAPSHOT.read_text()


@pytest.mark.parametrize("made", [example, hostile, nothing, one_launch])
def test_it_has_the_sections_of_the_markdown_in_their_order(made) -> None:
    told = re.findall(r"^#{1,2} (.*)$", markdown.render(*made()), re.MULTILINE)
    headings = Reader(body(render(*made()))).text("h2")
    # what the page has beside: a table over all scenarios, and the dialog of a cell
    assert [heading for heading in headings if heading not in {"All cells", ""}] == list(map(unescaped, told[1:]))


def unescaped(text: str) -> str:
    """Markdown's text as it is read."""
    entities = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return re.sub(r"\\(.)", r"\1", entities)


def test_the_answer_comes_first(page: Reader) -> None:
    answer = markdown.render(*example()).splitlines()[2]
    assert page.text("h1") == ["One training step: tf1.14, tf2.0, tf2.1"]
    assert page.text("p")[1] == unescaped(answer)


def test_its_scripts_are_the_only_ones_that_run(page: Reader) -> None:
    (policy,) = page.found("meta", **{"http-equiv": "Content-Security-Policy"})
    content = policy["content"] or ""
    assert content.startswith("default-src 'none'; ")
    for script in assets().scripts:
        assert script.source in content
    assert "unsafe-eval" not in content
    assert re.search(r"script-src ('sha256-[\w+/=]+' ?){3};", content)


def test_nothing_is_asked_of_any_host(page: Reader) -> None:
    addresses = [
        (tag, value) for tag, had in page.elements for name, value in had.items() if name in {"src", "href", "action"}
    ]
    assert {tag for tag, _ in addresses} == {"a"}
    assert [value for _, value in addresses if not (value or "").startswith("#")] == ["https://example.org/question/1"]


def test_each_number_knows_its_cell(page: Reader) -> None:
    cells = json.loads(page.texts["script"][1])["cells"]
    table = page.text("table")[0]
    for had in page.found("td", **{"class": "number"}):
        place = had.get("data-cells", "")
        if place and " " not in place and cells[int(place)]["number"]:
            assert cells[int(place)]["number"].removesuffix(" ms") in table
    grid = [had["data-cells"] for had in page.found("td") if (had.get("data-cells") or " ").isdigit()]
    # a column without a single number is left out, and so are its cells
    assert len(grid) == len(set(grid)) == 8


def test_a_difference_knows_both_its_cells(page: Reader) -> None:
    data = json.loads(page.texts["script"][1])
    pairs = [had["data-cells"].split() for had in page.found("td") if " " in (had.get("data-cells") or "")]
    assert pairs
    for places in pairs:
        one, other = (data["cells"][int(place)] for place in places)
        assert (one["environment"], one["axes"]["mode"]) != (other["environment"], other["axes"]["mode"])


def test_every_chart_has_its_data_and_its_words(page: Reader) -> None:
    data = json.loads(page.texts["script"][1])
    shown = [had for had in page.found("div", role="img") if "data-chart" in had]
    assert [had["data-chart"] for had in shown] == sorted(data["charts"], key=[h["data-chart"] for h in shown].index)
    assert all((had["aria-label"] or "").startswith("Chart of ") for had in shown)


def test_headings_go_down_one_level_at_a_time(page: Reader) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_id_is_there_once(page: Reader) -> None:
    ids = [had["id"] for _, had in page.elements if "id" in had]
    assert len(ids) == len(set(ids))


def test_every_table_has_as_many_cells_in_every_row() -> None:
    for table in re.findall(r"<table>.*?</table>", body(render(*example())), re.DOTALL):
        rows = [len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]
        assert len(set(rows)) == 1, table


def outside(text: str) -> str:
    """The page without the three scripts that are ours."""
    for script in assets().scripts:
        assert text.count(script.text) == 1
        text = text.replace(script.text, "")
    return text


def test_hostile_strings_are_text() -> None:
    text = outside(render(*hostile()))
    assert len(text) < 400_000
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    page = Reader(text)
    assert [had for tag, had in page.elements if tag == "script"] == [
        {},
        {"type": "application/json", "id": "data"},
        {},
        {},
    ]
    assert HOSTILE in page.text("h2")[0]
    assert not [had for had in page.found("a") if "javascript" in (had.get("href") or "")]
    assert not [name for _, had in page.elements for name in had if name.startswith("on")]


def test_a_hostile_error_is_bounded_and_whole_lines_of_it_are_kept() -> None:
    text = Reader(outside(render(*hostile()))).texts["pre"]
    assert any("</details>]]><script>alert(2)</script>" in each or each.endswith("end") for each in text)
    assert all(len(each) < 5000 for each in text)


def large() -> tuple[Run, list[Launch]]:
    calls = [f"call {number}" for number in range(30)]
    members = cells(calls=calls)
    named = scenario(axes={"call": calls, "dtype": ["float32"], "mode": ["graph", "eager"]})
    return run(members, scenarios=[named]), rounds(dict.fromkeys(members, 0.01), 2)


def test_long_tables_are_folded() -> None:
    page = Reader(body(render(*large())))
    assert any(text.startswith("All ") and text.endswith(" comparisons") for text in page.text("summary"))


def test_a_page_is_the_same_each_time() -> None:
    assert render(*example()) == render(*example())


def test_templates_may_lie_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(TemplateNotFound):
        render(run([cells()[0]]), [launch(cells()[0])], tmp_path)

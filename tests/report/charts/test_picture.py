import re
from xml.etree import ElementTree

import pytest

from harness.report.charts import layout
from harness.report.charts.picture import Picture, warm_up
from tests.report.charts import examples
from tests.report.charts.examples import hostile, kind, results, values

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Picture, ElementTree.Element]]:
    return [(each, ElementTree.fromstring(each.svg())) for each in examples.drawn(results())]


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_every_line_and_every_number_beside_it_is_text_in_the_picture(drawn):
    for picture, root in drawn:
        told = texts(root)
        names = {
            value["name"]
            for layer in picture.specification["layer"]
            for value in layer["data"]["values"]
            if "name" in value
        }
        assert names <= set(told)
        beside = [value["told"] for value in values(picture, "text") if "told" in value]
        assert {" ".join(text.split()) for text in beside} <= {" ".join(text.split()) for text in told}


def test_axes_have_their_titles_with_units(drawn):
    for picture, root in drawn:
        # a line that is too long goes on in the next
        told = "".join("".join(texts(root)).split())
        for part in (*picture.words.axis.split("; "), picture.words.title, *picture.words.notes):
            assert "".join(part.split()) in told
    # what a sweep draws has tests of its own
    assert {kind(picture) for picture, _ in drawn} == {"ratios", "times", "effects", "phases", "course"}


def test_every_picture_is_as_wide_as_the_others(drawn):
    assert {root.attrib["width"] for _, root in drawn} == {str(layout.WIDTH)}


def test_a_screen_reader_finds_title_and_content(drawn):
    for picture, root in drawn:
        assert root.attrib["role"] == "img"
        assert root.findtext(f"{SVG}title") == picture.words.title
        assert root.findtext(f"{SVG}desc") == picture.words.alt


def test_the_ground_is_white_on_a_dark_page_too(drawn):
    for _, root in drawn:
        ground = next(root.iter(f"{SVG}rect"))
        assert ground.attrib["fill"] == "white"
        assert (ground.attrib["width"], ground.attrib["height"]) == (root.attrib["width"], root.attrib["height"])


def test_what_draws_can_be_started_before():
    warm_up()
    assert next(examples.drawn(results())).svg().startswith("<svg")


def test_a_picture_asks_no_host_for_anything(drawn):
    for picture, _ in drawn:
        addresses = re.findall(r"https?://[^\"' ]+", picture.svg())
        assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_strings_of_untrusted_scripts_are_harmless_text():
    for picture in examples.drawn(hostile()):
        text = picture.svg()
        assert "\x1b" not in text
        root = ElementTree.fromstring(text)
        allowed = {"svg", "title", "desc", "g", "path", "rect", "text", "tspan", "line", "defs", "clipPath"}
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
        assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
        assert any("<script>alert(1)</script>" in each for each in texts(root))

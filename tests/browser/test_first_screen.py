"""The answer is on the first screen of each page: the first picture on a desk, the verdict on a phone."""

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bench.examples import EXAMPLES, LAUNCHES
from harness import session
from harness.report import sections
from harness.report.html import page as report
from tests.browser.test_history import seasonal

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DESK = {"width": 1440, "height": 900}
PHONE = {"width": 375, "height": 667}
WIDE = {"width": 1920, "height": 1080}


@pytest.fixture
def show(open_page, tmp_path: Path) -> Callable[..., Page]:
    def show_example(name: str, screen: dict[str, int]) -> Page:
        if name == "history":
            return open_page(seasonal(), viewport=screen)
        folder = tmp_path / name
        with tarfile.open(EXAMPLES / name / LAUNCHES) as archive:
            archive.extractall(folder, filter="data")
        if name == "profile":
            session.report(folder)
            return open_page(folder / "profile.html", viewport=screen)
        results = session.read(folder)
        return open_page(report.render(results, sections.build(results)).decode(), viewport=screen)

    return show_example


@pytest.mark.parametrize("name", ["headline", "releases", "history", "profile"])
def test_the_first_picture_begins_within_400_pixels(show, name):
    page = show(name, DESK)
    picture = page.locator(".plot svg, .flame, .spark").first
    expect(picture).to_be_visible()
    assert picture.bounding_box()["y"] < 400


@pytest.mark.parametrize(
    ("name", "lines", "verdict"),
    [
        ("headline", ".head tbody tr", ".verdict"),
        ("history", "#index tbody tr:has(.state:not(:empty))", ".state"),
        ("profile", ".head", ".answer"),
    ],
)
def test_on_a_phone_each_verdict_is_seen_without_scrolling_sideways(show, name, lines, verdict):
    page = show(name, PHONE)
    boxes = [line.locator(verdict).bounding_box() for line in page.locator(lines).all()]
    assert boxes
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"] for box in boxes)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_a_wide_screen_has_one_width_of_text(show):
    texts = show("headline", WIDE).locator(".head > :is(p, pre, .alert), .sections > :is(p, pre, .alert)")
    assert len({round(box["width"]) for text in texts.all() if (box := text.bounding_box())}) == 1


def test_a_flame_graph_is_zoomed_and_searched_and_both_sides_have_one_scale(show):
    page = show("profile", DESK)
    new, base = (page.locator(".flames").nth(at).locator("g:visible rect") for at in range(2))
    longer, shorter = (boxes.first.bounding_box()["width"] for boxes in (new, base))
    assert shorter / longer == pytest.approx(7.70 / 23.5, rel=0.01)
    figure = page.locator(".flames").first
    figure.get_by_role("searchbox").fill("apply_gradients")
    expect(figure.get_by_role("status")).to_have_text("6.0 % of the time, boxes: 1. Enter zooms to the widest one.")
    assert figure.locator(".match").count() == 1
    figure.get_by_role("searchbox").press("Enter")
    box = figure.locator(".match rect").bounding_box()
    assert box["width"] == pytest.approx(longer, abs=2)
    assert figure.locator("g:visible").count() < figure.locator("g").count()
    figure.get_by_role("button", name="Whole graph").click()
    assert figure.locator("g").first.locator("rect").bounding_box()["width"] == pytest.approx(longer, abs=2)
    expect(figure.locator(".match")).to_have_count(0)

"""The history's page in a browser."""

import re
from functools import cache

import pytest
from playwright.sync_api import Locator, Page, expect

from harness.history import page as history
from harness.report.html import assets
from tests.browser.pages import hostile_history
from tests.history.nights import season

pytestmark = pytest.mark.browser


@cache
def seasonal() -> str:
    return history.render(*season(), 0.03)


def lines(page: Page) -> Locator:
    return page.locator("#index tbody tr")


def shown(page: Page) -> Locator:
    return page.locator(".dots_marks path")


def flags(page: Page) -> Locator:
    """Return the labels of breaks, followed by the labels of notes."""
    return page.locator('.plot .role-axis-label text[font-weight="bold"]')


def places(page: Page) -> list[float]:
    return shown(page).evaluate_all("dots => dots.map((dot) => dot.getBoundingClientRect().x)")


def test_the_page_shows_what_was_found_first_with_its_level_its_breaks_and_notes(open_page):
    page = open_page(seasonal(), color_scheme="light")
    expect(lines(page)).to_have_count(17)
    expect(page.locator("#index .spark .course").first).to_be_attached()
    states = page.locator("#index .state").all_inner_texts()
    assert states[:5] == ["confirmed", "suspected", "suspected", "refuted", ""]
    # the driver cuts them all but two
    assert page.locator("#index .spark .cut").count() >= 13
    expect(page.get_by_role("heading", name="step tf2.1 cpu call=fit")).to_be_visible()
    expect(page.locator(".size_marks text")).to_have_text(re.compile(r"^\+8\.\d % \(\+7\.\d to \+8\.\d\)$"))
    expect(flags(page)).to_have_text(["A", "B", "C", "1", "2"])
    # the band ends at the cut and begins anew
    expect(page.locator(".band_marks path")).to_have_count(2)
    listed = page.get_by_role("list", name="Segment boundaries and notes").get_by_role("listitem").all_inner_texts()
    assert len(listed) == 5
    assert "the driver (570.86 → 575.51)" in listed[0]
    assert "BIOS updated" in listed[1]
    # the chart follows the theme
    course = page.locator(".course_marks path").first
    before = course.evaluate("node => getComputedStyle(node).stroke")
    page.get_by_role("button", name="Dark theme").click()
    assert course.evaluate("node => getComputedStyle(node).stroke") != before
    # and the width
    page.set_viewport_size({"width": 360, "height": 640})
    expect(page.locator(".plot svg")).to_have_count(1)
    page.wait_for_function("() => document.querySelector('.plot svg').getBoundingClientRect().right <= 360")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_name_opens_its_series_and_its_address_leads_back_to_it(open_page):
    page = open_page(seasonal())
    page.get_by_role("link", name="gather tf2.2 cpu vs tf1.14").click()
    heading = page.get_by_role("heading", name="gather tf2.2 cpu vs tf1.14")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
    # eight nights failed
    expect(shown(page)).to_have_count(112)
    page.reload()
    expect(heading).to_be_visible()
    # the index is sorted and searched
    page.locator("#index").get_by_role("columnheader", name="ratio now").get_by_role("button").click()
    numbers = [float(text.rstrip("×")) for text in page.locator("#index td.number:nth-child(4)").all_inner_texts()]
    assert numbers == sorted(numbers)
    page.get_by_role("searchbox", name="Text").fill("train_on")
    expect(page.locator("#index").get_by_role("status")).to_have_text("1 of 17 series")


def test_next_and_previous_go_through_the_index_as_it_is_filtered(open_page):
    page = open_page(seasonal())
    page.get_by_label("scenario").select_option("conv")
    expect(lines(page)).to_have_count(12)
    names = page.locator("#index tbody th").all_inner_texts()
    heading = page.locator("#series-name")
    page.get_by_role("button", name="Next series").click()
    expect(heading).to_have_text(names[0])
    page.get_by_role("button", name="Previous series").click()
    expect(heading).to_have_text(names[-1])
    expect(page.locator("[aria-current]")).to_have_count(1)


def drag(page: Page, start: float, end: float) -> None:
    """Drag over the chart, from one share of its width to another, and leave the button down."""
    plot = page.get_by_role("slider")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * start, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, box["y"] + 220, steps=3)


def zoomed(page: Page, least: int, most: int) -> int:
    """Wait until the chart shows a number of runs between two bounds, both excluded, and return it."""
    counted = (
        "([least, most]) => [document.querySelectorAll('.dots_marks path').length].find((n) => least < n && n < most)"
    )
    return page.wait_for_function(counted, arg=[least, most]).json_value()


def test_the_chart_zooms_and_moves_by_drag_buttons_keys_and_wheel(open_page):
    page = open_page(seasonal(), viewport={"width": 1280, "height": 1000})
    expect(shown(page)).to_have_count(120)
    labels = page.locator(".plot .role-axis-label text", has_text="×")
    expect(labels.first).to_have_text("1.95×")
    drag(page, 0.5, 0.7)
    brush = page.locator(".brush_brush path")
    expect(brush).to_be_visible()
    page.mouse.up()
    part = zoomed(page, 15, 40)
    expect(brush).to_be_hidden()
    page.get_by_role("button", name="Closer").click()
    zoomed(page, 0, part)
    page.get_by_role("button", name="All", exact=True).click()
    expect(shown(page)).to_have_count(120)
    page.get_by_role("slider").focus()
    page.keyboard.press("+")
    zoomed(page, 40, 70)
    page.keyboard.press("0")
    expect(shown(page)).to_have_count(120)
    page.get_by_label("Shown").select_option("14")
    expect(shown(page)).to_have_count(14)
    # the axis of ratios follows what is seen
    expect(labels.first).to_have_text("2.10×")
    # a drag with Shift, and Ctrl with the wheel
    page.get_by_label("Shown").select_option("30")
    expect(shown(page)).to_have_count(30)
    expect(flags(page)).to_have_text(["2"])
    page.keyboard.down("Shift")
    drag(page, 0.3, 0.7)
    page.mouse.up()
    page.keyboard.up("Shift")
    # twelve days earlier
    expect(flags(page)).to_have_text(["C", "2"])
    moved = zoomed(page, 25, 35)
    page.keyboard.down("Control")
    page.mouse.wheel(0, 300)
    page.keyboard.up("Control")
    zoomed(page, moved, 120)


def test_arrow_keys_and_a_pointer_tell_of_each_run(open_page):
    page = open_page(seasonal())
    plot = page.get_by_role("slider")
    plot.focus()
    page.keyboard.press("Home")
    expect(plot).to_have_attribute("aria-valuenow", "1")
    page.keyboard.press("ArrowRight")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("began, UTC 2 Aug 2026, 03:19, ratio 2"))
    expect(page.locator(".tooltip")).to_contain_text("95 % interval")
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    expect(plot).to_have_attribute("aria-valuenow", "120")
    # and a pointer
    shown(page).nth(84).hover(force=True)
    expect(page.locator(".tooltip")).to_contain_text("the lock of tf2.1 (4f1c → 9be2)")
    page.get_by_role("heading", level=1).hover()
    expect(page.locator(".tooltip")).to_be_hidden()


def test_without_scripts_what_was_found_is_there(open_page):
    page = open_page(seasonal(), java_script_enabled=False)
    expect(page.get_by_text("Confirmed: 1 series slower since the run of 24 Oct 2026")).to_be_visible()
    assert "Scripts are off" in (page.locator("noscript").text_content() or "")
    expect(page.get_by_role("button")).to_have_count(0)


def test_a_page_without_vega_has_no_charts_and_says_so(open_page, monkeypatch):
    monkeypatch.setattr(
        assets, "make_vega_script", lambda _: assets.PageScript("window.vegaEmbed = () => Promise.resolve();")
    )
    page = open_page(history.render(*season(), 0.03))
    expect(page.get_by_text("This page has no charts")).to_be_visible()
    page.get_by_role("button", name="Next series").click()
    page.get_by_role("button", name="Closer").click()
    expect(page.get_by_text("This page has no charts")).to_be_visible()


def test_hostile_strings_are_text_and_a_history_without_series_says_so(open_page):
    page = open_page(hostile_history())
    assert page.title() == "History of 3 runs on 1 machine, 1 Aug 2026 to 3 Aug 2026"
    expect(page.locator("#series-name")).to_contain_text("<script>document.title = 'broken'</script>")
    expect(page.locator("main script")).to_have_count(0)
    page = open_page(history.render([], [], [], 0.03))
    expect(page.get_by_role("heading", level=1)).to_have_text("A history without runs")
    expect(page.locator("#index")).to_be_hidden()

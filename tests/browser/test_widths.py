"""Each page on screens from a phone's to a wide one: nothing is squeezed, cut off, or out of the keyboard's reach."""

from functools import cache

import pytest

from harness.report.html import page as report
from harness.report.profiles import ProfileReport
from tests.browser.pages import small
from tests.browser.test_accessibility import wrong
from tests.browser.test_history import seasonal
from tests.report.test_profiles import BOTH, RUN

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (375, 768, 1024, 1440, 1920)
#: The widths at which axe looks: one of each layout of the style sheets.
CHECKED = (375, 1024, 1920)

#: Whether every chart is as wide as its place is now, or will be when it is unfolded.
DRAWN = """() => [...document.querySelectorAll("[data-chart]")].every((chart) =>
  chart.dataset.drawn === String(chart.clientWidth || document.querySelector(".sections").clientWidth))"""


@cache
def profile() -> str:
    return report.render_plain(RUN, ProfileReport(RUN, BOTH).sections())


@pytest.mark.parametrize("text", [small, seasonal, profile])
def test_a_page_fits_every_width_and_axe_finds_nothing_in_light_and_in_dark(open_page, text):
    page = open_page(text())
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(DRAWN)
        main, title = page.locator("main").bounding_box(), page.locator("h1").bounding_box()
        assert main is not None
        assert title is not None
        assert title["width"] > main["width"] / 2, width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width not in CHECKED:
            continue
        page.emulate_media(color_scheme="light")
        assert wrong(page) == [], width
        page.emulate_media(color_scheme="dark")
        # no other rule depends on the colours
        assert wrong(page, {"runOnly": ["cat.color"]}) == [], width

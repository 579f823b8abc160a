"""Each page on screens from a phone's to a wide one: nothing is squeezed, cut off, or out of the keyboard's reach."""

from functools import cache

import pytest
from playwright.sync_api import expect

from harness.report.html import page as report
from harness.report.profiles import ProfileReport
from tests.browser.conftest import Opener
from tests.browser.pages import small
from tests.browser.test_accessibility import wrong
from tests.browser.test_history import seasonal
from tests.report.test_profiles import BOTH, RUN

pytestmark = pytest.mark.browser


@cache
def profile() -> str:
    return report.render_plain(ProfileReport(RUN, BOTH).sections())


@pytest.mark.parametrize("width", [390, 768, 1280, 1440, 1920])
@pytest.mark.parametrize("text", [small, seasonal, profile])
def test_a_page_fits_and_axe_finds_nothing(opened: Opener, width: int, text) -> None:
    page = opened(text(), viewport={"width": width, "height": 800})
    expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0)
    main, title = page.locator("main").bounding_box(), page.locator("h1").bounding_box()
    assert main is not None
    assert title is not None
    assert title["width"] > main["width"] / 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong(page) == []

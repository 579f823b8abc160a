"""axe-core finds nothing wrong with report.html, and with a history of hostile names."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.pages import empty, hostile_history, small, strange

pytestmark = pytest.mark.browser


def wrong(page: Page, options: dict[str, object] | None = None) -> list[str]:
    violations = Axe().run(page, options=options).response["violations"]
    return [f"{entry['id']}: {entry['help']}: {node['html']}" for entry in violations for node in entry["nodes"]]


def wrong_in_both_schemes(page: Page) -> list[str]:
    """What axe-core finds in light, and in dark: there, no rule but those of colours can find more."""
    page.emulate_media(color_scheme="light")
    in_light = wrong(page)
    page.emulate_media(color_scheme="dark")
    return in_light + wrong(page, {"runOnly": ["cat.color"]})


@pytest.mark.slow
@pytest.mark.parametrize("text", [small, strange, empty, hostile_history])
def test_a_page_and_its_dialog(open_page, text):
    page = open_page(text())
    expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0)
    page.locator("details").evaluate_all("nodes => nodes.forEach((node) => { node.open = true })")
    assert wrong_in_both_schemes(page) == []
    if text is small:
        page.locator("[data-sortable] td[data-cells]").first.get_by_role("button").click()
        expect(page.locator("dialog .plot svg")).to_have_count(4)
        assert wrong_in_both_schemes(page) == []

"""axe-core finds nothing wrong with report.html."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opener
from tests.browser.pages import empty, small, strange

pytestmark = pytest.mark.browser


def wrong(page: Page, options: dict[str, object] | None = None) -> list[str]:
    """What axe-core finds, and where."""
    found = Axe().run(page, options=options).response["violations"]
    return [f"{entry['id']}: {entry['help']}: {node['html']}" for entry in found for node in entry["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("text", [small, strange, empty])
def test_the_page(opened: Opener, scheme: str, text) -> None:
    page = opened(text(), color_scheme=scheme)
    expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0)
    for folded in page.locator("details").all():
        folded.evaluate("node => { node.open = true }")
    assert wrong(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dialog(opened: Opener, scheme: str) -> None:
    page = opened(small(), color_scheme=scheme)
    page.locator("[data-sortable] td[data-cells]").first.get_by_role("button").click()
    expect(page.locator("dialog .plot svg")).to_have_count(4)
    assert wrong(page) == []

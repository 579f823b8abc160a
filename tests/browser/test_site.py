"""The documentation site in a browser, open_page from the disk: it needs no server and asks no host."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Pages with a picture, code, tables, alerts, and folded parts.
PAGES = [
    "index.html",
    "docs/tutorial.html",
    "docs/reference/cli.html",
    "docs/examples/headline/report.html",
    "search.html",
]


def serious(page: Page) -> list[str]:
    # axe would read the style sheets again, which a browser refuses on the disk
    violations = Axe().run(page, options={"preload": False}).response["violations"]
    grave = [entry for entry in violations if entry["impact"] in ("serious", "critical")]
    return [f"{entry['id']}: {node['html']}" for entry in grave for node in entry["nodes"]]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_a_phone(open_page, site, name):
    page = open_page(site / name, color_scheme="light")
    for folded in page.locator("article details").all():
        folded.evaluate("node => { node.open = true }")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert serious(page) == [], scheme
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_search_and_navigation_lead_from_page_to_page(open_page, site):
    page = open_page(site / "index.html")
    page.get_by_placeholder("Search").fill("unclear")
    page.keyboard.press("Enter")
    results = page.locator("#search-results")
    expect(results).to_contain_text("Search finished, found")
    results.get_by_role("link", name="Troubleshooting").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Troubleshooting")
    expect(page.locator("article")).to_contain_text("unclear")
    page.set_viewport_size({"width": 390, "height": 800})
    page.locator(".mobile-header .nav-overlay-icon").click()
    page.get_by_role("link", name="Glossary", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Glossary")

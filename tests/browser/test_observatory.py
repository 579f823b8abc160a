"""The pages about what is slow today, from a server as slow as a phone's network, on a phone and on a screen."""

from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bench.observatory.site import PAGES
from tests.browser.test_accessibility import wrong
from tests.webserver import serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: 4G: 4 Mbit/s with a round trip of 170 ms.
NETWORK = {"offline": False, "latency": 170, "downloadThroughput": 500_000, "uploadThroughput": 375_000}


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    with serving(SimpleHTTPRequestHandler, directory=str(site / "observatory")) as url:
        yield url


@pytest.mark.parametrize(("width", "scheme", "pages"), [(360, "dark", PAGES), (1280, "light", ("index", "alive"))])
def test_pages_fit_and_axe_finds_nothing(browser: Browser, address, width, scheme, pages):
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    for name in pages:
        page.goto(f"{address}/{name}.html")
        assert wrong(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.close()


def test_the_answer_comes_soon_and_a_search_and_a_cell_lead_to_a_result(browser: Browser, address):
    page = browser.new_page()
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", NETWORK)
    page.goto(f"{address}/index.html")
    sizes = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.transferSize)")
    assert len(sizes) <= 3  # the style sheet, the script, and perhaps the icon: each costs a round trip
    page.get_by_label("Search scenarios").fill("lstm reset metrics")
    first = page.locator("#answers a").first
    expect(first).to_contain_text("train_on_batch")
    first.click()
    expect(page.locator("article:target")).to_contain_text("harness bisect")
    page.goto(f"{address}/index.html")
    page.locator(".map td.s4 a").first.click()
    expect(page.locator("article:target")).to_contain_text("harness repro")
    page.close()

    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{address}/index.html")
    expect(plain.locator("form.search")).to_be_hidden()
    expect(plain.locator(".map td.s4 a").first).to_be_visible()
    plain.close()

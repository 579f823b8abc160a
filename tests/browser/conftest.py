"""A browser, and pages that are open_page from the disk in it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, Route, sync_playwright

from tests.lacking import BROWSER, lacking

#: What a browser of this kind is called, on Debian and on others.
NAMES = ("chromium", "chromium-browser", "google-chrome")

Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if not path:
        lacking(f"there is no browser on the PATH: {', '.join(NAMES)}", required=BROWSER)
    with sync_playwright() as playwright:
        # no sandbox within a container, whose root it will not start for; and no talk with its maker
        arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        launched = playwright.chromium.launch(executable_path=path, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens a page from the disk: its text, or its file.

    When the test is over: nothing was requests of any host, and nothing was written to the console, unless `talks` says
    that the page is to write there.
    """
    requests: list[str] = []
    messages: list[str] = []
    pages: list[Page] = []

    def refuse(route: Route, request: Request) -> None:
        if request.url.startswith("file:"):
            route.continue_()
        else:
            requests.append(request.url)
            route.abort()

    def opener(content: str | Path, *, talks: bool = False, **options: object) -> Page:
        path = content if isinstance(content, Path) else tmp_path / f"report-{len(pages)}.html"
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        page = browser.new_page(**{"reduced_motion": "reduce", **options})
        pages.append(page)
        page.route("**/*", refuse)
        if not talks:
            page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield opener
    for page in pages:
        page.close()
    assert requests == []
    assert messages == []

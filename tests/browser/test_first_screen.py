"""The answer is on the first screen of 1,280 by 800 pixels: of report.md on GitHub, of report.html, of profile.html."""

import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from bench.examples import EXAMPLES, LAUNCHES
from harness import session
from harness.report import sections
from harness.report.html import page as report
from tests.browser.conftest import Opener

pytestmark = pytest.mark.browser

SCREEN = {"width": 1280, "height": 800}

#: What of GitHub's style sheet decides how high a file is: letters, margins and borders.
STYLE = """
body { margin: 0; font: 16px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
article { max-width: 1012px; margin: 0 auto; padding: 32px; overflow-wrap: break-word; }
h1 { margin: 0 0 16px; padding-bottom: 0.3em; border-bottom: 1px solid; font-size: 2em; line-height: 1.25; }
p, ul, table, pre, details, blockquote { margin: 0 0 16px; }
ul { padding-left: 2em; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; }
th, td { padding: 6px 13px; border: 1px solid; }
code, pre { font-family: ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; font-size: 85%; }
code { padding: 0.2em 0.4em; white-space: break-spaces; }
pre { padding: 16px; overflow: auto; line-height: 1.45; }
pre code { padding: 0; font-size: 100%; white-space: pre; }
sub { position: relative; bottom: -0.25em; font-size: 75%; line-height: 0; vertical-align: baseline; }
blockquote { padding: 8px 16px; border-left: 0.25em solid; }
blockquote > :first-child { line-height: 1; }
blockquote > :last-child { margin-bottom: 0; }
"""

#: From the top of the title to the bottom of the last element before what is folded.
BEFORE_FOLD = """() => {
  const last = document.querySelector("details").previousElementSibling;
  return last.getBoundingClientRect().bottom - document.querySelector("h1").getBoundingClientRect().top;
}"""


def rendered(text: str) -> str:
    """A Markdown file as GitHub shows it; the kind of an alert becomes its first line."""
    html = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(text)
    html = re.sub(r"<p>\[!(\w+)\]\s", r"<p>\1</p><p>", html)
    return f"<!doctype html><html lang=en><meta charset=utf-8><style>{STYLE}</style><article>{html}</article>"


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], Path]:
    """The folder of an example's run, by the example's name."""

    def unpacked(name: str) -> Path:
        folder = tmp_path / name
        with tarfile.open(EXAMPLES / name / LAUNCHES) as archive:
            archive.extractall(folder, filter="data")
        return folder

    return unpacked


def test_report_md_answers_within_700_pixels_and_is_at_most_1600_with_the_rest_folded(open_page: Opener) -> None:
    page = open_page(rendered((EXAMPLES / "headline" / "report.md").read_text()), viewport=SCREEN)
    assert page.evaluate(BEFORE_FOLD) <= 700
    assert page.locator("article").evaluate("node => node.getBoundingClientRect().height") <= 1600


def test_report_html_answers_within_700_pixels(open_page: Opener, run: Callable[[str], Path]) -> None:
    results = session.read(run("headline"))
    page = open_page(report.render(results, sections.build(results)), viewport=SCREEN)
    title, first, contents = (page.locator(name).bounding_box() for name in ("h1", ".head", "nav"))
    assert title
    assert first
    assert contents
    assert first["y"] + first["height"] - title["y"] <= 700
    assert contents["y"] < SCREEN["height"]


def test_a_profiles_first_flame_graph_is_on_the_first_screen(open_page: Opener, run: Callable[[str], Path]) -> None:
    folder = run("profile")
    session.report(folder)
    page = open_page((folder / "profile.html").read_text(), viewport=SCREEN)
    flame = page.locator(".flame").first.bounding_box()
    assert flame
    assert flame["y"] + 100 < SCREEN["height"]

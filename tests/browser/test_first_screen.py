"""The answer is on the first screen of 1,280 by 800 pixels: of report.html and of profile.html."""

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.examples import EXAMPLES, LAUNCHES
from harness import session
from harness.report import sections
from harness.report.html import page as report

pytestmark = pytest.mark.browser

SCREEN = {"width": 1280, "height": 800}


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], Path]:
    def unpacked(name: str) -> Path:
        folder = tmp_path / name
        with tarfile.open(EXAMPLES / name / LAUNCHES) as archive:
            archive.extractall(folder, filter="data")
        return folder

    return unpacked


def test_report_html_answers_within_700_pixels(open_page, run):
    results = session.read(run("headline"))
    page = open_page(report.render(results, sections.build(results)), viewport=SCREEN)
    title, first, contents = (page.locator(name).bounding_box() for name in ("h1", ".head", "nav"))
    assert title
    assert first
    assert contents
    assert first["y"] + first["height"] - title["y"] <= 700
    assert contents["y"] < SCREEN["height"]


def test_a_profiles_first_flame_graph_is_on_the_first_screen(open_page, run):
    folder = run("profile")
    session.report(folder)
    page = open_page((folder / "profile.html").read_text(), viewport=SCREEN)
    flame = page.locator(".flame").first.bounding_box()
    assert flame
    assert flame["y"] + 100 < SCREEN["height"]

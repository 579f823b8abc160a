"""`make docs` builds the site from the Markdown files that GitHub shows, and finds what is broken in them."""

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, make_docs

README = """# Project

See [the page](docs/reference/page.md#what--why), [its anchor](docs/reference/page.md#moved),
[the code](code/step.py), [its results](code/results.md#today), [the folder](code) and [the data](docs/data.json).
"""
PAGE = """# Page

3 % of the lines begin with
% and {name}`this` is a {word}, and "this" -- with two hyphens.

> [!WARNING]
> A warning.

<a id="moved"></a>

## What & why?

[Up](#page), [down](#moved), [out](../../README.md).
"""


def make_project(folder: Path) -> Path:
    for name, text in {
        "README.md": README,
        "docs/reference/page.md": PAGE,
        "docs/data.json": "{}",
        "code/step.py": "STEP = 1\n",
        "code/results.md": "# Results\n\n## Today\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(ROOT / "docs" / "site", folder / "docs" / "site")
    return folder


def build(project: Path, **environ: str) -> Path:
    process = make_docs(project, project / "site", **environ)
    assert process.returncode == 0, process.stderr
    return project / "site"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(make_project(tmp_path_factory.mktemp("project")))


def links(html: str) -> dict[str, str]:
    article = html.partition("<article")[2].partition("</article>")[0]
    anchors = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>(.*?)</a>', article, re.DOTALL)
    return {re.sub(r"<[^>]+>", "", text): address for address, text in anchors}


def navigation(html: str) -> str:
    return html.partition("sidebar-tree")[2].partition("</aside>")[0]


@pytest.mark.slow
def test_a_page_of_github_is_the_same_on_the_site(small):
    home = (small / "index.html").read_text()
    page = (small / "docs" / "reference" / "page.html").read_text()
    text = re.sub(r"<[^>]+>", "", page).replace("&quot;", '"')
    assert '3 % of the lines begin with\n% and {name}this is a {word}, and "this" -- with' in text
    assert "[!WARNING]" not in page
    assert 'class="admonition warning"' in page
    assert {'id="what--why"', 'id="moved"', 'id="page"'} <= {*re.findall(r'id="[^"]+"', page)}
    assert links(page)["out"] == "../../README.html"
    assert links(home)["the page"].startswith("docs/reference/page.html#what")
    assert links(home)["its anchor"] == "docs/reference/page.html#moved"
    assert 'href="docs/reference/page.html">Page</a>' in navigation(home)


@pytest.mark.slow
def test_files_that_are_linked_come_with_the_site(small):
    addresses = links((small / "index.html").read_text())
    for text, name in {"the code": "step.py", "its results": "results.md", "the data": "data.json"}.items():
        assert (small / addresses[text]).name == name
        assert (small / addresses[text]).is_file()
    assert "the folder" not in addresses


@pytest.mark.slow
def test_code_is_shown_by_the_repository_whose_address_is_known(tmp_path):
    folder = build(make_project(tmp_path), HARNESS_REPOSITORY="https://host/owner/name")
    addresses = links((folder / "index.html").read_text())
    assert addresses["the code"] == "https://host/owner/name/blob/HEAD/code/step.py"
    assert addresses["its results"] == "https://host/owner/name/blob/HEAD/code/results.md#today"
    assert addresses["the folder"] == "https://host/owner/name/tree/HEAD/code"
    assert (folder / addresses["the data"]).is_file()


@pytest.mark.slow
def test_broken_links_are_errors(tmp_path):
    project = make_project(tmp_path)
    broken = ["docs/missing.md", "docs/reference/page.md#no-heading", "#no-anchor", "code/missing.py", "no-folder"]
    (project / "README.md").write_text("# Project\n\n" + "\n".join(f"[link]({link})\n" for link in broken))
    process = make_docs(project, project / "site")
    assert process.returncode
    for link in broken:
        name = link.rpartition("#")[2].removesuffix(".md")
        assert re.search(rf"README.md:\d+: WARNING: .*{name}", process.stderr), process.stderr


@pytest.mark.slow
def test_every_page_is_in_the_navigation_or_an_example(site):
    entries = navigation((site / "index.html").read_text())
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        name = page.relative_to(ROOT).with_suffix(".html")
        assert (site / name).is_file()
        assert f'href="{name}"' in entries or "examples" in name.parts or name.name == "README.html", name

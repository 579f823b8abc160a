"""Links between the documents lead to an existing file, and to an existing heading or anchor in it."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Reports of examples link as a report does, within their run's folder.
PAGES = [*ROOT.glob("*.md"), *(path for path in ROOT.glob("docs/**/*.md") if "examples" not in path.parts)]


def anchors(page: Path) -> Iterator[str]:
    """Yield the anchors of a page: explicit ones, and the ones that GitHub generates for headings."""
    text = page.read_text(encoding="utf-8")
    yield from re.findall(r'<a id="([^"]+)"', text)
    seen = Counter[str]()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        yield f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    inner = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    lost = []
    for link in inner:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in {*anchors(target)}):
            lost.append(link)
    assert lost == []

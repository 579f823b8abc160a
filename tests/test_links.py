"""Links between the documents lead to an existing file, and to an existing heading or anchor in it."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

#: Reports of examples link as a report does, within their run's folder.
PAGES = [path for folder in ("", "docs/**/", "bench/**/", "tests/") for path in ROOT.glob(f"{folder}*.md")]
PAGES = [path for path in PAGES if "examples" not in path.parts]


@cache
def anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    names = {*re.findall(r'<a id="([^"]+)"', text)}
    counts = Counter[str]()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        names.add(f"{name}-{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return names


def test_links_lead_somewhere():
    lost = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = link.partition("#")
            if "://" in link or link.startswith("mailto:"):
                continue
            target = page.parent / path if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                lost.append(f"{page.relative_to(ROOT)}: {link}")
    assert lost == []

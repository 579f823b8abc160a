"""Sphinx configuration of the documentation site: `make docs`.

The pages are the same Markdown files that GitHub shows. This file adds the navigation, anchors that are written as
`<a id>`, and links to files that aren't pages.
"""

import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from harness import __version__

ROOT = Path(__file__).parents[2]

project = "harness"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md"]
#: Folders that Sphinx needn't look into.
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"]

myst_enable_extensions = ["alert", "attrs_inline"]
myst_heading_anchors = 6
#: Syntax of MyST that GitHub shows as text. For example, MyST skips a line that starts with "%".
myst_disable_syntax = ["myst_line_comment", "myst_block_break", "myst_target", "myst_role"]
smartquotes = False
highlight_language = "text"

html_theme = "furo"
html_title = f"harness {__version__}"
html_static_path = ["static"]
#: The page of the nightly runs, which `harness history report` wrote: `make docs HISTORY_PAGE=history.html`.
HISTORY_PAGE = os.environ.get("HISTORY_PAGE", "")
html_extra_path = [str(ROOT / HISTORY_PAGE)] if HISTORY_PAGE else []
#: Whether the pages about what is slow today (docs/results/observatory.md) belong to the site.
HAS_OBSERVATORY = (ROOT / "bench" / "observatory").is_dir()
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_use_index = False
html_show_copyright = False
#: Colors with enough contrast, in both themes.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

#: The sections of the navigation: titles, and patterns of pages.
SECTIONS = {
    "Start": ("docs/index", "docs/tutorial", "docs/gallery"),
    "How-to guides": ("docs/how-to/*",),
    "Reference": ("docs/reference/*", "docs/skill/*"),
    "Explanation": ("docs/explanation/*",),
    "Results": ("docs/results/*", "docs/results/reports/*", "docs/examples/*/report", "docs/examples/*/profile"),
    "Development": ("CONTRIBUTING", "AGENTS", "SECURITY", "CODE_OF_CONDUCT", "CHANGELOG", "docs/dev/*", "docs/dev/*/*"),
}
EXAMPLES = "docs/examples/"

#: A chart, as templates/markdown/blocks.j2 writes it.
_PICTURE = re.compile(
    r'<picture>\n<source [^>]*srcset="(?P<dark>[^"]+)">\n<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]+)">\n</picture>'
)
_ANCHOR = re.compile(r'<a id="([^"]+)">')


def _repository() -> str:
    """Return the address of the repository as hatch_build.py knows it, or an empty text."""
    server, name = (os.environ.get(f"GITHUB_{each}", "") for each in ("SERVER_URL", "REPOSITORY"))
    return (os.environ.get("HARNESS_REPOSITORY") or (f"{server}/{name}" if server and name else "")).rstrip("/")


def _navigation() -> str:
    """Return the hidden tables of contents of all pages, in the order in which docs/index.md links to them."""
    index = ROOT / "docs" / "index.md"
    linked = re.findall(r"\]\(([^)#]+\.md)", index.read_text(encoding="utf-8")) if index.exists() else []
    order = [os.path.normpath(Path("docs", link).with_suffix("")) for link in linked]
    lines = []
    for title, patterns in SECTIONS.items():
        found = {str(path.relative_to(ROOT).with_suffix("")) for each in patterns for path in ROOT.glob(f"{each}.md")}
        pages = sorted(found, key=lambda page: (order.index(page) if page in order else len(order), page))
        if pages:
            lines += ["", "```{toctree}", ":hidden:", f":caption: {title}", "", *map(_entry, pages), "```"]
    return "\n".join([*lines, ""])


def _entry(page: str) -> str:
    """Return the line of a page. Reports of examples have similar titles, so the name of the example comes first."""
    if not page.startswith(EXAMPLES):
        return f"/{page}"
    name = page.removeprefix(EXAMPLES).split("/")[0]
    return f"Example: {name} </{page}>"


def _show_both(chart: re.Match[str]) -> str:
    """Return the two files of a chart as images of the theme. Sphinx doesn't copy the files of HTML elements."""
    alt = re.sub(r"([\[\]\\`*_<])", r"\\\1", unescape(chart["alt"]))
    return f"![{alt}]({chart['light']}){{.only-light}}![{alt}]({chart['dark']}){{.only-dark}}"


def read_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to README, and mark pages that are reached from another one."""
    text = _PICTURE.sub(_show_both, source[0])
    if page == root_doc:
        text = re.sub(r'(?m)^<a href="\.\./\.\./.*\n\n?', "", text)  # the badges, which only GitHub shows
        text += _navigation()
    elif page.startswith(EXAMPLES):
        if not text.startswith("# "):  # the text of an issue, whose headings GitHub's form gives
            text = "# Text of an issue\n" + f"\n{text}".replace("\n### ", "\n## ")
        text = f"---\norphan: true\n---\n{text}"
    source[0] = text


class Anchors(SphinxTransform):
    """Anchors of `<a id>` elements. A link can use them like the anchor of a heading."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Add these anchors to the anchors of headings."""
        for node in self.document.findall(nodes.raw):
            for name in _ANCHOR.findall(node.astext()):
                self.document.myst_slugs[name] = (node.line, name, "")  # type: ignore[attr-defined]


class FileLinks(SphinxTransform):
    """Links to files and folders that aren't pages.

    A file of docs/ is copied into the site. Other files and folders, such as pages with results in bench/, are shown by
    the repository's host. If the address of the repository isn't known, files are copied, and the text of a link to a
    folder stays.
    """

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Replace the links of a page."""
        repository = _repository()
        for node in [*self.document.findall(addnodes.pending_xref)]:
            page = f"/{node['reftarget']}.md"
            is_missing = node.get("refdomain") == "doc" and node["reftarget"] not in self.env.found_docs
            if is_missing and (ROOT / page[1:]).exists():
                anchor = f"#{node['reftargetid']}" if repository and node.get("reftargetid") else ""
                node.replace_self(addnodes.download_reference("", "", *node.children, reftarget=f"{page}{anchor}"))
        for node in [*self.document.findall(addnodes.download_reference)]:
            path = self._path(node["reftarget"])
            if repository and not path.startswith("docs/"):
                self._replace(node, f"{repository}/blob/HEAD/{path}")
        for node in [*self.document.findall(addnodes.pending_xref)]:
            path = self._path(node["reftarget"])
            if node.get("reftype") == "myst" and node.get("refdomain") != "doc" and (ROOT / path).is_dir():
                self._replace(node, f"{repository}/tree/HEAD/{path}" if repository else "")

    def _path(self, target: str) -> str:
        if target.startswith("/"):
            return target[1:]
        return os.path.normpath(Path(self.env.docname).parent / target)

    def _replace(self, node: nodes.Element, address: str) -> None:
        link = nodes.reference("", "", refuri=address) if address else nodes.inline()
        link += node.children
        node.replace_self(link)


class FlatExamples(SphinxTransform):
    """Replaces the sections of reports by headings, because a folded part of a report can have several headings."""

    default_priority = 600

    def apply(self, **kwargs: Any) -> None:
        """Replace the sections below the title."""
        if not self.env.docname.startswith(EXAMPLES):
            return
        for depth, section in [(_depth(each), each) for each in self.document.findall(nodes.section)][:0:-1]:
            title, *rest = section.children
            heading = nodes.rubric("", "", *title.children, ids=section["ids"], names=section["names"])
            heading["heading-level"] = depth
            section.replace_self([heading, *rest])


def _depth(section: nodes.Node) -> int:
    return 1 + _depth(section.parent) if isinstance(section.parent, nodes.section) else 1


def complete_navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """Add pages that Sphinx doesn't make, and give the headings of the navigation a level, which Sphinx doesn't."""
    more = [("Slow today", "Observatory", "observatory/index.html")] if HAS_OBSERVATORY else []
    more += [("Nightly runs", "History", Path(HISTORY_PAGE).name)] if HISTORY_PAGE else []
    for caption, title, name in more:
        context["furo_navigation_tree"] += (
            f'<p class="caption" role="heading"><span class="caption-text">{caption}</span></p>'
            f'<ul><li class="toctree-l1"><a class="reference" href="{context["pathto"](name, 1)}">{title}</a></li></ul>'
        )
    for key in ("furo_navigation_tree", "toc"):
        context[key] = context.get(key, "").replace('role="heading"', 'role="heading" aria-level="2"')


def copy_home(app: Sphinx, error: Exception | None) -> None:
    """Make README the page that a browser opens first."""
    if not error and app.builder.format == "html":
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def build_observatory(app: Sphinx, error: Exception | None) -> None:
    """Write the pages about what is slow today."""
    if HAS_OBSERVATORY and not error and app.builder.format == "html":
        command = [sys.executable, "-m", "bench.observatory", "build", str(Path(app.outdir, "observatory"))]
        environment = {**os.environ, "HARNESS_REPOSITORY": _repository()}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def list_pages(app: Sphinx, error: Exception | None) -> None:
    """Write llms.txt (https://llmstxt.org): the pages by section, with titles, for programs that read the site."""
    if error or app.builder.format != "html":
        return
    lines = [
        "# harness",
        "",
        "> Finds out whether TensorFlow code became slower, by how much, and how certain that is.",
    ]
    for title, patterns in SECTIONS.items():
        pages = sorted(page for page in app.env.found_docs if any(Path(page).match(pattern) for pattern in patterns))
        names = [(app.env.titles[page].astext(), page) for page in pages if not page.startswith(EXAMPLES)]
        if names:
            lines += ["", f"## {title}", "", *(f"- [{name}]({page}.html)" for name, page in names)]
    Path(app.outdir, "llms.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("source-read", read_source)
    app.connect("html-page-context", complete_navigation, priority=900)
    app.connect("build-finished", copy_home)
    app.connect("build-finished", build_observatory)
    app.connect("build-finished", list_pages)
    app.add_transform(Anchors)
    app.add_transform(FileLinks)
    app.add_transform(FlatExamples)

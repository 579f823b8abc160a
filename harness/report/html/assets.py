"""The page's style sheets and scripts. They come from templates/html; Vega comes from vl-convert."""

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from harness.files import write_atomically
from harness.report.charts.drawing import PACKAGE, DrawingError, drawer
from harness.report.templates import FOLDER

#: The script that runs before the page is drawn, so that the page is never drawn in the wrong colors.
FIRST = ("theme.js",)

#: Scripts that run after the page has loaded. They are joined into one script, so that they share their variables.
LAST = (
    "format.js",
    "table.js",
    "tables.js",
    "tooltip.js",
    "embed.js",
    "fit.js",
    "charts.js",
    "launches.js",
    "dialog.js",
    "page.js",
)

STYLES = ("page.css", "controls.css", "tables.css", "charts.css", "dialog.css", "print.css")

#: The scripts and style sheets of a page with flame graphs.
FLAMES = ("format.js", "flames.js")
FLAME_STYLES = ("page.css", "controls.css", "tables.css", "charts.css", "flames.css", "print.css")

# texts that would end a script element or start a comment in it (scripts contain them only in strings and patterns)
_SCRIPT_ENDS = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageScript:
    """A script for a page."""

    text: str

    @property
    def source(self) -> str:
        """The script's entry in a content security policy: its hash, so that no other script can run."""
        return f"'sha256-{base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode()}'"


def load_scripts(cache: Path | None = None) -> tuple[PageScript, PageScript, PageScript]:
    """Return the page's scripts: one for its head, and two for its end. The first of these two is Vega.

    The folder `cache` stores the parts that are slow to create.
    """
    return make_script(FIRST), make_vega_script(cache), make_script(LAST)


def read_files(names: Sequence[str]) -> str:
    """Return style sheets, or other files in templates/html, as one text."""
    return "\n".join((FOLDER / "html" / name).read_text(encoding="utf-8") for name in names)


def make_script(names: Sequence[str]) -> PageScript:
    """Return scripts in templates/html as one script with a separate scope, because scripts share a page's globals."""
    return PageScript(_escape_script(f'(() => {{\n"use strict";\n{read_files(names)}}})();\n'))


def make_policy(scripts: Sequence[PageScript]) -> str:
    """Return a page's content security policy: only its own scripts run, and nothing is fetched."""
    sources = " ".join(script.source for script in scripts)
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@functools.cache
def make_vega_script(cache: Path | None = None) -> PageScript:
    """Return Vega, Vega-Lite and vega-embed as one script, which sets `vegaEmbed`.

    Bundling takes one or two seconds, so the script is saved in the folder `cache`, if this folder is writable.
    """
    cached_file = cache / f"vega-{version(PACKAGE)}.js" if cache else None
    if cached_file:
        with suppress(OSError, UnicodeDecodeError):
            return PageScript(cached_file.read_text(encoding="utf-8"))
    try:
        source = _escape_script(drawer().scripts())
    except DrawingError:  # without the renderer, the report has no charts either
        return PageScript("window.vegaEmbed = () => Promise.resolve();")
    if cached_file:
        with suppress(OSError):
            write_atomically(cached_file, source)
    return PageScript(source)


def _escape_script(text: str) -> str:
    return _SCRIPT_ENDS.sub(r"\\x3c", text)

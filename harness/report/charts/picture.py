"""What every chart is made of: its words and its specification; drawn without a browser and without a network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True)
class Words:
    """What is written around a chart's marks, in plain text: title, notes below it, title of its axis.

    `alt` says the content to somebody who does not see it.
    """

    title: str
    notes: Sequence[str]
    axis: str
    alt: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart of one scenario. `name` is its file's without the ending, `specification` is Vega-Lite."""

    name: str
    words: Words
    specification: Mapping[str, Any]

    @property
    def file(self) -> str:
        """Where it lies, as seen from report.md."""
        return f"charts/{self.name}.svg"

    def svg(self) -> str:
        """The chart as an SVG document: its words are text in it, its title and content are for screen readers too."""
        head, tag, body = _svg(self.specification).partition(">")
        title, alt = escape(self.words.title), escape(self.words.alt)
        return f'{head} role="img"{tag}<title>{title}</title><desc>{alt}</desc>{body}\n'


def warm_up() -> None:
    """Have what draws ready: it takes half a second to start, other threads going on meanwhile."""
    _svg({"data": {"values": [{}]}, "mark": "point"})


def _svg(specification: Mapping[str, Any]) -> str:
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(dict(specification), allowed_base_urls=[])
    return drawn

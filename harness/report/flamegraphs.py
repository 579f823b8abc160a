"""Flame graphs as SVG without scripts: each box is a function, below its caller."""

from collections.abc import Callable, Sequence
from html import escape

from harness.analysis.profiles import Frame, compute_depth
from harness.model.texts import format_plain
from harness.report.escape import escape_terminal

#: The width of the picture and the height of a row, in the picture's units. The page scales the picture to its width.
WIDTH, ROW = 1200.0, 18.0
#: The size of the monospaced font, the width of its letters, and the space at the left and right edge of a box.
FONT, LETTER, EDGE = 11.0, 6.65, 4.0


def draw(frames: Sequence[Frame], title: str, is_marked: Callable[[str], bool]) -> str:
    """Return the flame graph for a page; empty without samples.

    Screen readers announce `title`. Boxes of functions that are `is_marked` have the CSS class `data`.
    """

    def draw_box(frame: Frame) -> str:
        own_text = f", {100.0 * frame.own:.1f} % in itself" if frame.own >= 0.0005 else ""
        kind = "data" if is_marked(frame.name) else "odd" if frame.depth % 2 else "even"
        return _draw_box(frame, f'class="{kind}"', own_text)

    return _draw_svg(frames, title, 'class="flame"', draw_box) if frames else ""


def draw_changes(frames: Sequence[Frame], title: str) -> str:
    """Return a flame graph as an SVG file, whose colors show the changes of the boxes; empty without samples.

    Boxes are red if their share of the time became larger, and blue if it became smaller.
    """
    most = max((abs(frame.change) for frame in frames), default=0.0) or 1.0

    def draw_box(frame: Frame) -> str:
        pale = round(255.0 * (1.0 - 0.75 * abs(frame.change) / most))
        color = (255, pale, pale) if frame.change > 0.0 else (pale, pale, 255)
        return _draw_box(frame, f'fill="#{bytes(color).hex()}"', f", {100.0 * frame.change:+.1f} points")

    style = 'xmlns="http://www.w3.org/2000/svg" style="background:#fff;font-family:monospace"'
    return _draw_svg(frames, title, style, draw_box) if frames else ""


def _draw_svg(frames: Sequence[Frame], title: str, attributes: str, draw_box: Callable[[Frame], str]) -> str:
    height = ROW * compute_depth(frames)
    return (
        f'<svg {attributes} role="img" viewBox="0 0 {format_plain(WIDTH)} {format_plain(height)}" '
        f'font-size="{format_plain(FONT)}">'
        f"<title>{escape(escape_terminal(title))}</title>{''.join(map(draw_box, frames))}</svg>"
    )


def _draw_box(frame: Frame, attribute: str, note: str) -> str:
    name = escape_terminal(frame.name)
    left, top, width = frame.left * WIDTH, frame.depth * ROW, frame.width * WIDTH
    title = escape(f"{name}: {100.0 * frame.width:.1f} %{note}")
    label = _shorten(name, width)
    text_element = f'<text x="{left + EDGE:.1f}" y="{top + ROW - 5:.1f}">{escape(label)}</text>' if label else ""
    return (
        f'<g><title>{title}</title><rect {attribute} x="{left:.1f}" y="{format_plain(top)}" '
        f'width="{max(0.5, width - 0.6):.1f}" height="{format_plain(ROW - 1)}"/>{text_element}</g>'
    )


def _shorten(name: str, width: float) -> str:
    """Shorten a name to fit its box: first without its module, then cut, and finally empty."""
    max_letters = int((width - 2 * EDGE) / LETTER)
    if len(name) <= max_letters:
        return name
    base = name.rpartition(".")[2]
    if len(base) <= max_letters:
        return base
    return base[: max_letters - 1] + "…" if max_letters >= 4 else ""

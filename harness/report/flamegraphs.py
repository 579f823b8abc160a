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
    if not frames:
        return ""

    boxes = (
        _draw_box(frame, "data" if is_marked(frame.name) else "odd" if frame.depth % 2 else "even") for frame in frames
    )
    height = ROW * compute_depth(frames)
    return (
        f'<svg class="flame" role="img" viewBox="0 0 {format_plain(WIDTH)} {format_plain(height)}" '
        f'font-size="{format_plain(FONT)}">'
        f"<title>{escape(escape_terminal(title))}</title>{''.join(boxes)}</svg>"
    )


def _draw_box(frame: Frame, css_class: str) -> str:
    name = escape_terminal(frame.name)
    left, top, width = frame.left * WIDTH, frame.depth * ROW, frame.width * WIDTH
    own_text = f", {100.0 * frame.own:.1f} % in itself" if frame.own >= 0.0005 else ""
    title = escape(f"{name}: {100.0 * frame.width:.1f} %{own_text}")
    label = _shorten(name, width)
    text_element = f'<text x="{left + EDGE:.1f}" y="{top + ROW - 5:.1f}">{escape(label)}</text>' if label else ""
    return (
        f'<g><title>{title}</title><rect class="{css_class}" x="{left:.1f}" y="{format_plain(top)}" '
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

"""Flame graphs as SVG: each box is a function, below its caller. The page's script zooms and searches them.

A differential flame graph colors each box by the difference between the function's times on two sides. Source:
B. Gregg, "The flame graph", Communications of the ACM 59(6), 2016.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape

from harness.analysis.profiles import Frame, compute_depth
from harness.model.texts import format_exact, format_plain
from harness.report import format
from harness.report.escape import escape_terminal

#: The width of the picture and the height of a row, in the picture's units. Without scripts, the page scales it.
WIDTH, ROW = 1200.0, 18.0
#: The size of the monospaced font, the width of its letters, and the space at the left and right edge of a box.
FONT, LETTER, EDGE = 11.0, 6.65, 4.0
#: The smallest changes of a box's three shades, as shares of the longer of both times. Smaller changes have no color.
SHADES = (0.1, 0.4, 0.8)


def draw(
    frames: Sequence[Frame],
    title: str,
    is_marked: Callable[[str], bool],
    *,
    seconds: float,
    part: float = 1.0,
    base: str = "",
    calls: Sequence[Mapping[str, float]] = (),
) -> str:
    """Return the flame graph for a page; empty without samples.

    Screen readers announce `title`. `seconds` is the time of all frames together, in a step. The graph takes the share
    `part` of the picture's width. With the name `base` of the other side, boxes have the colors of their differences
    from it. Otherwise, boxes of functions that are `is_marked` have the CSS class `data`. `calls` has the exact number
    of calls per step, by function: of this side, and of the other side if there is one.
    """
    if not frames:
        return ""

    def choose_class(frame: Frame) -> str:
        if base:
            return _choose_shade(frame)
        return "data" if is_marked(frame.name) else "odd" if frame.depth % 2 else "even"

    boxes = (_draw_box(frame, choose_class(frame), seconds, part, base, calls=calls) for frame in frames)
    height = ROW * compute_depth(frames)
    return (
        f'<svg class="flame" role="img" viewBox="0 0 {format_plain(WIDTH)} {format_plain(height)}" '
        f'font-size="{format_plain(FONT)}">'
        f"<title>{escape(escape_terminal(title))}</title>{''.join(boxes)}</svg>"
    )


def _choose_shade(frame: Frame) -> str:
    """Return the CSS class of a difference: `more1` to `more3`, `less1` to `less3`, or `same`."""
    change = (frame.width - frame.base) / max(frame.width, frame.base)
    shade = sum(abs(change) >= smallest for smallest in SHADES)
    return f"{'more' if change > 0.0 else 'less'}{shade}" if shade else "same"


def _draw_box(
    frame: Frame, css_class: str, seconds: float, part: float, base: str, *, calls: Sequence[Mapping[str, float]]
) -> str:
    name = escape_terminal(frame.name)
    scale = part * WIDTH
    left, top, width = frame.left * scale, frame.depth * ROW, frame.width * scale
    facts = [f"{format_milliseconds(frame.width * seconds)} ms, {100.0 * frame.width:.1f} %"]
    if base:
        facts.append(f"{format_milliseconds(frame.base * seconds)} ms in {escape_terminal(base)}")
    if frame.own >= 0.0005:
        facts.append(f"{100.0 * frame.own:.1f} % in itself")
    numbers = [format_exact(round(counts.get(frame.name, 0.0), 1)) for counts in calls]
    if numbers:
        facts.append(f"calls per step: {numbers[0]}{f' ({numbers[1]} in {escape_terminal(base)})' if base else ''}")
    # the script reads the name in the first line, and the position and the width
    title = escape(f"{name}\n{'; '.join(facts)}")
    label = _shorten(name, width)
    text_element = f'<text x="{left + EDGE:.1f}" y="{top + ROW - 5:.1f}">{escape(label)}</text>' if label else ""
    return (
        f'<g><title>{title}</title><rect class="{css_class}" x="{left:.2f}" y="{format_plain(top)}" '
        f'width="{max(0.3, width):.2f}" height="{format_plain(ROW - 1)}"/>{text_element}</g>'
    )


def format_milliseconds(seconds: float) -> str:
    """Return a time in milliseconds, without its unit."""
    return format.number(1e3 * seconds) if seconds else "0"


def _shorten(name: str, width: float) -> str:
    """Shorten a name to fit its box: first without its module, then cut, and finally empty."""
    max_letters = int((width - 2 * EDGE) / LETTER)
    if len(name) <= max_letters:
        return name
    base = name.rpartition(".")[2]
    if len(base) <= max_letters:
        return base
    return base[: max_letters - 1] + "…" if max_letters >= 4 else ""

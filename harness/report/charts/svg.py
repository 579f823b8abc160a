"""Charts as SVG, without a browser and without a network."""

from html import escape

from harness.report.charts.picture import Picture


def start() -> None:
    """Have what draws ready: it takes half a second to start, other threads going on meanwhile."""
    import vl_convert

    vl_convert.vegalite_to_svg({"data": {"values": [{}]}, "mark": "point"}, allowed_base_urls=[])


def draw(picture: Picture) -> str:
    """The chart as an SVG document: what it says stands in it as text, its title and its content for screen readers."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(dict(picture.specification), allowed_base_urls=[])
    head, tag, body = drawn.partition(">")
    words = picture.words
    return f'{head} role="img"{tag}<title>{escape(words.title)}</title><desc>{escape(words.alt)}</desc>{body}\n'

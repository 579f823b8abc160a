"""Escaping of untrusted strings, such as names of scenarios, errors and standard error, which may contain anything."""

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from harness.model.scenario import Scenario
from harness.model.texts import escape_json

#: The largest number of characters of a string in a line, and of a paragraph. A paragraph can consist of several
#: strings. The second limit also applies to a string in JSON data.
LINE_CHARACTERS, PARAGRAPH_CHARACTERS = 500, 4000

# terminal sequences (ECMA-48, 5.4 and 5.6, in 7 and 8 bits): CSI, OSC and other strings, and two-character escapes
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ENTITY_TABLE = str.maketrans(_ENTITIES)
_MENTION = re.compile(r"@(?=\w)")
_HTML_TABLE = str.maketrans({**_ENTITIES, '"': "&quot;", "'": "&#39;"})
# characters that start emphasis, code, links, table cells, strike-through or GitHub's mathematics within a line
_MARKDOWN_CHARACTERS = re.compile(r"[\\`*\[\]|~$]|(?<!\w)_|_(?!\w)")


def clean(text: str) -> str:
    """Return the text without terminal sequences, control characters (except line feeds and tabs) and bidi controls."""
    if text.isascii() and text.isprintable():
        return text
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
    )


def escape_terminal(text: str, max_length: int = LINE_CHARACTERS) -> str:
    """Return one line for a terminal: without control characters, with single spaces, and of limited length."""
    # cut the text before it is cleaned, because cleaning 10 MB would take seconds
    return shorten(" ".join(clean(text[: 4 * max_length]).split()), max_length)


def shorten(text: str, max_length: int) -> str:
    """Return the text, shortened to `max_length` characters."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def keep_spaces(text: str, escaped: str) -> str:
    """Return `escaped`, with a space at each end if `text` has one there. Spaces separate the parts of a sentence."""
    start_space, end_space = (" " if text[end : end + 1 or None].isspace() else "" for end in (0, -1))
    return f"{start_space}{escaped}{end_space}"


def markdown(text: str, max_length: int = LINE_CHARACTERS) -> str:
    """Return one escaped line for GitHub's Markdown, which also works in a table cell.

    A zero-width space after each @ keeps a pasted report from notifying people.
    """
    escaped = _MARKDOWN_CHARACTERS.sub(lambda mark: "\\" + mark[0], escape_terminal(text, max_length))
    return _MENTION.sub("@\u200b", escaped.translate(_ENTITY_TABLE))


def html(text: str, max_length: int = LINE_CHARACTERS) -> str:
    """Return one escaped line for HTML text or an attribute."""
    return escape_entities(escape_terminal(text, max_length))


def escape_entities(text: str) -> str:
    """Return the text escaped for HTML or an attribute. Line breaks are kept."""
    return text.translate(_HTML_TABLE)


def make_fenced_block(text: str, language: str = "text") -> str:
    """Return a fenced code block. The fence is longer than every row of backticks in the content."""
    lines = clean(text).rstrip()
    longest_run = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest_run + 1)
    return f"{fence}{language}\n{lines}\n{fence}"


def link(title: str, address: str) -> str:
    """Return a Markdown link for an http(s) address; otherwise the escaped text."""
    target = parse_web_address(address)
    return f"[{markdown(title)}]({target})" if target else markdown(address)


def parse_web_address(address: str) -> str:
    """Return an http(s) address, quoted so that it can't end early; empty for any other address."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return ""
    return quote(clean(address.strip()), safe=":/?#@!$&+,;=%-._~")


def sanitize(value: Any) -> Any:
    """Return a JSON value with bounded strings and names, without control characters except line feeds and tabs.

    A scenario becomes its name, and other dataclasses become their fields. Numbers that aren't finite become None,
    because JSON can't represent them.
    """
    if isinstance(value, Scenario):
        value = value.name
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    match value:
        case str():
            return clean(value[:PARAGRAPH_CHARACTERS])
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {sanitize(str(key)): sanitize(item) for key, item in value.items()}
        case Sequence():
            return [sanitize(item) for item in value]
    return value


def dump_json(value: Any, indent: int | None = 2) -> str:
    """Return a JSON document with a line feed at its end; one line if `indent` is None.

    Every `<` is escaped, so it can't close a script element, and so are characters that a terminal would interpret.
    """
    text = json.dumps(sanitize(value), ensure_ascii=False, indent=indent, allow_nan=False)
    return escape_json(text.replace("<", "\\u003c")) + "\n"

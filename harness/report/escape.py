"""Untrusted strings made harmless: names of scenarios, errors and standard error may hold anything (DESIGN 5)."""

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from harness.model.scenario import Scenario
from harness.model.texts import json_escaped

#: More of one string than this is not shown in a line, and so much of a paragraph, which is made of several, or of one
#: string that is handed on in data.
LINE_CHARACTERS, PARAGRAPH_CHARACTERS = 500, 4000

# CSI, OSC and other strings up to their end, then the two-character escapes; ECMA-48 (5.4, 5.6), both 7 and 8 bit
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ENTITY = str.maketrans(_ENTITIES)
_CALL = re.compile(r"@(?=\w)")
_IN_HTML = str.maketrans({**_ENTITIES, '"': "&quot;", "'": "&#39;"})
# characters that start emphasis, code, links, table cells, strike-through or GitHub's mathematics within a line
_MARKS = re.compile(r"[\\`*\[\]|~$]|(?<!\w)_|_(?!\w)")


def clean(text: str) -> str:
    """Without terminal sequences, control and direction-changing characters; lines and tabs are kept."""
    if text.isascii() and text.isprintable():
        return text
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co", "Cn"})


def plain(text: str, most: int = LINE_CHARACTERS) -> str:
    """Return one line for a terminal: without control characters, with single spaces, and of limited length."""
    # bounded twice: cleaning 10 MB to show a line of it would take seconds
    return shortened(" ".join(clean(text[: 4 * most]).split()), most)


def shortened(text: str, most: int) -> str:
    """The text in `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def spaced(text: str, shown: str) -> str:
    """A part of a sentence as it is shown, with the spaces at the text's ends: they part it from its neighbours."""
    before, after = (" " if text[end : end + 1 or None].isspace() else "" for end in (0, -1))
    return f"{before}{shown}{after}"


def markdown(text: str, most: int = LINE_CHARACTERS) -> str:
    """One line for GitHub's Markdown, in a table's cell too, that shows the text as it is.

    A space of no width after an @ keeps a pasted report from calling people.
    """
    escaped = _MARKS.sub(lambda mark: "\\" + mark[0], plain(text, most))
    return _CALL.sub("@\u200b", escaped.translate(_ENTITY))


def html(text: str, most: int = LINE_CHARACTERS) -> str:
    """Return one line of text or of an attribute in HTML, without Markdown's escapes."""
    return entities(plain(text, most))


def entities(text: str) -> str:
    """The text, whose lines are kept, in HTML or in an attribute of it."""
    return text.translate(_IN_HTML)


def fenced(text: str, language: str = "text") -> str:
    """A fenced code block that its content cannot close."""
    lines = clean(text).rstrip()
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{lines}\n{fence}"


def link(title: str, address: str) -> str:
    """A Markdown link for an http(s) address; the escaped text where it is none."""
    target = web_address(address)
    return f"[{markdown(title)}]({target})" if target else markdown(address)


def web_address(address: str) -> str:
    """Return an http(s) address, quoted so that it can't end early; empty for any other address."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return ""
    return quote(clean(address.strip()), safe=":/?#@!$&+,;=%-._~")


def harmless(value: Any) -> Any:
    """A value as JSON, whose strings, names too, are bounded and hold no control characters but line feeds and tabs.

    A dataclass is its fields, but a scenario its name. Numbers that are not finite become None: JSON has none.
    """
    if isinstance(value, Scenario):
        value = value.name
    elif is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    match value:
        case str():
            return clean(value[:PARAGRAPH_CHARACTERS])
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {harmless(str(key)): harmless(item) for key, item in value.items()}
        case list() | tuple():
            return [harmless(item) for item in value]
    return value


def dumps(value: Any) -> str:
    """A harmless JSON document, with a line feed at its end. No `<` is in it, so it cannot end a script element.

    Nor has it what a terminal acts upon.
    """
    text = json.dumps(harmless(value), ensure_ascii=False, indent=2, allow_nan=False)
    return json_escaped(text.replace("<", "\\u003c")) + "\n"

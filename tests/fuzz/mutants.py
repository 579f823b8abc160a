"""Inputs that are almost right: bytes of a file changed at random, and values of a JSON document replaced."""

import copy
import json
import random
from typing import Any

#: What a value of a document is replaced by.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 10**18, 10**60, -(10**400), 0.5, -0.0, 5e-324, 1e-9, 1e100, 1e200, 1e308),
    *("", "nan", "a", "..", "../../x", "/etc/passwd", "\x1b[31m", "\u202e", "x" * 5000, "1", "tf2.0", "environment"),
    *([], {}, [[]], [None], {"": ""}, {"a": {"b": [1]}}, ["a", "a"], [1, "1"]),
)
#: What is put between bytes.
TEXTS = (
    b"\x00",
    b"\xff",
    b"\n",
    b'"',
    b"[" * 50,
    b"{",
    b"}",
    b"-" * 50,
    b"1e999",
    b"\\ud800",
    b"=",
    b"#",
    b"9" * 5000,
    b"= {",
    b".",
    b"'''",
)


def of_bytes(data: bytes, draw: random.Random) -> bytes:
    """A few bytes removed, doubled, replaced or put in."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        begin = draw.randrange(len(changed) + 1)
        end = min(len(changed), begin + draw.choice((0, 1, 2, 8, 64, 512)))
        kind = draw.randrange(4)
        if kind == 0:
            del changed[begin:end]
        elif kind == 1:
            changed[begin:begin] = changed[begin:end]
        elif kind == 2:
            changed[begin:begin] = draw.choice(TEXTS)
        elif begin < len(changed):
            changed[begin] = draw.randrange(256)
    return bytes(changed)


def of_json(data: bytes, draw: random.Random) -> bytes:
    """One to three values of a JSON document replaced, left out, doubled, or taken from elsewhere in it."""
    document = [json.loads(data)]
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        places = list(_places(document))
        holder, key = draw.choice(places)
        kind = draw.randrange(8)
        if kind == 0 and holder is not document:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.append(holder[key])
        elif kind == 2 and isinstance(holder, dict):
            holder[str(draw.choice(VALUES))] = holder.pop(key)
        elif kind == 3:
            other, there = draw.choice(places)
            holder[key] = copy.deepcopy(other[there])
        else:
            holder[key] = copy.deepcopy(draw.choice(VALUES))
    return json.dumps(document[0]).encode()


def _places(value: Any) -> Any:
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])

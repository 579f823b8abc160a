"""A default is written in one place."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bench import schemas
from harness.model import defaults
from tests.conftest import ROOT

#: Every module of harness except the one with the defaults.
MODULES = {
    str(path.relative_to(ROOT)): ast.parse(path.read_text())
    for path in sorted((ROOT / "harness").rglob("*.py"))
    if path.name != "defaults.py"
}
#: Pages that can show a default. Others keep the defaults of their time: CHANGELOG.md, examples, validation. The
#: generated CLI reference shows the current ones.
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if not {"examples", "validation", "cli.md"} & {*path.parts}
}
DEFAULTS = {name: value for name, value in vars(defaults).items() if name.isupper()}

#: A regular expression of the words that a text uses for a quantity, by the end of the name of its default.
TERMS = {
    "MARGIN": r"\bmargin\b",
    "FEWEST_ROUNDS": r"(?!)",  # no option
    "ROUNDS": r"--rounds\b",
    "BUDGET": r"--budget\b",
    "WARMUP": r"--warmup\b|\bwarm up\b",
    "MEASURE": r"--measure\b|\bwarm up\b",
    "TIMEOUT": r"--timeout\b|HARNESS_ENGINE_SECONDS",
    "CALLS": r"--calls\b",
    "LEVEL": r"\binterval|\bconfidence\b",
}
#: Defaults that a page may state, because a reader needs them there.
STATED = ("LEVEL", "MARGIN")
WORDS = {3: "three", 5: "five", 10: "ten", 15: "fifteen", 30: "thirty"}


def values(default: Any) -> tuple[float, ...]:
    return default if isinstance(default, tuple) else (default,)


def forms(name: str, number: float) -> str:
    count = rf"(?<![\d.]){number:g}"
    word = WORDS.get(int(number), "no word")
    if name in ("MARGIN", "LEVEL"):
        return rf"(?<![\d.]){100 * number:g} ?%|(?<![\d.=]){number:g}\b"
    if name.endswith("ROUNDS"):
        return rf"({count}|\b{word}) rounds|, {number:g} with"
    if name.endswith("CALLS"):
        return rf"({count}|\b{word}) calls"
    durations = [rf"{count} ?s(econds)?\b"]
    for length, unit in ((60.0, "m(in(utes?)?)?"), (3600.0, "h(ours?)?")):
        if number >= length and not number % length:
            times = number / length
            durations.append(
                rf"((?<![\d.]){times:g}|\b{WORDS.get(int(times), 'an' if times == 1 else 'two')}) ?{unit}\b"
            )
    return "|".join(durations)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences, table rows and items of a text, each in one line, without the generated parts."""
    text = re.sub(r"<!-- the (\w+): make .*?<!-- the end of the \1 -->", "", text, flags=re.DOTALL)
    text = re.sub(r"(--[a-z-]+) \d\S*", r"\1", text)  # an example of another value
    for part in re.split(r"\n\s*\n|\n(?=[|#-])|(?<=[.:;])\s|(?<=`)\s*#", text):
        yield " ".join(part.split())


def repeated(text: str) -> list[str]:
    """Return the names of the defaults that a text repeats in a sentence about their quantity."""
    return [
        name
        for sentence in sentences(text)
        for name, value in DEFAULTS.items()
        if (terms := next((terms for end, terms in TERMS.items() if name.endswith(end)), None))
        and re.search(terms, sentence)
        and any(re.search(forms(name, number), sentence) for number in values(value))
    ]


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    docstrings = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node


def test_the_table_of_the_docs_has_the_defaults():
    text = schemas.DEFAULTS_PAGE.read_text()
    assert text == schemas.with_defaults(text), "docs/reference/cli.md: make schema"


def test_no_page_repeats_a_default():
    repeats = {name: [default for default in repeated(text) if default not in STATED] for name, text in PAGES.items()}
    assert not {name: names for name, names in repeats.items() if names}, (
        "docs/reference/cli.md#defaults has the number: link to it"
    )


def test_the_level_and_the_margin_that_a_page_states_are_the_defaults():
    text = re.sub(r"\]\([^)]*\)", "]", "\n".join(PAGES.values()))
    levels = set(map(float, re.findall(r"(?<![\d.])([\d.]+) % (?:confidence )?interval", text)))
    margins = set(map(float, re.findall(r"\bmargin\W+(?:of )?([\d.]+) %", text)))
    assert levels <= {100 * defaults.LEVEL}
    assert margins == {100 * defaults.MARGIN}


@pytest.mark.slow
def test_no_text_of_the_harness_repeats_the_margin_or_the_level():
    repeats = {
        f"{name}:{string.lineno}": string.value
        for name, tree in MODULES.items()
        for string in strings(tree)
        if {"MARGIN", "LEVEL"} & {*repeated(str(string.value))}
    }
    assert not repeats


def literals(tree: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            for parameter, value in (
                *zip(node.kwonlyargs, node.kw_defaults, strict=True),
                *zip(positional[::-1], node.defaults[::-1], strict=False),
            ):
                yield parameter.arg, value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.keyword) and re.search(r"(margin|level|alpha)$", node.arg or ""):
            yield node.arg or "", node.value


def test_no_parameter_field_or_keyword_has_a_literal_in_place_of_a_default():
    quantity = re.compile(r"(margin|level|alpha|precision|rounds|budget|timeout|warmup|measure)$")
    problems = [
        f"{path}:{value.lineno}: {name} = {value.value}"
        for path, tree in MODULES.items()
        for name, value in literals(tree)
        if quantity.search(name) and isinstance(value, ast.Constant)
        if type(value.value) in (int, float) and value.value
    ]
    assert not problems


#: Prints the help of every option, with other defaults than ours.
HELP = """
import json, sys
from harness.model import defaults
vars(defaults).update(json.loads(sys.argv[1]))
import typer
from harness.cli import app
def texts(command, context):
    yield from ((parameter.name, getattr(parameter, "help", None) or "") for parameter in command.params)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from texts(command.get_command(context, name), context)
command = typer.main.get_command(app)
print(json.dumps(list(texts(command, typer.Context(command)))))
"""


def test_help_shows_the_defaults_that_there_are():
    others = {"MARGIN": 0.07, "ROUNDS": 1237, "MOST_ROUNDS": 1249, "MOST_CLAIM_ROUNDS": 1259, "CONFIRM_ROUNDS": 1277}
    others |= {"PROFILED_CALLS": 1279, "TIMEOUT": 1283.0, "BISECT_BUDGET": 1289.0}
    command = [sys.executable, "-c", HELP, json.dumps(others)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    shown_by = set()
    for option, text in json.loads(output):
        stated = "".join(re.findall(r"\bdefault\b.*", text, flags=re.IGNORECASE))
        for name, other in others.items():
            if re.search(rf"\b({other:g}|{100 * other:g}%)", stated):
                shown_by.add((option, name))
            for number in values(DEFAULTS[name]) if name.endswith(option.upper()) else ():
                assert not re.search(rf"{forms(name, number)}|(?<![\w.,]){number:g}(?![\w%,]|\.\d)", stated), text
    assert shown_by == {
        ("margin", "MARGIN"),
        *(("rounds", name) for name in others if name.endswith("ROUNDS")),
        ("calls", "PROFILED_CALLS"),
        ("timeout", "TIMEOUT"),
        ("budget", "BISECT_BUDGET"),
        ("search", "BISECT_BUDGET"),
    }

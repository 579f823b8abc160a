"""A default, a list of backends and a comparison with a backend's name are each written in one place."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.backends.registry import CHOICES, ENTRIES
from harness.model import defaults
from tests import schemas

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "harness").rglob("*.py"))
#: Pages that can show a default. Others keep the defaults of their time: CHANGELOG.md, examples, validation. The
#: generated CLI reference shows the current ones.
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if not {"examples", "validation", "cli.md"} & {*path.parts}
]
DEFAULTS = {name: value for name, value in vars(defaults).items() if name.isupper()}

#: What docs and help call the quantities, by the beginning or the end of the names of their defaults.
CALLED = {
    "MARGIN": r"\bmargin\b",
    "FEWEST_ROUNDS": r"(?!)",  # no option
    "ROUNDS": r"--rounds\b",
    "BUDGET": r"--budget\b",
    "WARMUP": r"--warmup\b|\bwarm up\b",
    "MEASURE": r"--measure\b|\bwarm up\b",
    "TIMEOUT": r"--timeout\b|HARNESS_ENGINE_SECONDS",
    "CALLS": r"--calls\b",
}
WORDS = {3: "three", 5: "five", 10: "ten", 15: "fifteen", 30: "thirty"}


def numbers(value: Any) -> Iterator[float]:
    """The numbers that a default consists of."""
    yield from value if isinstance(value, tuple) else (value,)


def forms(name: str, number: float) -> str:
    """A regular expression of the ways in which a text states a default."""
    if name == "MARGIN":
        return rf"(?<![\d.]){100 * number:g} ?%"
    count = rf"(?<![\d.]){number:g}"
    word = WORDS.get(int(number), "no word")
    if name.endswith("ROUNDS"):
        return rf"({count}|\b{word}) rounds|, {number:g} with"
    if name.endswith("CALLS"):
        return rf"({count}|\b{word}) calls"
    spelt = [rf"{count} ?s(econds)?\b"]
    for length, unit in ((60.0, "m(in(utes?)?)?"), (3600.0, "h(ours?)?")):
        if number >= length and not number % length:
            times = number / length
            spelt.append(rf"((?<![\d.]){times:g}|\b{WORDS.get(int(times), 'an' if times == 1 else 'two')}) ?{unit}\b")
    return "|".join(spelt)


def sentences(text: str) -> Iterator[str]:
    """The sentences, table rows and items of a page, each in one line, without the generated tables."""
    text = re.sub(r"<!-- the table:.*?<!-- the end of the table -->", "", text, flags=re.DOTALL)
    text = re.sub(r"(--[a-z-]+) \d\S*", r"\1", text)  # what is typed in place of a default
    for part in re.split(r"\n\s*\n|\n(?=[|#-])|(?<=[.:;])\s|(?<=`)\s*#", text):
        yield " ".join(part.split())


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module that are no documentation."""
    documentation = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documentation.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
            yield node


def parsed() -> Iterator[tuple[Path, ast.Module]]:
    """Every module of the harness but the one with the defaults."""
    for path in SOURCES:
        if path.name != "defaults.py":
            yield path.relative_to(ROOT), ast.parse(path.read_text())


def test_the_table_of_the_docs_has_the_defaults() -> None:
    text = schemas.DEFAULTS_PAGE.read_text()
    assert text == schemas.with_defaults(text), "docs/explanation/how-it-measures.md: make schema"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_repeats_no_default_beside_the_name_of_its_option(page: Path) -> None:
    repeated = []
    for sentence in sentences(page.read_text()):
        for name, value in DEFAULTS.items():
            called = next((words for ending, words in CALLED.items() if name.endswith(ending)), None)
            if called and re.search(called, sentence):
                found = (re.search(forms(name, number), sentence) for number in numbers(value))
                repeated += [f"{name}, {entry[0]!r}: {sentence}" for entry in found if entry]
    assert not repeated, "docs/explanation/how-it-measures.md#defaults has the number: link to it"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_level_that_a_page_states_is_that_of_the_intervals(page: Path) -> None:
    stated = re.findall(r"(?<![\d.])([\d.]+) % (?:confidence )?interval", page.read_text())
    assert {float(entry) for entry in stated} <= {100 * defaults.LEVEL}


def test_no_text_of_the_harness_has_the_margin_or_the_level_as_a_literal() -> None:
    shares = "|".join(
        rf"(?<!such as )(?<![\d.]){100 * share:g} ?%|\b{share:g}\b" for share in (defaults.MARGIN, defaults.LEVEL)
    )
    found = [
        f"{path}:{string.lineno}: {string.value}"
        for path, tree in parsed()
        for string in strings(tree)
        if re.search(shares, string.value)
    ]
    assert not found


def test_no_argument_or_field_has_a_literal_in_place_of_a_default() -> None:
    named = re.compile(r"(margin|level|alpha|precision|rounds|budget|timeout|warmup|measure)$")
    found = []
    for path, tree in parsed():
        for node in ast.walk(tree):
            pairs: list[tuple[str, ast.expr | None]] = []
            if isinstance(node, ast.arguments):
                pairs += [(each.arg, value) for each, value in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
                given = [*node.posonlyargs, *node.args]
                pairs += [(each.arg, value) for each, value in zip(given[::-1], node.defaults[::-1], strict=False)]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                pairs.append((node.target.id, node.value))
            for name, value in pairs:
                if named.search(name) and isinstance(value, ast.Constant) and type(value.value) in (int, float):
                    found += [f"{path}:{value.lineno}: {name} = {value.value}"] if value.value else []
    assert not found


#: Prints the help of every command, with other defaults than ours.
HELP = """
import json, sys
from harness.model import defaults
vars(defaults).update({name: tuple(value) if isinstance(value, list) else value
                       for name, value in json.loads(sys.argv[1]).items()})
import typer
from harness.cli import app
def texts(command, context, name=""):
    for each in command.params:
        if getattr(each, "help", None):
            yield f"{name} {each.name}: {each.help}"
    for of in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from texts(command.get_command(context, of), context, f"{name} {of}".strip())
command = typer.main.get_command(app)
print(json.dumps(list(texts(command, typer.Context(command)))))
"""


def helps(**changes: Any) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", HELP, json.dumps(changes)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    found: list[str] = json.loads(done.stdout)
    return found


def test_help_shows_the_defaults_that_there_are() -> None:
    """With other defaults, help has no number any more that it says is a default."""
    others = {"MARGIN": 0.07, "ROUNDS": 1237, "MOST_ROUNDS": 1249, "MOST_CLAIM_ROUNDS": 1259, "CONFIRM_ROUNDS": 1277}
    others |= {"PROFILED_CALLS": 1279, "TIMEOUT": 1283.0, "BISECT_BUDGET": 1289.0}
    ours, theirs = helps(), helps(**others)
    changed = {one.split(":")[0] for one, other in zip(ours, theirs, strict=True) if one != other}
    assert {entry.rpartition(" ")[2] for entry in changed} == {
        *("margin", "rounds", "calls", "timeout", "budget", "search")
    }
    for text in theirs:
        stated = "".join(re.findall(r"\bdefault\b.*", text, flags=re.IGNORECASE))
        for name in others:
            for number in numbers(DEFAULTS[name]):
                shown = rf"{forms(name, number)}|(?<![\w.,]){number:g}(?![\w%,]|\.\d)"
                assert not (name in changed_names(text) and re.search(shown, stated)), text


def changed_names(text: str) -> set[str]:
    """The defaults that an option may show, by the name that stands at the start of its help."""
    option = text.split(":", maxsplit=1)[0].rpartition(" ")[2].upper()
    return {name for name in DEFAULTS if name.endswith(option)}


def test_no_text_lists_the_backends_but_by_the_registry() -> None:
    name = rf"`?\b({'|'.join(CHOICES)})\b`?"
    listed = re.compile(rf"{name}(, | or | and |\||/){name}")
    found = [
        f"{path}:{string.lineno}: {string.value}"
        for path, tree in parsed()
        for string in strings(tree)
        if listed.search(string.value)
    ]
    assert not found
    for page in PAGES:
        assert not [
            sentence for sentence in sentences(page.read_text()) if "--backend" in sentence and listed.search(sentence)
        ], page


def test_a_backend_is_asked_what_it_is_and_not_what_it_is_called() -> None:
    names = {entry.name for entry in ENTRIES}
    found = []
    for path, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and re.search(r"backend|engine\b", ast.unparse(node)):
                constants = {entry.value for entry in ast.walk(node) if isinstance(entry, ast.Constant)}
                found += [f"{path}:{node.lineno}: {ast.unparse(node)}"] if constants & names else []
    assert not found

"""The example reports are what the stored launches give today: `make examples` writes them."""

import re
from collections import Counter
from pathlib import Path

import pytest

from bench import examples
from harness.report.charts.vega import Picture

#: Examples with more launches than the others.
LARGE = {"backends", "latency", "seed"}


def mark(example: Path) -> object:
    return pytest.param(example, id=example.name, marks=[pytest.mark.slow] if example.name in LARGE else [])


@pytest.mark.slow
@pytest.mark.parametrize("example", [mark(example) for example in examples.find_examples()])
def test_an_example_is_made_from_its_stored_launches(example, monkeypatch):
    # charts have letters' widths, which are the machine's fonts': only their names are compared
    monkeypatch.setattr(Picture, "svg", lambda _: "<svg/>")
    files = examples.generate(example)
    assert {name for name in files if name.endswith(".md")} & {"report.md", "profile.md"}
    for name, text in files.items():
        stored = example / name
        assert stored.is_file(), f"{stored} is missing: make examples"
        if not name.endswith(".svg"):
            assert stored.read_text() == text, f"{stored} is not what the stored launches give: make examples"


def test_stored_launches_are_small():
    sizes = [(example / examples.LAUNCHES).stat().st_size for example in examples.find_examples()]
    assert sizes
    assert sum(sizes) < 2_000_000


@pytest.mark.parametrize(
    "example", [path.parent for path in examples.EXAMPLES.glob("*/report.md")], ids=lambda path: path.name
)
def test_explanations_are_less_than_a_tenth_of_the_prose_of_a_report(example):
    text = re.sub(r"^(> )?```.*?^(> )?```", "", (example / "report.md").read_text(), flags=re.M | re.S)
    words = Counter()
    for part in re.split(r"^## ", text, flags=re.M):
        heading, _, prose = part.partition("\n")
        lines = [line for line in prose.splitlines() if not re.match(r"\||#|<(?!sub)", line)]
        words[heading in ("How to read this", "Not in this file")] += len(re.findall(r"\w[^\s]*", "\n".join(lines)))
    assert 10 * words[True] < sum(words.values()), words

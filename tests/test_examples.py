"""The example reports are what the stored launches give today: `make examples` writes them."""

from pathlib import Path

import pytest

from bench import examples


@pytest.mark.parametrize("example", examples.find_examples(), ids=lambda path: path.name)
def test_an_example_is_made_from_its_stored_launches(example: Path) -> None:
    made = examples.generate(example)
    assert {name for name in made if name.endswith(".md")} & {"report.md", "profile.md"}
    for name, text in made.items():
        stored = example / name
        assert stored.is_file(), f"{stored} is missing: make examples"
        # charts have letters' widths, which are the machine's fonts'
        if not name.endswith(".svg"):
            assert stored.read_text() == text, f"{stored} is not what the stored launches give: make examples"


def test_stored_launches_are_small() -> None:
    sizes = [(example / examples.LAUNCHES).stat().st_size for example in examples.find_examples()]
    assert sizes
    assert sum(sizes) < 2_000_000

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.quantities import seconds, size
from harness.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("250ms", 0.25), (" 2 M ", 120)]
)
def test_lengths_of_time(text: str, value: float) -> None:
    assert seconds(text, "--timeout") == value


@pytest.mark.parametrize(
    ("text", "value"), [("1024", 1024), ("512m", 2**29), ("8g", 2**33), ("8GiB", 2**33), ("8GB", 2**33), ("1.5k", 1536)]
)
def test_sizes(text: str, value: int) -> None:
    assert size(text, "--memory") == value


@given(st.text())
def test_whatever_is_typed_is_a_quantity_above_none_or_a_sentence(text: str) -> None:
    for read, option in ((seconds, "--timeout"), (size, "--memory")):
        with contextlib.suppress(UsageError):
            assert read(text, option) > 0


@pytest.mark.parametrize("text", ["0", "-1s", "soon", "", "10 parsecs", "1e400", "nan"])
def test_what_is_no_length_of_time_gets_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="--timeout"):
        seconds(text, "--timeout")

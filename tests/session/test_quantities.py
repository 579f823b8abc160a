import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import UsageError
from harness.session.quantities import seconds, share, size


@pytest.mark.parametrize(
    ("text", "value"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("250ms", 0.25), (" 2 M ", 120)]
)
def test_lengths_of_time(text: str, value: float) -> None:
    assert seconds(text, "--timeout") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1024b", 1024), ("512m", 2**29), ("8g", 2**33), ("8GiB", 2**33), ("8GB", 2**33), ("1.5k", 1536)],
)
def test_sizes(text: str, value: int) -> None:
    assert size(text, "--memory") == value


@given(st.text())
def test_whatever_is_typed_is_a_quantity_above_none_or_a_sentence(text: str) -> None:
    for read, option in ((seconds, "--timeout"), (size, "--memory"), (share, "--margin")):
        with contextlib.suppress(UsageError):
            assert read(text, option) > 0


@pytest.mark.parametrize("text", ["-1s", "soon", "", "10 parsecs", "1e400", f"{'9' * 400}h", "nan"])
def test_what_is_no_length_of_time_gets_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"--timeout .* is not a length of time such as 90s, 10m or 1h"):
        seconds(text, "--timeout")


@pytest.mark.parametrize("text", ["0s", "0.0m"])
def test_no_time_is_a_length_only_where_that_is_said(text: str) -> None:
    assert seconds(text, "--warmup", or_none=True) == 0.0
    with pytest.raises(UsageError, match=r"--measure .* is zero"):
        seconds(text, "--measure")


def test_a_number_without_a_unit_is_refused_with_what_to_type() -> None:
    with pytest.raises(UsageError, match=r"--budget '10' has no unit\.\nType 10s or 10m\."):
        seconds("10", "--budget")
    with pytest.raises(UsageError, match=r"--memory '100' has no unit\.\nType 100m or 100g\."):
        size("100", "--memory")
    with pytest.raises(UsageError, match=r"--precision '2' is not a share such as 3% or 0.03\.\nType 2%\."):
        share("2", "--precision")

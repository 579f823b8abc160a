"""The errors of calls, for golden files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.errors import HarnessError


def read_refusal(call: Callable[[], object], folder: Path | None = None) -> str:
    """Return the class and the text of a call's error. The path of `folder` is replaced by FOLDER."""
    with pytest.raises(HarnessError) as raised:
        call()
    text = f"{type(raised.value).__name__}: {raised.value}"
    return text.replace(str(folder), "FOLDER") if folder else text

"""The errors of calls, for tables of errors and golden files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.model.errors import HarnessError

Error = TypeVar("Error", bound=Exception)


def catch(kind: type[Error], function: Callable[..., Any], *arguments: Any, **options: Any) -> Error:
    """Call a function that has to raise an error of this very kind, and return the error."""
    with pytest.raises(kind) as caught:
        function(*arguments, **options)
    assert type(caught.value) is kind
    return caught.value


def catch_text(kind: type[Exception], function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Call a function that has to raise an error of this very kind, and return its text."""
    return str(catch(kind, function, *arguments, **options))


def read_refusal(call: Callable[[], object], folder: Path | None = None) -> str:
    """Return the class and the text of a call's error. The path of `folder` is replaced by FOLDER."""
    with pytest.raises(HarnessError) as raised:
        call()
    text = f"{type(raised.value).__name__}: {raised.value}"
    return text.replace(str(folder), "FOLDER") if folder else text

"""The error of a call, for a table of errors."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.model.errors import HarnessError


def catch(kind: type[HarnessError], function: Callable[..., Any], *arguments: Any, **options: Any) -> HarnessError:
    """Call a function that has to raise an error of this very kind, and return the error."""
    with pytest.raises(kind) as caught:
        function(*arguments, **options)
    assert type(caught.value) is kind
    return caught.value


def catch_text(kind: type[HarnessError], function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Call a function that has to raise an error of this very kind, and return its text."""
    return str(catch(kind, function, *arguments, **options))

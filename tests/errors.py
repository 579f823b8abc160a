"""The error of a call, for a table of errors."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

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

"""What both backends do with environments that cannot be had."""

from collections.abc import Mapping

from harness.model.errors import CannotRunHereError, HarnessError


def refuse_nothing(results: Mapping[str, str | Exception]) -> None:
    """Raise CannotRunHereError, with every reason once, where not one environment can be had."""
    errors = [result for result in results.values() if isinstance(result, HarnessError)]
    if not errors or len(errors) < len(results):
        return
    reasons = dict.fromkeys(error.message for error in errors)
    advice = dict.fromkeys(error.advice for error in errors if error.advice)
    raise CannotRunHereError("\n".join(reasons), "\n".join(advice))

"""Export formats for other tools: one module per format, whose `render(results)` returns the text.

A module has the name of its format, with an underscore at the end if Python has a module of the same name. To add a
format, add a module here. Nothing else needs to change.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `harness --help` needs only the names
    from pathlib import Path

    from harness.analysis.results import Results


def list_formats() -> list[str]:
    """Return the values of `--format`."""
    return sorted(_find_modules())


def render(format: str, results: "Results") -> str:
    """Return the run in one of the formats of `list_formats()`."""
    text: str = import_module(f"{__name__}.{_find_modules()[format]}").render(results)
    return text


def render_template(results: "Results", path: "Path") -> str:
    """Return the run in the layout of a user's template. Raises UsageError."""
    from harness.report import sections, user_template  # noqa: PLC0415
    from harness.report.sections import measurement  # noqa: PLC0415

    return user_template.render(sections.build(results), path, measurement.describe(results))


def _find_modules() -> dict[str, str]:
    return {module.name.rstrip("_").replace("_", "-"): module.name for module in iter_modules(__path__)}

"""Export formats for other tools: one module per format, whose `render(results)` returns the text.

A module has the name of its format, with an underscore at the end if Python has a module of the same name. To add a
format, add a module here. Nothing else needs to change.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from harness.model.errors import NothingSelectedError

if TYPE_CHECKING:  # `harness --help` needs only the names
    from harness.analysis.cells import CellResult
    from harness.analysis.results import Results
    from harness.model.run import Run


def list_formats() -> list[str]:
    """Return the values of `--format`."""
    return sorted(_find_modules())


def render(format: str, results: "Results") -> str:
    """Return the run in one of the formats of `list_formats()`.

    Raises NothingSelectedError if no cell has a result, and the format can't represent a run without results.
    """
    text: str = import_module(f"{__name__}.{_find_modules()[format]}").render(results)
    return text


def _find_modules() -> dict[str, str]:
    return {module.name.rstrip("_").replace("_", "-"): module.name for module in iter_modules(__path__)}


def name_cells(name: str, run: "Run") -> str:
    """Return the name of a cell or a comparison in exports. It is the same in every run with the same clock.

    Tools that compare runs match results by this name.
    """
    from harness.model.launch import Clock  # noqa: PLC0415

    return f"{name}, CPU time" if run.plan.clock is Clock.CPU else name


def require_numbers(results: "Results", format: str) -> "list[CellResult]":
    """Return the cells with a result, for a format that contains only results.

    Raises NothingSelectedError if no cell has a result.
    """
    with_result = [result for result in results.cells if result.estimate]
    if not with_result:
        raise NothingSelectedError(
            f"No cell has a result, and a file in the format {format} contains only results.",
            "To see why, run: harness report RUN",
        )
    return with_result

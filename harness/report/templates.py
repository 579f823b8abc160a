"""Loading of harness's templates. All values are escaped, unless a function of harness returned them as Markup."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import package_data
from harness.report import format

if TYPE_CHECKING:
    from jinja2 import Environment

#: The folder `templates/` of harness, independent of the current project.
FOLDER = package_data.FOLDER / "templates"


def make_environment(escape: Callable[[str], str], folder: Path | None = None) -> "Environment":
    """Return a Jinja environment in which every value that a template prints is escaped with `escape`.

    Autoescape is on so that macros and functions of harness return Markup, which isn't escaped again. Other values are
    escaped with `escape` instead of the rules for HTML. A misspelled name in a template raises an error. `share` and
    `duration` are filters for numbers.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return value if hasattr(value, "__html__") else Markup(escape(str(value)))

    jinja = Environment(
        loader=FileSystemLoader(folder or FOLDER),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {"share": format.share, "duration": format.duration}
    return jinja

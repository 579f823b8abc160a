"""Loading of harness's templates. All values are escaped, unless a function of harness returned them as Markup."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import package_data
from harness.report import blocks, format
from harness.report.blocks import Block

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

#: The folder `templates/` of harness, independent of the current project.
FOLDER = package_data.FOLDER / "templates"

#: The kinds of blocks that templates distinguish, by name.
BLOCKS: Sequence[type[Block]] = (
    blocks.Callout,
    blocks.Code,
    blocks.Drawing,
    blocks.Figure,
    blocks.Folded,
    blocks.Heading,
    blocks.Items,
    blocks.Table,
    blocks.Text,
)


def make_environment(
    escape: Callable[[str], str], folder: Path | None = None, kind: "type[Environment] | None" = None
) -> "Environment":
    """Return a Jinja environment in which every value that a template prints is escaped with `escape`.

    `kind` is its class. Autoescape is on so that macros and functions of harness return Markup, which isn't escaped
    again. Other values are escaped with `escape` instead of the rules for HTML. A misspelled name in a template raises
    an error. `share` and `duration` are filters for numbers. The name of a kind of block, such as `table`, is a test.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return value if hasattr(value, "__html__") else Markup(escape(str(value)))

    jinja = (kind or Environment)(
        loader=FileSystemLoader(folder or FOLDER),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {"share": format.share, "duration": format.duration}
    jinja.tests |= {kind.__name__.lower(): _make_test(kind) for kind in BLOCKS}
    jinja.globals["unknown"] = _refuse_block
    return jinja


def mark_safe(function: Callable[..., str]) -> Callable[..., "Markup"]:
    """Return the function as a filter whose text isn't escaped again."""
    from markupsafe import Markup

    return lambda *arguments: Markup(function(*arguments))


def _make_test(kind: type[Block]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


def _refuse_block(block: Block) -> None:
    raise TypeError(f"the template can't show a {type(block).__name__}")

"""A report in a user's own layout. The template can be somebody else's, so it is rendered in a sandbox.

The sandbox limits what a template can read: the documented attributes of the report, and other templates in its folder.
It doesn't limit time and memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any

from jinja2 import BaseLoader, Environment, TemplateError, TemplateNotFound, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from harness.files import read_text
from harness.model.errors import FileError, Problem, UsageError
from harness.report import escape, markdown
from harness.report.blocks import Block, Figure, Section, Table, Text, Where, Words, walk_blocks
from harness.report.html import page
from harness.report.templates import make_environment

#: The attributes that templates can read: of sections and blocks, of tables, and of charts. Other attributes lead to
#: stored launches and to functions.
ATTRIBUTES = frozenset(
    (
        *("title", "anchor", "blocks", "text", "items", "language", "summary"),
        *("caption", "noun", "heads", "lines", "entries", "legend", "order", "stands_out"),
        *("is_code", "is_label", "is_number", "is_verdict"),
        *("picture", "file", "dark_file", "words", "alt", "notes"),
    )
)

# errors of a template with a mistake
_ERRORS = (
    *(TemplateError, ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RecursionError),
    *(TypeError, ValueError),
)


def _make_values(sections: Sequence[Section], where: Where, measurement: str) -> dict[str, object]:
    """Return the values of a template, with the blocks and columns that the outputs `where` show.

    - `title`: the title of the report, and `answer`: its first sentence
    - `measurement`: a sentence on how reliable the measurement is; empty if nothing was timed
    - `tables`, `figures`: all tables and charts, in the order of the report
    - `sections`: the whole report. The first section contains the answer
    """
    visible_sections = [visible for section in sections if (visible := section.shown(where))]
    blocks = list(walk_blocks(block for section in visible_sections for block in section.blocks))
    return {
        "title": sections[0].title,
        "answer": next((_join_words(block.words) for block in blocks if isinstance(block, Text)), ""),
        "measurement": measurement,
        "tables": [block.shown(where) for block in blocks if isinstance(block, Table)],
        "figures": [block for block in blocks if isinstance(block, Figure)],
        "sections": visible_sections,
    }


def _join_words(words: Words) -> str:
    return words if isinstance(words, str) else "".join(span if isinstance(span, str) else span.text for span in words)


def render(sections: Sequence[Section], path: Path, measurement: str) -> str:
    """Return the report in the layout of the template `path`. Values are escaped for HTML if it is NAME.html.j2.

    Otherwise, they are escaped for Markdown. Raises UsageError, and FileError for a mistake in the template.
    """
    if path.suffix != ".j2" or not path.is_file():
        raise UsageError(f"{path} isn't a file whose name ends in .j2.", "Use the path of a Jinja template.")
    is_page = path.name.endswith(".html.j2")
    values = _make_values(sections, Where.PAGE if is_page else Where.PASTE | Where.DETAILS, measurement)
    resolved_path = path.resolve()
    folder = resolved_path.parent
    try:
        return _make_sandbox(folder, is_page=is_page).get_template(resolved_path.name).render(values)
    except _ERRORS as error:
        file, line = _find_place(error, folder) or (resolved_path, 0)
        reason = escape.escape_terminal(str(error) or type(error).__name__).rstrip(".")
        advice = f"The values of a template are {', '.join(values)}."
        raise FileError([Problem(path.parent / file.relative_to(folder), line, f"{reason}.", advice)]) from None


def _find_place(error: Exception, folder: Path) -> tuple[Path, int] | None:
    """Return the template in this folder, and the line, in which an error occurred. Python files aren't templates."""
    places = [(Path(frame.filename), frame.lineno or 0) for frame in extract_tb(error.__traceback__)]
    if isinstance(error, TemplateSyntaxError) and error.filename:
        places.append((Path(error.filename), error.lineno))
    templates = (place for place in places[::-1] if place[0].suffix == ".j2" and place[0].is_relative_to(folder))
    return next(templates, None)


class _Sandbox(ImmutableSandboxedEnvironment):
    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template can read an attribute. Objects of harness have only documented attributes."""
        if type(obj).__module__.partition(".")[0] == "harness":
            return attr in ATTRIBUTES
        return super().is_safe_attribute(obj, attr, value)


@dataclass(frozen=True)
class _FolderLoader(BaseLoader):
    """Loads templates from a folder, not from other places to which a name or a link leads."""

    folder: Path

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, None]:
        path = (self.folder / template).resolve()
        if path.suffix != ".j2" or not path.is_relative_to(self.folder) or not path.is_file():
            raise TemplateNotFound(template, f"{template!r} isn't a file NAME.j2 in the folder of the template")
        return read_text(path), str(path), None


def _make_sandbox(folder: Path, *, is_page: bool) -> Environment:
    """Return the environment of a user's templates. A block is printed as the report shows it."""
    escape_text = escape.html if is_page else escape.markdown
    render_block = page.make_block_renderer() if is_page else lambda block: markdown.render_blocks([block])

    def finalize(value: Any) -> Any:
        if isinstance(value, Block):
            return Markup(render_block(value).rstrip("\n"))
        return value if hasattr(value, "__html__") else Markup(escape_text(str(value), escape.PARAGRAPH_CHARACTERS))

    jinja = make_environment(escape_text, folder, _Sandbox)
    jinja.loader, jinja.finalize = _FolderLoader(folder), finalize
    return jinja

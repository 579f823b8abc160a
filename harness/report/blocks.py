"""The blocks of a report, and the sections that contain them.

The renderers for Markdown, the page and the terminal know only blocks, not the contents of sections. The text of blocks
isn't escaped: each renderer escapes it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import Flag, auto
from itertools import zip_longest
from typing import Generic, TypeVar

from harness.model.scenario import Cell
from harness.report.charts.vega import Picture, number_names


class Where(Flag):
    """The outputs that show a block."""

    #: report.md, which people paste into issues. Its size is limited.
    PASTE = auto()
    #: details.md, whose size isn't limited.
    DETAILS = auto()
    #: report.html.
    PAGE = auto()
    TERMINAL = auto()


#: The outputs for the main results, and for the facts that support them.
REPORT = Where.PASTE | Where.PAGE | Where.TERMINAL
REST = Where.DETAILS | Where.PAGE
FILES = Where.PASTE | Where.PAGE
EVERYWHERE = ~Where(0)


@dataclass(frozen=True, slots=True)
class Bold:
    """Words in bold."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead to an http(s) address."""

    text: str
    address: str


Words = str | Sequence[str | Bold | Link]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a table. `cells` are the measured cells behind its number, whose launches the page shows on a click.

    With `is_code`, the text is monospaced. The page sorts by `order` instead of the text.
    """

    text: str
    stands_out: bool = False
    cells: Sequence[Cell] = ()
    is_code: bool = False
    order: float | None = None


@dataclass(frozen=True)
class Head:
    """The heading of a column.

    - `is_label`: the column contains the name of the line
    - `is_verdict`: the page colors the column, and offers it as a filter
    - `legend`: a sentence that explains the column
    - `where`: the outputs that show the column
    """

    text: str
    _: KW_ONLY
    legend: str = ""
    is_number: bool = False
    is_label: bool = False
    is_verdict: bool = False
    where: Where = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: an entry for each heading. `cell` is the measured cell that the whole line is about."""

    entries: Sequence[Entry]
    cell: Cell | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Base of all blocks; `where` are the outputs that show the block."""

    where: Where = REST


@dataclass(frozen=True, slots=True)
class Text(Block):
    """A paragraph. `is_note`: an explanation, in small print on the page. `is_small`: in small print in every file."""

    words: Words
    is_note: bool = False
    is_small: bool = False


@dataclass(frozen=True, slots=True)
class Table(Block):
    """A table with a caption, which also names the table in lists of omitted or folded parts.

    The page sorts and filters a table that `is_searchable`. `noun` is the name of its rows, such as `comparison`.
    """

    caption: str
    heads: Sequence[Head]
    lines: Sequence[Line]
    noun: str = "line"
    is_searchable: bool = False

    @property
    def legend(self) -> str:
        """The explanation of the columns."""
        return " ".join(head.legend for head in self.heads if head.legend)

    def shown(self, where: Where) -> "Table":
        """Return the table with the columns that these outputs show."""
        indexes = [index for index, head in enumerate(self.heads) if head.where & where]
        if len(indexes) == len(self.heads):
            return self
        lines = [replace(line, entries=[line.entries[index] for index in indexes]) for line in self.lines]
        return replace(self, heads=[self.heads[index] for index in indexes], lines=lines)


@dataclass(frozen=True, slots=True)
class Figure(Block):
    """A chart."""

    picture: Picture


@dataclass(frozen=True, slots=True)
class Drawing(Block):
    """An SVG image with a description, for the page."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Code(Block):
    """Lines that are shown unchanged, such as a command."""

    text: str
    language: str = "sh"


@dataclass(frozen=True, slots=True)
class Items(Block):
    """A list."""

    items: Sequence[Words]


@dataclass(frozen=True, slots=True)
class Heading(Block):
    """A heading inside a section."""

    title: str


@dataclass(frozen=True, slots=True)
class Callout(Block):
    """Blocks that a reader must see first. Each of these blocks is shown in the outputs of its `where`."""

    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Folded(Block):
    """Blocks that are hidden until a click. The `where` of these blocks is ignored."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report. `anchor` is its unique name in links."""

    title: str
    anchor: str
    blocks: Sequence[Block]

    def shown(self, where: Where) -> "Section | None":
        """Return the section with the blocks that these outputs show; None if it would contain only headings."""
        blocks = list(_drop_empty_headings(_select_shown(self.blocks, where)))
        return replace(self, blocks=blocks) if blocks else None


def _select_shown(blocks: Sequence[Block], where: Where) -> list[Block]:
    """Return the blocks that these outputs show, without empty callouts."""
    selected: list[Block] = []
    for block in blocks:
        if block.where & where and isinstance(block, Callout):
            inner_blocks = _select_shown(block.blocks, where)
            selected += [replace(block, blocks=inner_blocks)] if inner_blocks else []
        elif block.where & where:
            selected.append(block)
    return selected


def _drop_empty_headings(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks, without headings that are followed by another heading or by nothing."""
    for block, next_block in zip_longest(blocks, blocks[1:]):
        if not isinstance(block, Heading) or not (next_block is None or isinstance(next_block, Heading)):
            yield block


def walk_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks in order, and after each block the blocks inside it."""
    for block in blocks:
        yield block
        if isinstance(block, Folded | Callout):
            yield from walk_blocks(block.blocks)


def join_legends(blocks: Iterable[Block]) -> str:
    """Return the explanations of the columns of all tables among the blocks, each explanation once."""
    heads = (head for block in blocks if isinstance(block, Table) for head in block.heads)
    return " ".join(filter(None, dict.fromkeys(head.legend for head in heads)))


def find_pictures(sections: Iterable[Section]) -> list[Picture]:
    """Return the charts of sections, in order."""
    return [block.picture for section in sections for block in walk_blocks(section.blocks) if isinstance(block, Figure)]


def remove_pictures(sections: Sequence[Section], reason: str) -> list[Section]:
    """Return the sections without their charts. The first section ends with the reason `reason`."""
    first, *others = [replace(section, blocks=list(_replace_pictures(section.blocks, {}))) for section in sections]
    return [replace(first, blocks=[*first.blocks, Text(reason, where=FILES)]), *others]


def number_pictures(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with charts that have distinct names. A name that is already used gets a number."""
    pictures = find_pictures(sections)
    # a difference in case isn't enough, because some file systems don't distinguish upper and lower case
    names = number_names((picture.name for picture in pictures), "{}-{}", str.lower)
    numbered = {id(picture): replace(picture, name=name) for picture, name in zip(pictures, names, strict=True)}
    return [replace(section, blocks=list(_replace_pictures(section.blocks, numbered))) for section in sections]


def _replace_pictures(blocks: Iterable[Block], pictures: Mapping[int, Picture]) -> Iterator[Block]:
    """Yield the blocks with other charts, by the `id` of each chart. A chart without another one is omitted."""
    for block in blocks:
        if isinstance(block, Folded):
            inner_blocks = list(_replace_pictures(block.blocks, pictures))
            yield from [replace(block, blocks=inner_blocks)] if inner_blocks else []
        elif not isinstance(block, Figure):
            yield block
        elif picture := pictures.get(id(block.picture)):
            yield replace(block, picture=picture)


Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Head, Generic[Row]):
    """A heading, and a function from a row to an entry. An optional column is omitted if all entries are empty."""

    value: Callable[[Row], str | Entry]
    _: KW_ONLY
    is_optional: bool = False


def tabulate(
    caption: str,
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    *,
    cell: Callable[[Row], Cell | None] = lambda _: None,
    where: Where = REST,
    noun: str = "line",
    is_searchable: bool = False,
) -> Table:
    """Return the table of `rows`, without the optional columns that are empty."""
    by_column = [
        (column, [value if isinstance(value, Entry) else Entry(value) for value in map(column.value, rows)])
        for column in columns
    ]
    kept_columns = [
        (column, entries)
        for column, entries in by_column
        if not column.is_optional or any(entry.text for entry in entries)
    ]
    lines = [Line([entries[index] for _, entries in kept_columns], cell(row)) for index, row in enumerate(rows)]
    return Table(caption, [column for column, _ in kept_columns], lines, noun, is_searchable, where=where)

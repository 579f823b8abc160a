"""What a test reads of a section: its sentences, its tables as text, and what is in bold."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.analysis.results import Results
from harness.model.launch import Launch
from harness.model.run import Run
from harness.report import markdown
from harness.report.blocks import (
    EVERYWHERE,
    Block,
    Bold,
    Code,
    Folded,
    Heading,
    Items,
    Section,
    Table,
    Text,
    Where,
    Words,
)


def make(sections: Callable[[Results], Iterator[Section]], run: Run, launches: Sequence[Launch] = ()) -> Section:
    (section,) = sections(Results(run, launches))
    return section


def render(section: Section) -> str:
    """A section in Markdown; before each block stands where it is shown: `[paste page]`."""
    parts = [f"## {section.title}"]
    for block in section.blocks:
        places = " ".join(str(place.name).lower() for place in Where if place in block.where)
        text = markdown.render_full([Section("", "", [replace(block, where=EVERYWHERE)])]).removeprefix("# ").strip()
        parts.append(f"[{places}]\n{block.title if isinstance(block, Heading) else text}")
    return "\n\n".join(parts)


def heads(table: Table) -> list[str]:
    return [head.text for head in table.heads]


def rows(table: Table) -> list[list[str]]:
    return [[entry.text for entry in line.entries] for line in table.lines]


def column(table: Table, heading: str) -> list[str]:
    at = heads(table).index(heading)
    return [row[at] for row in rows(table)]


def everything(container: Section | Sequence[Block], where: Where = EVERYWHERE) -> list[Block]:
    blocks: list[Block] = []
    for block in container.blocks if isinstance(container, Section) else container:
        if block.where & where:
            blocks += [block, *(everything(block.blocks) if isinstance(block, Folded) else ())]
    return blocks


def tables(section: Section, where: Where = EVERYWHERE) -> list[Table]:
    return [block.shown(where) for block in everything(section, where) if isinstance(block, Table)]


def headings(section: Section, where: Where = EVERYWHERE) -> list[str]:
    return [block.title for block in everything(section.shown(where) or [], where) if isinstance(block, Heading)]


def code(section: Section, where: Where = EVERYWHERE) -> list[str]:
    return [block.text for block in everything(section, where) if isinstance(block, Code)]


def texts(section: Section, where: Where = EVERYWHERE) -> list[str]:
    """The sentences that are shown there, with the legends and the entries of lists."""
    blocks = [block for block in everything(section, where) if isinstance(block, Text | Items)]
    return [text(words) for block in blocks for words in (block.items if isinstance(block, Items) else [block.words])]


def summaries(section: Section, where: Where = EVERYWHERE) -> list[str]:
    return [block.summary for block in everything(section, where) if isinstance(block, Folded)]


def text(words: Words) -> str:
    return words if isinstance(words, str) else "".join(word if isinstance(word, str) else word.text for word in words)


def strong(words: Words) -> list[str]:
    return [word.text for word in words if isinstance(word, Bold)]

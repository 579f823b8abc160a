"""What a section says, as a reader sees it: its tables as texts, and its sentences."""

from collections.abc import Iterable, Sequence

from harness.report.blocks import Block, Folded, Section, Strong, Table, Text, Where, Words

ANYWHERE = ~Where(0)


def section(sections: Iterable[Section], title: str) -> Section:
    """The only section of that title."""
    (found,) = [each for each in sections if each.title == title]
    return found


def blocks(of: Section | Sequence[Block], where: Where = ANYWHERE) -> list[Block]:
    """The blocks that are shown there, those that are folded too."""
    found: list[Block] = []
    for block in of.blocks if isinstance(of, Section) else of:
        if block.where & where:
            found += [block, *(blocks(block.blocks) if isinstance(block, Folded) else ())]
    return found


def tables(of: Section, where: Where = ANYWHERE) -> list[Table]:
    """Its tables."""
    return [block.shown(where) for block in blocks(of, where) if isinstance(block, Table)]


def headings(of: Table) -> list[str]:
    """A table's headings."""
    return [head.text for head in of.heads]


def lines(of: Table) -> list[list[str]]:
    """A table's lines."""
    return [[entry.text for entry in line.entries] for line in of.lines]


def column(of: Table, heading: str) -> list[str]:
    """What stands below a heading."""
    at = headings(of).index(heading)
    return [line[at] for line in lines(of)]


def text(words: Words) -> str:
    """Words without what makes them bold or links."""
    return words if isinstance(words, str) else "".join(w if isinstance(w, str) else w.text for w in words)


def texts(of: Section, where: Where = ANYWHERE) -> list[str]:
    """Its sentences, a paragraph each."""
    return [text(block.words) for block in blocks(of, where) if isinstance(block, Text)]


def bold(words: Words) -> list[str]:
    """What of these words is bold."""
    return [each.text for each in words if isinstance(each, Strong)]


def summaries(of: Section, where: Where = ANYWHERE) -> list[str]:
    """What stands over each of its folded parts."""
    return [block.summary for block in blocks(of, where) if isinstance(block, Folded)]

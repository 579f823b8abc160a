"""The differences between the environments of a run, and the packages that are the same in all."""

from collections.abc import Iterator, Sequence

from harness.analysis.environments import Software
from harness.analysis.results import Results
from harness.model.run import Run
from harness.model.texts import counted
from harness.report.blocks import FILES, Block, Column, Entry, Folded, Head, Line, Section, Table, Text, tabulate
from harness.report.phrases import SIDE_BY_SIDE, moved

#: The largest number of packages with a column of their own, if environments of the same TensorFlow differ in them.
PACKAGES = 6

#: Before the name of a package that the line above has, and this one has not.
GONE = "-"

# columns that are shown only if the environments differ in them
_BESIDE = "TensorFlow's package"


def sections(results: Results) -> Iterator[Section]:
    """Return a table with one row per environment. Less important packages are folded."""
    known = results.run.environments
    if known:
        title = "Environments" if len(known) > 1 else "Environment"
        yield Section(title, "environments", list(_blocks(results)))


def _blocks(results: Results) -> Iterator[Block]:
    run, told = results.run, results.software
    leading = [each for each in told if each.leads and any(each.versions) and (each.name != _BESIDE or each.differs)]
    point, more = _point(run, told)
    table = overview(run, [*leading, *point])
    if table.heads[1:]:
        yield table
        yield from _notes(table, more)
    for each in run.environments:
        if each.base:
            yield Text(f"{each.name} is {moved(run, each)}.", True, where=FILES)
    has_sources = any(each.source for each in run.environments)
    if len(run.environments) > 1 and not has_sources and not any(each.differs for each in told):
        yield Text("The environments don't differ in anything that was recorded.", where=FILES)
    others = [each for each in told if each.differs and not each.leads and each not in point]
    if others and len(run.environments) > SIDE_BY_SIDE:
        note = (
            "The first line lists every version that differs between environments. Each further line lists only "
            f"differences from the line above. A {GONE} before a package means that it was removed."
        )
        yield Folded("Other packages that change", [changes(run, others), Text(note, True)])
    elif others:
        empty = "Empty: the environment does not have the package."
        gaps = [Text(empty, True)] if any("" in each.versions for each in others) else []
        yield Folded("The other packages that differ", [packages(run, others), *gaps])
    yield from _same(run, told)
    if run.images:
        yield Folded("Hashes of images and interpreters", [Text(ran(run))])


def _point(run: Run, told: Sequence[Software]) -> tuple[list[Software], int]:
    """Return the packages that differ between environments with the same TensorFlow, and the number of further ones."""
    releases = next(each.versions for each in told if each.name == "TensorFlow")
    alike = [[at for at, of in enumerate(releases) if of == release] for release in dict.fromkeys(releases)]
    if len(releases) > SIDE_BY_SIDE and len(alike) > 1:
        return [], 0
    found = [each for each in told if not each.leads and any(map(each.differs_among, alike))]
    return found[:PACKAGES], len(found[PACKAGES:])


def overview(run: Run, shown: Sequence[Software]) -> Table:
    """Return one row per environment. Values that differ from the row above stand out."""

    def column(of: Software) -> Column[int]:
        def version(at: int) -> Entry:
            return Entry(of.versions[at], stands_out=at > 0 and of.differs_among([at - 1, at]))

        return Column(of.name, version, is_optional=True)

    line: Column[int] = Column("line", lambda at: run.environments[at].line, is_optional=True)
    columns = [_environment(run), line, *map(column, shown)]
    return tabulate("The environments", columns, range(len(run.environments)), where=FILES, noun="environment")


def _environment(run: Run) -> Column[int]:
    return Column("environment", lambda at: run.environments[at].name, is_label=True)


def _notes(table: Table, more: int) -> Iterator[Text]:
    entries = [entry for line in table.lines for entry in line.entries]
    told = [
        "Bold: different from the line above." if any(entry.stands_out for entry in entries) else "",
        "Empty: the environment does not have it." if any(not entry.text for entry in entries) else "",
        f"{counted(more, 'more package', 'differs')}." if more else "",
    ]
    if any(told):
        yield Text(" ".join(filter(None, told)), True, where=FILES)


def packages(run: Run, others: Sequence[Software]) -> Table:
    """Return a table of packages, with one line per package and one column per environment."""
    heads = [Head("package", is_label=True), *(Head(known.name) for known in run.environments)]
    lines = [Line([Entry(each.name), *map(Entry, each.versions)]) for each in others]
    return Table("The other packages that differ", heads, lines, "package")


def changes(run: Run, others: Sequence[Software]) -> Table:
    """Return one row per environment with the versions that differ from the row above; the first row has all."""
    columns = [_environment(run), Column("packages", lambda at: _changed(others, at))]
    rows = range(len(run.environments))
    return tabulate("Other packages that change", columns, rows, noun="environment")


def _changed(others: Sequence[Software], at: int) -> str:
    told = []
    for each in others:
        version, before = each.versions[at], each.versions[at - 1] if at else ""
        if version != before:
            told.append(f"{each.name} {version}" if version else f"{GONE}{each.name}")
    return ", ".join(told)


def _same(run: Run, told: Sequence[Software]) -> Iterator[Folded]:
    same = [f"{each.name} {each.common}" for each in told if not each.differs and each.common]
    if same:
        alone = len(run.environments) == 1
        summary = f"Contents of {run.environments[0].name}" if alone else "Identical in all environments"
        yield Folded(summary, [Text(", ".join(same) + ".")])


def ran(run: Run) -> str:
    """Return the image or interpreter in which launches of each environment ran."""
    known = [f"{each.name} {_short(image)}" for each in run.environments if (image := run.images.get(each.name))]
    return f"Images, or locks of local environments: {', '.join(known)}."


def _short(digest: str) -> str:
    """Twelve digits of a hash, as engines show it."""
    algorithm, colon, digits = digest.rpartition(":")
    return f"{algorithm}{colon}{digits[:12]}"

"""The differences between the environments of a run, and the packages that are the same in all environments."""

from collections.abc import Iterator, Sequence

from harness.analysis.environments import Software
from harness.analysis.results import Results
from harness.model.environment import Device, name_on
from harness.model.run import Run
from harness.model.texts import counted
from harness.report.blocks import FILES, Block, Column, Entry, Folded, Head, Line, Section, Table, Text, tabulate
from harness.report.phrases import SIDE_BY_SIDE, describe_overrides

#: The largest number of columns for packages that differ between environments with the same TensorFlow.
PACKAGES = 6

#: The prefix of a package that the environment in the line above has, but this environment doesn't have.
GONE = "-"

# columns that are shown only if the environments differ in them
_BESIDE = "TensorFlow's package"


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with one row per environment. Less important packages are folded."""
    environments = results.run.environments
    if environments:
        title = "Environments" if len(environments) > 1 else "Environment"
        yield Section(title, "environments", list(_blocks(results)))


def _blocks(results: Results) -> Iterator[Block]:
    run, software = results.run, results.software
    leading = [
        package
        for package in software
        if package.leads and any(package.versions) and (package.name != _BESIDE or package.differs)
    ]
    point, more = _point(software)
    table = make_overview(run, [*leading, *point])
    if table.heads[1:]:
        yield table
        yield from _notes(table, more)
    for environment in run.environments:
        if environment.base:
            yield Text(f"{environment.name} is {describe_overrides(run, environment)}.", True, where=FILES)
    has_sources = any(candidate.source for candidate in run.environments)
    if len(run.environments) > 1 and not has_sources and not any(package.differs for package in software):
        yield Text("The environments don't differ in anything that was recorded.", where=FILES)
    changing = [package for package in software if package.differs and not package.leads and package not in point]
    if changing and len(run.environments) > SIDE_BY_SIDE:
        note = (
            "The first line lists every version that differs between environments. Each further line lists only "
            f"differences from the line above. A {GONE} before a package means that it was removed."
        )
        yield Folded("Other packages that change", [tabulate_changes(run, changing), Text(note, True)])
    elif changing:
        empty = "Empty: the environment doesn't contain the package."
        gaps = [Text(empty, True)] if any("" in package.versions for package in changing) else []
        yield Folded("The other packages that differ", [tabulate_packages(run, changing), *gaps])
    yield from _are_same(run, software)
    if run.images:
        yield Folded("Hashes of images and interpreters", [Text(describe_images(run))])


def _point(software: Sequence[Software]) -> tuple[list[Software], int]:
    """Return the packages that differ between environments with the same TensorFlow, and how many more there are."""
    releases = next(package.versions for package in software if package.name == "TensorFlow")
    alike = [[at for at, other in enumerate(releases) if other == release] for release in dict.fromkeys(releases)]
    if len(releases) > SIDE_BY_SIDE and len(alike) > 1:
        return [], 0
    differing = [package for package in software if not package.leads and any(map(package.differs_among, alike))]
    return differing[:PACKAGES], len(differing[PACKAGES:])


def make_overview(run: Run, shown: Sequence[Software]) -> Table:
    """Return a table with one row per environment. Values that differ from the row above are highlighted."""

    def column(package: Software) -> Column[int]:
        def version(at: int) -> Entry:
            return Entry(package.versions[at], stands_out=at > 0 and package.differs_among([at - 1, at]))

        return Column(package.name, version, is_optional=True)

    line: Column[int] = Column("line", lambda at: run.environments[at].line, is_optional=True)
    columns = [_environment(run), line, *map(column, shown)]
    return tabulate("The environments", columns, range(len(run.environments)), where=FILES, noun="environment")


def _environment(run: Run) -> Column[int]:
    return Column("environment", lambda at: run.environments[at].name, is_label=True)


def _notes(table: Table, more: int) -> Iterator[Text]:
    entries = [entry for line in table.lines for entry in line.entries]
    notes = [
        "Bold: different from the line above." if any(entry.stands_out for entry in entries) else "",
        "Empty: the environment doesn't contain the package." if any(not entry.text for entry in entries) else "",
        f"{counted(more, 'more package', 'differs')}." if more else "",
    ]
    if any(notes):
        yield Text(" ".join(filter(None, notes)), True, where=FILES)


def tabulate_packages(run: Run, software: Sequence[Software]) -> Table:
    """Return a table of packages, with one line per package and one column per environment."""
    heads = [Head("package", is_label=True), *(Head(environment.name) for environment in run.environments)]
    lines = [Line([Entry(package.name), *map(Entry, package.versions)]) for package in software]
    return Table("The other packages that differ", heads, lines, "package")


def tabulate_changes(run: Run, software: Sequence[Software]) -> Table:
    """Return a table with one row per environment: the versions that differ from the row above.

    The first row contains all versions.
    """
    columns = [_environment(run), Column("packages", lambda at: _find_changed(software, at))]
    rows = range(len(run.environments))
    return tabulate("Other packages that change", columns, rows, noun="environment")


def _find_changed(software: Sequence[Software], at: int) -> str:
    texts = []
    for package in software:
        version, before = package.versions[at], package.versions[at - 1] if at else ""
        if version != before:
            texts.append(f"{package.name} {version}" if version else f"{GONE}{package.name}")
    return ", ".join(texts)


def _are_same(run: Run, software: Sequence[Software]) -> Iterator[Folded]:
    packages = [f"{package.name} {package.common}" for package in software if not package.differs and package.common]
    if packages:
        alone = len(run.environments) == 1
        summary = f"Contents of {run.environments[0].name}" if alone else "Identical in all environments"
        yield Folded(summary, [Text(", ".join(packages) + ".")])


def describe_images(run: Run) -> str:
    """Return the image or interpreter in which launches of each environment ran."""
    names = [name_on(environment.name, device, run.images) for environment in run.environments for device in Device]
    texts = [f"{name} {_short(image)}" for name in dict.fromkeys(names) if (image := run.images.get(name))]
    return f"Images, or locks of local environments: {', '.join(texts)}."


def _short(digest: str) -> str:
    """Return the first 12 digits of a hash, as engines show hashes."""
    algorithm, colon, digits = digest.rpartition(":")
    return f"{algorithm}{colon}{digits[:12]}"

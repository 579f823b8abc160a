"""The differences between the environments of a run, and the packages that are the same in all environments."""

from collections.abc import Iterator, Sequence

from harness.analysis.environments import Software
from harness.analysis.results import Results
from harness.model.environment import Device, name_on
from harness.model.run import Run
from harness.model.texts import counted
from harness.report.blocks import FILES, Block, Column, Entry, Folded, Head, Line, Section, Table, Text, Where, tabulate
from harness.report.phrases import SIDE_BY_SIDE, describe_overrides

#: The largest number of columns for packages that differ between environments with the same TensorFlow.
PACKAGES = 6

#: The prefix of a package that is in the environment in the line above, but not in this environment.
REMOVED_PREFIX = "-"

# a column that is shown only if the environments differ in it
_OPTIONAL_PACKAGE = "TensorFlow's package"


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with one row per environment. Less important packages are folded."""
    environments = results.run.environments
    if environments:
        title = "Environments" if len(environments) > 1 else "Environment"
        yield Section(title, "environments", list(_list_blocks(results)))


def _list_blocks(results: Results) -> Iterator[Block]:
    run, software = results.run, results.software
    main_packages = [
        package
        for package in software
        if package.leads and any(package.versions) and (package.name != _OPTIONAL_PACKAGE or package.differs)
    ]
    relevant_packages, omitted_count = _find_relevant_packages(software)
    table = make_overview(run, [*main_packages, *relevant_packages])
    if table.heads[1:]:
        yield table
        yield from _list_notes(table, omitted_count)
    for environment in run.environments:
        if environment.base:
            yield Text(f"{environment.name} is {describe_overrides(run, environment)}.", True, where=FILES)
    has_sources = any(candidate.source for candidate in run.environments)
    if len(run.environments) > 1 and not has_sources and not any(package.differs for package in software):
        yield Text("The environments don't differ in anything that was recorded.", where=FILES)
    changing = [
        package for package in software if package.differs and not package.leads and package not in relevant_packages
    ]
    if changing and len(run.environments) > SIDE_BY_SIDE:
        note = (
            "The first line lists every version that differs between environments. Each further line lists only "
            f"differences from the line above. A {REMOVED_PREFIX} before a package means that it was removed."
        )
        yield Folded("Other packages that change", [tabulate_changes(run, changing), Text(note, True)])
    elif changing:
        empty = "Empty: the environment doesn't contain the package."
        notes = [Text(empty, True)] if any("" in package.versions for package in changing) else []
        yield Folded("The other packages that differ", [tabulate_packages(run, changing), *notes])
    yield from _list_identical_packages(run, software)
    if run.images:
        yield Folded("Hashes of images and interpreters", [Text(describe_images(run))])


def _find_relevant_packages(software: Sequence[Software]) -> tuple[list[Software], int]:
    """Return the packages that differ between environments with the same TensorFlow, and the number of others."""
    releases = next(package.versions for package in software if package.name == "TensorFlow")
    same_release = [
        [index for index, other in enumerate(releases) if other == release] for release in dict.fromkeys(releases)
    ]
    if len(releases) > SIDE_BY_SIDE and len(same_release) > 1:
        return [], 0
    differing_packages = [
        package for package in software if not package.leads and any(map(package.differs_among, same_release))
    ]
    return differing_packages[:PACKAGES], len(differing_packages[PACKAGES:])


def make_overview(run: Run, packages: Sequence[Software]) -> Table:
    """Return a table with one row per environment. Values that differ from the row above are highlighted."""

    def make_column(package: Software) -> Column[int]:
        def make_entry(index: int) -> Entry:
            return Entry(package.versions[index], stands_out=index > 0 and package.differs_among([index - 1, index]))

        return Column(package.name, make_entry, is_optional=True)

    line: Column[int] = Column("line", lambda index: run.environments[index].line, is_optional=True)
    columns = [_make_environment_column(run), line, *map(make_column, packages)]
    return tabulate("The environments", columns, range(len(run.environments)), where=FILES, noun="environment")


def _make_environment_column(run: Run) -> Column[int]:
    return Column("environment", lambda index: run.environments[index].name, is_label=True)


def _list_notes(table: Table, omitted_count: int) -> Iterator[Text]:
    entries = [entry for line in table.lines for entry in line.entries]
    if any(entry.stands_out for entry in entries):
        yield Text("Bold: different from the line above.", True, where=Where.PAGE)
    if any(not entry.text for entry in entries):
        yield Text("Empty: the environment doesn't contain the package.", True, where=Where.PAGE)
    if omitted_count:
        yield Text(f"{counted(omitted_count, 'more package', 'differs')}.", True, where=FILES)


def tabulate_packages(run: Run, software: Sequence[Software]) -> Table:
    """Return a table of packages, with one line per package and one column per environment."""
    heads = [Head("package", is_label=True), *(Head(environment.name) for environment in run.environments)]
    lines = [Line([Entry(package.name), *map(Entry, package.versions)]) for package in software]
    return Table("The other packages that differ", heads, lines, "package")


def tabulate_changes(run: Run, software: Sequence[Software]) -> Table:
    """Return a table with one row per environment: the versions that differ from the row above.

    The first row contains all versions.
    """
    columns = [_make_environment_column(run), Column("packages", lambda index: _find_changed(software, index))]
    rows = range(len(run.environments))
    return tabulate("Other packages that change", columns, rows, noun="environment")


def _find_changed(software: Sequence[Software], index: int) -> str:
    texts = []
    for package in software:
        version, previous = package.versions[index], package.versions[index - 1] if index else ""
        if version != previous:
            texts.append(f"{package.name} {version}" if version else f"{REMOVED_PREFIX}{package.name}")
    return ", ".join(texts)


def _list_identical_packages(run: Run, software: Sequence[Software]) -> Iterator[Folded]:
    packages = [f"{package.name} {package.common}" for package in software if not package.differs and package.common]
    if packages:
        is_single = len(run.environments) == 1
        summary = f"Contents of {run.environments[0].name}" if is_single else "Identical in all environments"
        yield Folded(summary, [Text(", ".join(packages) + ".")])


def describe_images(run: Run) -> str:
    """Return the image or interpreter in which launches of each environment ran."""
    names = [name_on(environment.name, device, run.images) for environment in run.environments for device in Device]
    texts = [f"{name} {_shorten_digest(image)}" for name in dict.fromkeys(names) if (image := run.images.get(name))]
    return f"Images, or locks of local environments: {', '.join(texts)}."


def _shorten_digest(digest: str) -> str:
    """Return the first 12 digits of a hash, as engines show hashes."""
    algorithm, colon, digits = digest.rpartition(":")
    return f"{algorithm}{colon}{digits[:12]}"

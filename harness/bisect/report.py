"""The report of a search, as sections."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.bisect.candidates import find_moving
from harness.bisect.probe import Probe
from harness.bisect.request import BisectRequest, By
from harness.bisect.search import Search, SearchEnd
from harness.model.defaults import LEVEL
from harness.model.environment import NIGHTLIES, TENSORFLOW, differences
from harness.model.scenario import OWN, STEP
from harness.model.texts import counted, format_plain, joined
from harness.report.blocks import FILES, REPORT, Block, Code, Column, Items, Link, Section, Text, Words, tabulate
from harness.report.format import duration, level
from harness.report.phrases import capitalize, describe_change, format_count
from harness.session.options import format_length

#: The repository of each package, and the prefix of its version tags.
_REPOSITORIES = {
    "keras": ("keras-team/keras", "v"),
    "keras-nightly": ("keras-team/keras", ""),
    "tf-keras": ("keras-team/tf-keras", "v"),
    "numpy": ("numpy/numpy", "v"),
    **dict.fromkeys(TENSORFLOW, ("tensorflow/tensorflow", "v")),
}

#: Packages other than TensorFlow that can change the time of a step.
_EXCHANGED_PACKAGES = ("keras", "keras-nightly", "tf-keras", "numpy")

_HASH = re.compile(r"-g([0-9a-f]{7,40})(?:-dirty)?$")

#: The largest number of candidates in the table, and of skipped candidates in a sentence.
_ROWS, _SKIPPED = 60, 5


def build_sections(request: BisectRequest, search: Search, probe: Probe, package: str) -> list[Section]:
    """Return the report of a search in its current state. `package` is the searched package; empty for releases."""
    # the scenario of a plain script is a generated file in the cache
    subject = request.script[0] if request.script else request.scenario
    cell = ", ".join([subject, *(f"{axis}={value}" for axis, value in request.axes.items())])
    kind = "commits" if request.repository else "versions"
    candidates = f"{kind} of {package}, all other packages unchanged" if package else "releases"
    details = [
        *_list_commits(search, package, probe.commits()),
        *_list_packages(search, package, probe),
        *_list_other_findings(search),
        _describe_cost(search, probe),
    ]
    answer, *sentences = _format_answer(request, search)
    prefix = f"{request.issue}: " if request.issue else ""
    blocks: list[Block] = [
        Text(capitalize(f"{prefix}{answer}"), where=REPORT),
        *(Text(sentence, where=REPORT) for sentence in sentences),
        Items(details, where=REPORT),
        *_suggest_next_search(request, search, package, probe),
        Text(f"Measured: the {_describe_quantity(request)} of {cell}, in {candidates}.", where=FILES),
    ]
    if search.ends:
        blocks.append(Text(f"Comparison of --good and --bad before the search: {search.ends.clause}.", where=FILES))
    if request.command:
        blocks += [Text("Command:", where=FILES), Code(shlex.join(request.command), where=FILES)]
    runs = Items([f"{run}/report.md" for run in dict.fromkeys(probe.runs)], where=FILES)
    return [
        Section(f"Bisect: {request.issue or subject}", "bisect", blocks),
        Section("Candidates", "candidates", list(_make_table(search))),
        Section("Runs", "runs", [runs]),
    ]


def make_resume_command(request: BisectRequest, folder: Path) -> str:
    """Return the command that resumes a search with twice its budget."""
    return f"harness bisect --resume {shlex.quote(str(folder))} --budget {format_length(2.0 * request.budget)}"


def _describe_quantity(request: BisectRequest) -> str:
    if request.by == By.WORK:
        return "number of calls per step"
    return {STEP: "time per step", OWN: "time without the import"}.get(request.of, request.of)


def _format_answer(request: BisectRequest, search: Search) -> list[str]:
    """Return the sentences of the answer. The first one starts in lower case, because it can follow an issue's name."""
    if search.work and search.found:
        return _format_counts(search, search.found)
    belief = search.posterior
    if search.ends is None or belief is None:
        return ["the search ended before it had compared --good and --bad."]
    if not search.ends.is_step:
        return [f"--good and --bad {search.ends.relation}: {search.ends.clause}."]
    if search.is_reversed:
        return [f"--good and --bad are swapped: {search.ends.clause}."]
    change = f"the {_describe_quantity(request)} {'fell' if search.is_fix else 'rose'}"
    location = _describe_location(search, belief.likeliest)
    if search.ended in (SearchEnd.CONFIRMED, SearchEnd.FOUND) and search.pair:
        return _format_found_pair(change, location, belief.share, search, search.pair.clause)
    low, high = map(search.text, belief.likely_range)
    likeliest = "No direct comparison confirmed the change."
    if belief.likely_range != belief.likeliest:
        first, last = map(search.text, belief.likeliest)
        likeliest = f"The likeliest pair, {first} and {last}, has {100.0 * belief.share:.0f} %."
    reason = "The budget ended the search." if search.ended is SearchEnd.BUDGET else "The search was interrupted."
    probability = f"posterior probability: {level(LEVEL)}"
    return [f"narrowed to {low} .. {high} ({probability}). {likeliest} {reason}"]


def _describe_location(search: Search, pair: tuple[int, int]) -> str:
    """Return the location of a change: `between tf2.15 and tf2.16 (2023-11-14 to 2024-03-08)`."""
    first, last = (search.candidates[number] for number in pair)
    dates = f" ({first.date} to {last.date})" if first.date and last.date else ""
    return f"between {first.text} and {last.text}{dates}"


def _format_counts(search: Search, pair: tuple[int, int]) -> list[str]:
    """Return the answer of a search by counts."""
    old_work, new_work = (search.work[number] for number in pair)
    return [
        f"the calls per step changed {_describe_location(search, pair)}: {describe_change(new_work, old_work)}",
        *(["The budget ended the search."] if search.ended is SearchEnd.BUDGET else []),
        "Counts are exact, and each candidate was launched once. They don't show whether the step takes longer.",
    ]


def _format_found_pair(change: str, place: str, share: float, search: Search, clause: str) -> list[str]:
    """Return the answer of a search that ended at one pair, or at one commit."""
    posterior = f"posterior probability of {100.0 * share:.1f} %"
    is_confirmed = search.ended is SearchEnd.CONFIRMED
    first, last = search.found or (0, 0)
    commit = search.candidates[last]
    names = f"{search.text(first)} .. {search.text(last)}"
    if commit.title and last == first + 1:
        place = f"with commit {commit.version} of {commit.date}, “{commit.title}”"
        names = f"Commit {commit.version}"
    if is_confirmed:
        sentence = "A direct comparison of the two versions confirmed the change."
        return [f"{change} {place}: {clause}.", f"{names} has a {posterior}. {sentence}"]
    return [
        f"{change} most likely {place} ({posterior}). But a direct comparison of the two versions did not confirm the "
        f"change: {clause}.",
        "There may be several changes, or a change that is too small to detect between two adjacent candidates.",
    ]


def _list_commits(search: Search, package: str, commits: Mapping[str, str]) -> Iterator[Words]:
    """Yield the commits of the two builds, and a link to the commits between them."""
    builds, address = find_commits(search, package, commits)
    if builds:
        yield builds
    if address:
        yield [Link(f"Changes in {package or 'tensorflow'} between the two versions", address)]


def _list_packages(search: Search, package: str, probe: Probe) -> Iterator[Words]:
    """Yield the packages that differ between the two candidates, and links to the changes of known packages."""
    if not (search.ends or search.work) or (pair := _get_pair(search)) is None:
        return
    first, last = pair
    package_changes = differences(probe.pins(last), probe.pins(first))
    if len(package_changes) < 2:
        return
    yield f"{counted(len(package_changes), 'package')} of {last} differ from {first}: {joined(package_changes)}."
    for name, (repository, tag) in _REPOSITORIES.items():
        versions = [probe.pins(text).get(name, "") for text in pair]
        # a nightly wheel has no tag
        has_tags = all(versions) and not any("dev" in version for version in versions)
        if has_tags and versions[0] != versions[1] and name != package and name not in TENSORFLOW:
            address = f"https://github.com/{repository}/compare/{tag}{versions[0]}...{tag}{versions[1]}"
            yield [Link(f"Changes in {name} between these versions", address)]


def _get_pair(search: Search) -> tuple[str, str] | None:
    """Return the values of -e of the two candidates, the older first; None if nothing was found, or for commits."""
    if search.found is None or search.candidates[search.found[1]].title:
        return None
    return search.text(search.found[0]), search.text(search.found[1])


def find_commits(search: Search, package: str, commits: Mapping[str, str]) -> tuple[str, str]:
    """Return the commits that the two builds report, as text, and the address of the commits between them."""
    if search.found is None or not (search.ends or search.work):
        return "", ""
    commit_text = ""
    first, last = (search.candidates[number] for number in search.found)
    if first.title:
        return "", ""
    repository, tag = _REPOSITORIES.get(package or "tensorflow", ("", ""))
    ends = [f"{tag}{first.version}", f"{tag}{last.version}"]
    if package in TENSORFLOW or not package:
        builds = [commits.get(candidate.text, "") for candidate in (first, last)]
        if any(builds):
            commit_text = f"GIT_VERSION: {builds[0] or 'unknown'} and {builds[1] or 'unknown'}"
        hashes = [match[1] for build in builds if (match := _HASH.search(build))]
        ends = hashes if len(hashes) == 2 else [] if package in NIGHTLIES else ends
    path = f"compare/{ends[0]}...{ends[1]}" if ends else ""
    if package == "keras-nightly":
        path = f"commits/master?since={first.date}&until={last.date}" if first.date and last.date else ""
    return commit_text, f"https://github.com/{repository}/{path}" if repository and path else ""


def _list_other_findings(search: Search) -> Iterator[str]:
    """Yield other changes of the scan, different Python versions, and skipped candidates."""
    named_pair = search.found if search.ends else None
    other_changes = [change for change in search.changes if change.pair != named_pair]
    if other_changes:
        changes = search.format_changes(other_changes)
        yield f"The scan, with one round of each version, shows other changes too: {changes}."
    if search.pair and search.pair.pythons:
        yield (
            f"The two versions run on different versions of Python ({' and '.join(search.pair.pythons)}), which can "
            "change the speed."
        )
    skipped_texts = [f"{search.text(number)} ({reason})" for number, reason in sorted(search.unknown.items())]
    if skipped_texts:
        more_text = f"; and {len(skipped_texts) - _SKIPPED} more" if len(skipped_texts) > _SKIPPED else ""
        yield f"Skipped: {'; '.join(skipped_texts[:_SKIPPED])}{more_text}."


def _describe_cost(search: Search, probe: Probe) -> str:
    paired = counted(sum(not entry.is_scan for entry in search.rounds), "paired round")
    runs, launches = counted(len(probe.runs), "run"), counted(probe.launched, "launch")
    return f"Spent: {paired} in {runs}, {launches}, {duration(probe.spent)} of launches."


def _suggest_next_search(request: BisectRequest, search: Search, package: str, probe: Probe) -> Iterator[Block]:
    """Yield advice for a better answer."""
    if search.found is None or not (search.ends or search.work):
        return
    if search.ends and (search.ends.is_same or search.is_reversed):
        yield Text("Pass different versions or commits to --good and --bad.", where=REPORT)
    elif search.ended not in (SearchEnd.CONFIRMED, SearchEnd.FOUND):
        yield Text("To resume the search:", where=REPORT)
        yield Code(make_resume_command(request, probe.folder), where=REPORT)
    elif skipped_count := sum(search.found[0] < number < search.found[1] for number in search.unknown):
        sentence = f"{counted(skipped_count, 'version')} between them cannot be measured on this machine."
        yield Text(f"{sentence} So no search can narrow the range further.", where=REPORT)
    elif not package:
        good, bad = (search.text(number) for number in (reversed(search.found) if search.is_fix else search.found))
        yield Text("To search the patch releases and release candidates between them:", where=REPORT)
        yield Code(_make_search_command(request, "tensorflow", good, bad), where=REPORT)
    elif not request.repository:
        yield Text(
            "The two versions are adjacent in the index, so only the commits between them are left to search.",
            where=REPORT,
        )
    if search.ended is SearchEnd.CONFIRMED:
        yield from _suggest_exchanges(request, search, package, probe)


def _suggest_exchanges(request: BisectRequest, search: Search, package: str, probe: Probe) -> Iterator[Block]:
    """Yield the commands that give the older candidate the newer version of a package, and search its versions."""
    older, newer = _get_pair(search) or ("", "")
    for name in _EXCHANGED_PACKAGES if older else ():
        old_version, new_version = (probe.pins(text).get(name, "") for text in (older, newer))
        if not (old_version and new_version) or old_version == new_version or name == package:
            continue
        exchanged = find_moving(older, name, probe.pins(older)).text(new_version)
        good, bad = (exchanged, older) if search.is_fix else (older, exchanged)
        yield Text(f"To check whether only {name} makes the difference, and to search its versions:", where=REPORT)
        yield Code(_make_search_command(request, name, good, bad), where=REPORT)


def _make_search_command(request: BisectRequest, package: str, good: str, bad: str) -> str:
    """Return the command that searches the versions of a package for the same cell and quantity."""
    words = ["harness", "bisect", "--good", good, "--bad", bad, "--package", package]
    axes = [word for axis, value in request.axes.items() for word in ("-a", f"{axis}={value}")]
    axes += ["--by", By.WORK.value] if request.by == By.WORK else []
    if request.script:
        return shlex.join([*words, *axes, *request.script])  # the arguments of the script must be the last ones
    # an issue can have claims about several cells
    issue = [request.issue] if request.issue else []
    return shlex.join([*words, *issue, "-s", request.scenario, *axes])


def _make_table(search: Search) -> Iterator[Block]:
    """Yield the table of the candidates that were measured, skipped, or may have the step."""
    # if the ends don't differ, no pair has a change
    belief = search.posterior if search.ends and search.ends.is_step else None
    pairs = zip(belief.pairs, belief.shares.tolist(), strict=True) if belief else ()
    shares = {last: part for (_, last), part in pairs}
    first_value = search.scanned.get(search.low)

    def format_compared(number: int) -> str:
        measurement = search.measured(number)
        if number == search.low or measurement is None:
            return "first end" if number == search.low and not search.work else ""
        return f"{search.format_value(measurement[0])} ({counted(measurement[1], 'round')})"

    def format_scanned(number: int) -> str:
        value = search.scanned.get(number)
        return "" if value is None or first_value is None else search.format_value(value - first_value)

    def format_probability(number: int) -> str:
        percent = f"{format_plain(round(100.0 * shares[number], 1))} %" if number in shares else ""
        return search.unknown.get(number) or percent

    calls = {number: format_count(work.calls) for number, work in search.work.items()}
    columns: list[Column[int]] = [
        Column("candidate", search.text, is_label=True),
        Column("date", lambda number: search.candidates[number].date),
        Column("message", lambda number: search.candidates[number].title, is_optional=True),
        Column("compared with the first end", format_compared, is_optional=True),
        Column("scan (one round)", format_scanned, is_optional=True),
        Column("calls per step", lambda number: calls.get(number, ""), is_optional=True),
        Column("probability of the change before it", format_probability, is_optional=True),
    ]
    numbers = range(len(search.candidates))
    rows = [
        number
        for number in numbers
        if format_compared(number)
        or format_scanned(number)
        or number in search.work
        or number in search.unknown
        or shares.get(number, 0.0) >= 0.005
    ]
    yield tabulate("Candidates", columns, rows[:_ROWS], where=FILES, noun="candidate")
    if omitted_count := len(numbers) - len(rows[:_ROWS]):
        yield Text(f"{omitted_count} more candidates are not listed.", where=FILES)

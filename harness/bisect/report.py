"""What a search found, in sentences and as report.md."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.bisect.candidates import NIGHTLIES
from harness.bisect.request import BisectRequest
from harness.bisect.search import Search, SearchEnd, told
from harness.model.defaults import LEVEL
from harness.model.environment import TENSORFLOW
from harness.model.scenario import STEP
from harness.report.escape import markdown, plain
from harness.report.format import level

if TYPE_CHECKING:
    from harness.bisect.probe import Probing

#: Where a package's commits are, and what its tags have before the version.
_REPOSITORIES = {
    "keras": ("keras-team/keras", "v"),
    "keras-nightly": ("keras-team/keras", ""),
    "numpy": ("numpy/numpy", "v"),
    **dict.fromkeys(TENSORFLOW, ("tensorflow/tensorflow", "v")),
}

#: A line has no more characters than these: reasons are others' words.
_LONGEST = 2000

_DESCRIBED = re.compile(r"-g([0-9a-f]{7,40})(?:-dirty)?$")


@dataclass(frozen=True, slots=True)
class BisectReport:
    """What is said of a search: `lines` on stdout, the answer first, and the whole of it as Markdown."""

    lines: Sequence[str]
    markdown: str


def report(request: BisectRequest, search: Search, probing: "Probing", package: str) -> BisectReport:
    """What a search found until now."""
    lines = _answer(request, search)
    builds = probing.builds()
    lines += _commits(search, package, builds)
    lines += _others(search)
    paired = _count(sum(not each.is_scan for each in search.rounds), "paired round")
    lines += [
        f"Spent: {paired} in {_count(len(probing.runs), 'run')}, {_count(probing.launched, 'launch', 'launches')}, "
        f"{_minutes(probing.spent)} of launches."
    ]
    lines += _further(request, search, package, probing)
    return BisectReport([plain(line, _LONGEST) for line in lines], _markdown(request, search, probing, package, lines))


def _answer(request: BisectRequest, search: Search) -> list[str]:
    what = f"{request.issue}: " if request.issue else ""
    found, known = search.found, search.posterior
    if search.ends is None or found is None or known is None:
        return [f"{what}the search ended before both ends were verified."]
    if not search.ends.is_step:
        return [f"{what}the ends {search.ends.relation}: {search.ends.words}."]
    if search.is_reversed:
        return [f"{what}the ends are the wrong way round: {search.ends.words}."]
    first, last = map(search.text, found)
    when = _dates(search, found)
    share = f"{100.0 * known.share:.1f} % of the posterior"
    if search.ended is SearchEnd.CONFIRMED and search.pair:
        return [
            f"{what}{_changes(request, search)} between {first} and {last}{when}: {search.pair.words}.",
            f"Narrowed to {first} .. {last}, which has {share}, and was confirmed side by side.",
        ]
    if search.ended is SearchEnd.FOUND and search.pair:
        return [
            f"{what}{_changes(request, search)} most likely between {first} and {last}{when}, which has {share}. Side "
            f"by side they do not confirm it: {search.pair.words}.",
            "There may be several changes, or one that is too small to be shown between two neighbours.",
        ]
    low, high = _likely(search)
    left = f"Narrowed to {search.text(low)} .. {search.text(high)}, which has {level(LEVEL)} of the posterior"
    likeliest = f"{first} to {last} has {100.0 * known.share:.0f} %" if (low, high) != found else "not confirmed"
    why = "The budget ended the search." if search.ended is SearchEnd.BUDGET else "The search was interrupted."
    return [f"{what}{left}; {likeliest}. {why}"]


def _changes(request: BisectRequest, search: Search) -> str:
    """What happens at the step, in words: whether less or more of the quantity is worse, the ends say."""
    verb = "fell" if search.is_fix else "rose"
    return f"{'the time per step' if request.of == STEP else f'the {request.of}'} {verb}"


def _likely(search: Search) -> tuple[int, int]:
    """The shortest range of candidates that has LEVEL of the posterior."""
    shares = list(search.shares().items())
    best = (search.low, search.high)
    for i in range(len(shares)):
        total = 0.0
        for j in range(i, len(shares)):
            total += shares[j][1]
            if total >= LEVEL:
                pair = (shares[i][0][0], shares[j][0][1])
                best = min(best, pair, key=lambda each: each[1] - each[0])
                break
    return best


def _dates(search: Search, pair: tuple[int, int]) -> str:
    first, last = (search.candidates[at].date for at in pair)
    return f" ({first} to {last})" if first and last else ""


def _commits(search: Search, package: str, builds: Mapping[str, str]) -> list[str]:
    """What the two builds are of, and where the commits between them are."""
    found = search.found
    if found is None or search.ends is None:
        return []
    first, last = (search.candidates[at] for at in found)
    repository, tag = _REPOSITORIES.get(package, _REPOSITORIES["tensorflow"])
    link = f"https://github.com/{repository}"
    if package and package not in TENSORFLOW:
        if package == "keras-nightly":
            if not (first.date and last.date):
                return []
            return [f"Commits between: {link}/commits/master?since={first.date}&until={last.date}"]
        if package in _REPOSITORIES:
            return [f"Commits between: {link}/compare/{tag}{first.version}...{tag}{last.version}"]
        return []
    lines = []
    told = [builds.get(each.text, "") for each in (first, last)]
    if any(told):
        lines.append(f"GIT_VERSION: {told[0] or 'unknown'} and {told[1] or 'unknown'}")
    hashes = [match[1] if (match := _DESCRIBED.search(each)) else "" for each in told]
    ends = hashes if all(hashes) else [] if package in NIGHTLIES else [f"v{first.version}", f"v{last.version}"]
    return [*lines, *([f"Commits between: {link}/compare/{ends[0]}...{ends[1]}"] if ends else [])]


def _others(search: Search) -> list[str]:
    """Other changes of the scan, and what was skipped."""
    found, lines = search.found, []
    others = [change for change in search.changes if change.pair != found]
    if others:
        lines.append(
            f"Not the only change, by one round of each: {'; '.join(told(search, change) for change in others)}."
        )
    if search.pair and search.pair.pythons:
        lines.append(
            f"Their Pythons differ: {' and '.join(search.pair.pythons)}, which is a change of speed by itself."
        )
    skipped = [f"{search.text(at)} ({why})" for at, why in sorted(search.unknown.items())]
    if skipped:
        shown = "; ".join(skipped[:5]) + (f"; and {len(skipped) - 5} more" if len(skipped) > 5 else "")
        lines.append(f"Skipped: {shown}.")
    return lines


def _further(request: BisectRequest, search: Search, package: str, probing: "Probing") -> list[str]:
    """What would narrow the place further, as a command."""
    found = search.found
    if found is None or search.ends is None:
        return []
    if search.ends.is_same or search.is_reversed:
        return ["Name other ends with --good and --bad."]
    if search.ended not in (SearchEnd.CONFIRMED, SearchEnd.FOUND):
        return [to_resume(request, probing.folder)]
    first, last = map(search.text, found)
    between = [at for at in search.unknown if found[0] < at < found[1]]
    if between:
        return [
            f"Between them lie versions that cannot be measured here ({len(between)}): no search narrows this further."
        ]
    if package:
        return ["These are neighbours in the index: the commits between them are what is left."]
    ends = (last, first) if search.is_fix else (first, last)
    words = ["harness", "bisect", *_cell(request), "--good", ends[0], "--bad", ends[1], "--package", "tensorflow"]
    return [f"To narrow further, over patch releases and release candidates: {shlex.join(words)}"]


def to_resume(request: BisectRequest, folder: Path) -> str:
    """How to resume a search with twice its budget, as a command."""
    return f"To go on: harness bisect --resume {shlex.quote(str(folder))} --budget {request.budget / 30.0:g}m"


def _cell(request: BisectRequest) -> list[str]:
    if request.issue:
        return [request.issue]
    axes = [word for axis, value in request.axes.items() for word in ("-a", f"{axis}={value}")]
    return ["-s", request.scenario, *axes]


def _markdown(request: BisectRequest, search: Search, probing: "Probing", package: str, lines: Sequence[str]) -> str:
    axes = ", ".join(f"{axis}={value}" for axis, value in request.axes.items())
    title = f"Since when: {request.issue or request.scenario}"
    # our own addresses stay links
    safe = [plain(line) if "https://" in line else markdown(line, _LONGEST) for line in lines]
    parts = [f"# {markdown(title)}", "", *(f"{line}  " for line in safe[:2]), ""]
    parts += [f"- {line}" for line in safe[2:]]
    cell = f"`{request.scenario}`" + (f" with {markdown(axes)}" if axes else "")
    moves = f"versions of {markdown(package)}, all else held" if package else "releases"
    parts += ["", f"Measured: {_quantity(request.of)} of {cell}, in {moves}."]
    if search.ends:
        parts += [f"The ends, verified before the search: {markdown(search.ends.words, _LONGEST)}."]
    parts += ["", "## Candidates", "", *_table(search), "", "## Runs", ""]
    parts += [f"- [{run}]({run}/report.md)" for run in dict.fromkeys(probing.runs)]
    if request.command:
        parts += ["", f"Made by: `{plain(shlex.join(request.command))}`"]
    return "\n".join(parts) + "\n"


#: A report shows no more candidates than these: those that were measured, and their neighbours.
_ROWS = 60


def _table(search: Search) -> list[str]:
    shares = {last: share for (_, last), share in search.shares().items()}
    rows = [
        "| candidate | date | beside the first end | scan, one round | step right before it |",
        "| --- | --- | --- | --- | --- |",
    ]
    first = search.scanned.get(search.low)
    shown = []
    for at, each in enumerate(search.candidates):
        measured, scanned = search.measured(at), search.scanned.get(at)
        cells = [
            "" if measured is None else f"{search.shown(measured[0])} ({_count(measured[1], 'round')})",
            "" if scanned is None or first is None else search.shown(scanned - first),
            search.unknown.get(at, "") or _percent(shares.get(at)),
        ]
        if at == search.low:
            cells[0] = "the first end"
        if any(cells) and cells != ["", "", "0 %"]:
            shown.append(f"| {markdown(each.text)} | {each.date} | {cells[0]} | {cells[1]} | {markdown(cells[2])} |")
    rows += shown[:_ROWS]
    left = len(search.candidates) - len(shown[:_ROWS])
    return [*rows, *(["", f"{left} more were not measured, or lie where the step is not."] if left else [])]


def _quantity(of: str) -> str:
    return "seconds per step" if of == STEP else f"the {of}"


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return f"{100.0 * share:.0f} %" if share < 0.995 or share == 1.0 else f"{100.0 * share:.1f} %"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100.0 else f"{seconds / 60.0:.1f} min"

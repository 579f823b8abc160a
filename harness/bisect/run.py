"""Runs a search, from its request to its report."""

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import session
from harness.bisect import report
from harness.bisect.candidates import (
    Candidate,
    find_moved_package,
    find_moving,
    find_versions_between,
    list_commits,
    list_releases,
)
from harness.bisect.probe import Probe
from harness.bisect.request import BisectRequest, By
from harness.bisect.search import EqualEndpointsError, Search, SearchEnd, narrow, narrow_by_work, scan
from harness.environments.adhoc import add_requested
from harness.environments.catalog import load_environments
from harness.environments.requested import parse_requested
from harness.files import write_atomically
from harness.model.environment import TENSORFLOW
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.scenario import GROWTH
from harness.plan.claims import find_newest
from harness.plan.selection import resolve
from harness.project import Project
from harness.report import markdown
from harness.report.blocks import Section

#: The advice if the bad release is the oldest release that can be measured.
_FIND_FIX = "To find the release with the fix, pass --find-fix."


@dataclass(frozen=True, slots=True)
class BisectResult:
    """A search that has ended, and the sections of its report.

    `commits` contains the commits of the two candidates as text, and the address of the commits between them, if known.
    """

    search: Search
    sections: Sequence[Section]
    commits: Sequence[str] = ()

    @property
    def is_confirmed(self) -> bool:
        """Return whether the search ended with one pair of candidates that was confirmed side by side."""
        return self.search.ended is SearchEnd.CONFIRMED


def bisect(request: BisectRequest, folder: Path, listener: session.Listener, *, wait: bool = False) -> BisectResult:
    """Continue the search in a folder after its stored steps. Write report.md there, even if the search is interrupted.

    Raises EqualEndpointsError and ReversedEndpointsError if a search between the ends makes no sense, and UsageError
    for an invalid request.
    """
    # environments that differ in one package share their other files
    os.environ.setdefault("UV_LINK_MODE", "hardlink")
    try:
        probe = Probe(folder, request, listener, wait=wait)
        probe.remove_leftovers()
        package = _find_package(request)
        search = _make_package_search(request, package, probe) if package else _make_release_search(request)
        try:
            if request.by == By.WORK:
                narrow_by_work(search, request.budget, probe)
            else:
                if not package and len(search.candidates) > 2:
                    scan(search, probe)
                    _move_ends(search, request)
                narrow(search, request.budget, probe)
        except EqualEndpointsError as error:
            advice = error.advice or f"To resume: {report.make_resume_command(request, folder)}"
            raise EqualEndpointsError(error.message, advice) from None
        finally:
            sections = report.build_sections(request, search, probe, package)
            if probe.runs:
                write_atomically(folder / "report.md", markdown.render_full(sections))
        commits = [text for text in report.find_commits(search, package, probe.commits()) if text]
    except BaseException:
        if not any(folder.glob("*/run.json")):  # nothing was measured
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return BisectResult(search, sections, commits)


def _find_package(request: BisectRequest) -> str:
    """Return the package whose versions are searched, or an empty string if TensorFlow releases are searched.

    Raises UsageError if an end is missing.
    """
    good, bad = request.good, request.bad
    if request.repository and not request.package:
        raise UsageError(
            "--repository needs --package, the name of the package in the repository.", "Example: --package keras"
        )
    if request.environment and not request.repository:
        raise UsageError(
            "-e can only be used with --repository. It specifies the environment in which commits of a package are "
            "searched.",
            "To search releases or wheels, omit -e and pass only --good and --bad.",
        )
    if request.package and not (good and bad):
        raise UsageError(
            f"--package {request.package} needs --good and --bad, but --{'bad' if good else 'good'} is missing.",
            "Pass both options.",
        )
    return request.package or (find_moved_package(good, bad) if good and bad else "")


def _make_release_search(request: BisectRequest) -> Search:
    environments = load_environments(Project.find())
    names = [environment.name for environment in environments.values() if environment.is_stable_release]
    first, last = (names[-1], names[0]) if request.fix else (names[0], names[-1])
    environments, ends = add_requested(environments, map(parse_requested, [request.good or first, request.bad or last]))
    resolve(ends, list(environments), "environment")
    versions = {environments[name].tensorflow for name in ends}
    if len({*ends}) == 2 and len(versions) == 1:
        options = " ".join(f"-e {shlex.quote(environments[name].asked or name)}" for name in ends)
        raise UsageError(
            f"{ends[0]} and {ends[1]} have the same TensorFlow, {versions.pop()}, so there are no releases to search.",
            f"Compare them: harness matrix -s {request.scenario} {options}",
        )
    candidates = list_releases(environments, *ends, *([request.through] if request.through else []))
    texts = [candidate.text for candidate in candidates]
    good, bad = (texts.index(environments[name].asked or name) for name in ends)
    if good == bad and request.good and request.bad:
        raise UsageError(f"--good and --bad are both {texts[good]}.", "Pass two different environments.")
    if good == bad:
        side = "before" if texts[good] == names[0] else "after"
        advice = f"Pass another environment with {'--bad' if request.good else '--good'}."
        raise UsageError(
            f"The catalog has no release {side} {texts[good]}, so there are no releases to search.",
            advice if request.good or request.fix else f"{advice} {_FIND_FIX}",
        )
    return Search(candidates, min(good, bad), max(good, bad), is_fix=bad < good, is_ratio=request.of != GROWTH)


def _make_package_search(request: BisectRequest, package: str, probe: Probe) -> Search:
    """Return the search of a package's versions or commits. A resumed search has the same candidates as before."""
    key = ("candidates", package)
    step = probe.log.next(key)
    if step is None:
        candidates, is_fix = _list_commits(request) if request.repository else _list_versions(request, package, probe)
        step = {"candidates": [asdict(candidate) for candidate in candidates], "is_fix": is_fix}
        probe.log.append(key, **step)
    candidates = [Candidate(**row) for row in step["candidates"]]
    noun = "commits" if request.repository else "versions"
    probe.say(f"{package}: {len(candidates)} {noun} from {candidates[0].version} to {candidates[-1].version}.")
    return Search(candidates, 0, len(candidates) - 1, is_fix=step["is_fix"], is_ratio=request.of != GROWTH)


def _list_versions(request: BisectRequest, package: str, probe: Probe) -> tuple[list[Candidate], bool]:
    """Return the versions of a package between the ends, and whether the older version is the bad one."""
    good, bad = request.good, request.bad
    pins = {text: probe.pins(text) for text in (good, bad)}
    moving = find_moving(bad, package, pins[bad])
    base_pins = {} if package in TENSORFLOW else {moving.base: probe.pins(moving.base)}
    candidates = find_versions_between(good, bad, package, pins | base_pins, probe.python(bad))
    return candidates, candidates[0].version == moving.version


def _list_commits(request: BisectRequest) -> tuple[list[Candidate], bool]:
    """Return the commits between the ends, and whether the older commit is the bad one."""
    newest = find_newest(load_environments(Project.find()))
    environment, folder = request.environment or newest, Path(request.repository).expanduser()
    if not folder.is_dir():
        raise UsageError(
            f"The folder {request.repository} doesn't exist.", "Pass a clone on this machine with --repository."
        )
    return list_commits(folder, environment, request.package, request.good, request.bad)


def _move_ends(search: Search, request: BisectRequest) -> None:
    """Move each end that the request doesn't specify to the first or last release with a result."""
    numbers = sorted(search.scanned)
    if len(numbers) < 2:
        raise CannotRunHereError("Fewer than two releases have a result, so there are no versions to search.")
    requested_texts = {request.good, request.bad}
    low = search.low if search.text(search.low) in requested_texts else max(numbers[0], search.low)
    high = search.high if search.text(search.high) in requested_texts else min(numbers[-1], search.high)
    if low >= high:
        raise CannotRunHereError(f"No release before {search.text(high)} has a result.", _FIND_FIX)
    search.low, search.high = low, high

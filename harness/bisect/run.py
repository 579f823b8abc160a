"""`harness bisect` from its request to what it found: which cell, which candidates, the search, and its report."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness import session
from harness.bisect import candidates as chosen
from harness.bisect.probe import Probing
from harness.bisect.report import BisectReport, report, to_resume
from harness.bisect.request import BisectRequest
from harness.bisect.search import EndsError, Search, SearchEnd, narrow, scan
from harness.catalog.adhoc import with_asked
from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.catalog.scenarios import find_scenarios
from harness.files import read, write_atomically
from harness.model.environment import TENSORFLOW
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.issues import parse, unknown
from harness.model.scenario import GROWTH, Claim, Scenario
from harness.plan.selection import resolve
from harness.session.running import new_id
from harness.store.signature import is_from_here, sign


@dataclass(frozen=True, slots=True)
class Bisected:
    """A search that has ended, in its folder, with what is told of it."""

    folder: Path
    search: Search
    told: BisectReport

    @property
    def is_narrowed(self) -> bool:
        """Whether it came to one pair, which a verdict confirmed."""
        return self.search.ended is SearchEnd.CONFIRMED


def meant(request: BisectRequest) -> BisectRequest:
    """The request with what its issue's claim says: the scenario, its worse side's axes, the quantity, and the ends.

    Of a claim whose sides are in one environment, what is followed over the releases is the worse side. Raises
    UsageError for an issue without a claim, and for a request that names no cell.
    """
    if not request.issue:
        if not request.scenario:
            raise UsageError(
                "Nothing to search for was named.",
                "Name an issue, or a cell: -s SCENARIO -a AXIS=VALUE (harness repro list has the issues)",
            )
        return request
    issue, found = parse(request.issue), find_scenarios(Project.find()).scenarios
    claims = [(each, claim) for each in found.values() for claim in each.claims]
    matching = [
        (each, claim)
        for each, claim in claims
        if claim.issue == issue and request.scenario in ("", each.name) and _has(each, claim, request.axes)
    ]
    if not matching:
        if any(claim.issue == issue for _, claim in claims):
            raise UsageError(f"No claim of {issue} is about that scenario and these axes.", "Leave -s and -a out.")
        raise unknown(issue, [claim.issue for _, claim in claims])
    # one that says in which release it was better, where there is one
    scenario, claim = max(matching, key=lambda each: _is_of_releases(each[1]))
    worse, better = claim.worse.environment, claim.better.environment if claim.better else ""
    apart = better if better != worse else ""
    newest = [each.name for each in load_environments(Project.find()).values() if not each.gpu_image][-1]
    asked = replace(
        request,
        issue=issue.short,
        scenario=scenario.name,
        axes=scenario.claimed_axes(claim, claim.worse),
        of=claim.of,
    )
    if request.package:
        return replace(asked, good=request.good or apart, bad=request.bad or worse)
    if request.fix:
        return replace(asked, good=request.good or _release(claim.fixed), bad=request.bad or worse)
    return replace(asked, good=request.good or apart, bad=request.bad or worse, through="" if request.bad else newest)


def _release(version: str) -> str:
    """The catalogue's environment of a release, `2.15` or `2.15.1`; empty where it has none."""
    name = f"tf{'.'.join(version.split('.')[:2])}"
    return name if version and name in load_environments(Project.find()) else ""


def _is_of_releases(claim: Claim) -> bool:
    return bool(claim.better and claim.better.environment != claim.worse.environment)


def _has(scenario: Scenario, claim: Claim, axes: Mapping[str, str]) -> bool:
    claimed = scenario.claimed_axes(claim, claim.worse)
    return all(claimed.get(axis) == value for axis, value in axes.items())


def begin(request: BisectRequest) -> Path:
    """Make a search's folder, with the request."""
    folder = request.results / f"bisect-{new_id(datetime.now(UTC))}"
    try:
        document = json.dumps({"schema": 1, **asdict(request)}, indent=2, default=str) + "\n"
        write_atomically(folder / "bisect.json", sign(document.encode()))
    except OSError as error:
        raise CannotRunHereError(
            f"The results folder {folder} cannot be written: {error.strerror}.", "Choose another with --results."
        ) from None
    return folder


def reopened(folder: Path, budget: float | None = None) -> BisectRequest:
    """The request of a search that was begun in a folder, with another budget where one is given. Raises UsageError."""
    path = folder / "bisect.json"
    try:
        data = read(Path(path.name), within=folder)
    except OSError:
        raise UsageError(
            f"{folder} is not a search's folder: it has no bisect.json.", "They lie under results/, as bisect-…"
        ) from None
    if not is_from_here(data):
        raise UsageError(
            f"{folder} was not begun by this user on this machine, or its bisect.json was changed since: going on with "
            "it would run what someone else typed.",
            "Start a new search of your own: harness bisect",
        )
    try:
        stored = json.loads(data)
        for name in ("schema", "signature"):
            stored.pop(name)
        found = BisectRequest(**{**stored, "results": Path(stored["results"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is damaged: {error}.") from None
    return replace(found, budget=budget) if budget else found


def bisect(request: BisectRequest, folder: Path, listener: session.Listener, *, wait: bool = False) -> Bisected:
    """Search, go on with what the folder has, and write report.md there; also where the search was interrupted.

    Raises EndsError and WrongWayError for ends that cannot be searched between, UsageError for what cannot be meant.
    """
    # ten environments that differ in one package share the other files
    os.environ.setdefault("UV_LINK_MODE", "hardlink")
    probing = Probing(folder, request, listener, wait=wait)
    try:
        search, package = _prepared(request, probing, listener)
        try:
            if not package and len(search.candidates) > 2:
                scan(search, probing, listener.say)
                _place_ends(search, request)
            narrow(search, request.budget, probing, listener.say)
        except EndsError as error:
            raise EndsError(error.message, error.advice or to_resume(request, folder)) from None
        finally:
            made = report(request, search, probing, package)
            if probing.runs:
                write_atomically(folder / "report.md", made.markdown)
    except BaseException:
        if not any(folder.glob("*/run.json")):  # nothing was measured
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return Bisected(folder, search, made)


def _prepared(request: BisectRequest, probing: Probing, listener: session.Listener) -> tuple[Search, str]:
    """The candidates in order, with the ends among them, and the package that moves (empty: releases)."""
    good, bad = request.good, request.bad
    package = request.package or (chosen.moved_package(good, bad) if good and bad else "")
    if package:
        if not (good and bad):
            raise UsageError(
                f"--package {package} searches between two ends, and --{'bad' if good else 'good'} is not given.",
                "Name both with --good and --bad.",
            )
        return _of_package(request, package, probing, listener), package
    known = load_environments(Project.find())
    releases = [each.name for each in known.values() if not each.asked and not each.gpu_image]
    newest = releases[-1]
    typed = [good or (newest if request.fix else releases[0]), bad or (releases[0] if request.fix else newest)]
    known, names = with_asked(known, typed)
    resolve(names, list(known), "environment")
    found = chosen.releases(known, *names, *([request.through] if request.through else []))
    texts = [each.text for each in found]
    ends = [texts.index(known[name].asked or name) for name in names]
    if ends[0] == ends[1]:
        raise UsageError(f"Both ends are {texts[ends[0]]}.", "Name two environments with --good and --bad.")
    return Search(found, min(ends), max(ends), is_fix=ends[1] < ends[0], is_ratio=request.of != GROWTH), ""


def _of_package(request: BisectRequest, package: str, probing: Probing, listener: session.Listener) -> Search:
    good, bad = request.good, request.bad
    pins = {text: probing.pins(text) for text in (good, bad)}
    held = pins[bad].get("keras-nightly", "") if package in chosen.NIGHTLIES else ""
    ends = [chosen.moving(text, package, pins[text], held) for text in (good, bad)]
    if package not in TENSORFLOW:  # everything else is the bad end's
        ends[0] = replace(ends[0], base=ends[1].base)
    if probing.knows("candidates"):
        found = [chosen.Candidate(**each) for each in probing.kept("candidates", [])]
    else:
        found, told = chosen.versions(ends[0], ends[1], probing.python(bad))
        if told:
            listener.say(told)
        found = _typed_ends(found, request, ends) if package in TENSORFLOW else found
        probing.kept("candidates", [asdict(each) for each in found])
    listener.say(f"{package}: {len(found)} versions from {found[0].version} to {found[-1].version}.")
    is_fix = found[0].version == ends[1].version
    return Search(found, 0, len(found) - 1, is_fix=is_fix, is_ratio=request.of != GROWTH)


def _typed_ends(
    found: Sequence[chosen.Candidate], request: BisectRequest, ends: Sequence[chosen.Moving]
) -> list[chosen.Candidate]:
    """The candidates with the ends as they were typed, if a release of the catalogue stands there: it has an image."""
    typed = {end.version: text for end, text in zip(ends, (request.good, request.bad), strict=True)}
    return [
        replace(each, text=typed[each.version]) if each.version in typed and "==" not in typed[each.version] else each
        for each in found
    ]


def _place_ends(search: Search, request: BisectRequest) -> None:
    """Where an end was not typed, the outermost release that gave a number is one. Raises CannotRunHereError."""
    known = sorted(search.scanned)
    if len(known) < 2:
        raise CannotRunHereError("Fewer than two releases gave a number, so there is nothing to search between.")
    typed = {text for text in (request.good, request.bad) if text}
    if search.text(search.low) not in typed:
        search.low = max(known[0], search.low)
    if search.text(search.high) not in typed:
        search.high = min(known[-1], search.high)

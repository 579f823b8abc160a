"""`harness history confirm`: measures suspected changes, prints the decisions and stores them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import session
from harness.bisect.candidates import NIGHTLIES, find_moved_package
from harness.bisect.folder import create_folder
from harness.bisect.request import BisectRequest
from harness.bisect.run import bisect
from harness.bisect.search import EqualEndpointsError
from harness.cli.messages import handle_signals, say, tell
from harness.cli.running import ProgressPrinter
from harness.environments.requested import is_line
from harness.history import confirm as confirming
from harness.history.index import History
from harness.history.request import ConfirmRequest
from harness.history.states import NEAR, SeriesFinding, State, find_changes
from harness.machine.identity import load_machine
from harness.model.errors import Exit, HarnessError, UsageError
from harness.model.history import Decision, Series, Summary
from harness.model.launch import Status
from harness.model.texts import counted, escape, joined
from harness.session.request import ProfileRequest

#: The largest number of searches for the wheel of one series that end without a pair of wheels.
_MOST_SEARCHES = 2


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Suspected changes, and the runs before and after each of them.

    A confirmed slowdown of a release line is measured again if the search for its wheel failed, or was interrupted.

    `sides` are the last run with a result before the change, and the first run with a result after it. For a release
    line, both runs are two points further away, because the place of a change is only known to within two points. A
    search between these runs finds the version.
    """

    suspected: Sequence[SeriesFinding]
    sides: Mapping[str, tuple[Summary, Summary]]

    @classmethod
    def of(cls, history: History, found: Sequence[Series], *, has_search: bool = False) -> "Suspicion":
        """Return the suspected changes in some series of a history, with `has_search` also those to search again."""
        decisions = history.decisions()
        suspected = [
            entry
            for entry in find_changes(found, decisions)
            if entry.state is State.SUSPECTED or (has_search and _needs_search(entry, decisions))
        ]
        series = {time_series.key: time_series for time_series in found}
        sides = {}
        for finding in suspected:
            points = series[finding.key].points
            change_index = next(place for place, point in enumerate(points) if point.run == finding.since)
            # skip runs without a result: the software may have changed in one of them
            earlier_points = [point for point in points[:change_index] if point.log_ratio is not None]
            later_points = [point for point in points[change_index:] if point.log_ratio is not None]
            distance = NEAR if is_line(finding.key.environment) else 0
            before, after = earlier_points[-1 - distance :][0], later_points[: 1 + distance][-1]
            summaries = [history.summary(point.run) for point in (before, after)]
            if summaries[0] and summaries[1]:
                sides[_make_place_key(finding)] = summaries[0], summaries[1]
        return cls(suspected, sides)

    def refuse(self) -> None:
        """Raise UsageError with a list of the suspected changes, if there are any."""
        if self.suspected:
            changes = (
                f"{escape(finding.key.cell)} since {finding.since}: {finding.ratio:.3f}×" for finding in self.suspected
            )
            listing = "\n".join(f"  {change}" for change in changes)
            raise UsageError(
                f"{counted(len(self.suspected), 'change')} can be measured again:\n{listing}",
                "Select some with -s (scenario), -e (environment) or -a (axis), or all with --all-suspected.",
            )


def _needs_search(finding: SeriesFinding, decisions: Sequence[Decision]) -> bool:
    """Return whether a confirmed slowdown of a release line has no pair of wheels yet, after few searches."""
    decision = finding.decision
    if decision is None or not decision.confirmed or decision.ratio <= 1.0:
        return False
    if decision.pair or not decision.versions:
        return False
    own_decisions = [entry for entry in decisions if entry.key == finding.key and entry.confirmed]
    runs_with_pair = {entry.run for entry in own_decisions if entry.pair}
    return len({entry.run for entry in own_decisions} - runs_with_pair) < _MOST_SEARCHES


def confirm(suspicion: Suspicion, options: ConfirmRequest, scripts: Sequence[Path], *, wait: bool) -> Exit:
    """Measure suspected changes, print the decisions, and add them to the history.

    Return exit code 5 if a slowdown is confirmed, otherwise 1 if a change couldn't be decided.
    """
    if not suspicion.suspected:
        say("No change is suspected.")
        return Exit.OK
    machine, is_slower, is_undecided = load_machine(), False, False
    for group in confirming.group_findings(suspicion.suspected):
        cell, first_run = escape(group[0].key.cell), group[0].since
        printer = ProgressPrinter()
        try:
            if group[0].key.machine != machine.id:
                raise UsageError(
                    f"The change was measured on another machine ({group[0].key.machine}). This machine is "
                    f"{machine.id}.",
                    "Run this command on that machine.",
                )
            before, after = suspicion.sides[_make_place_key(group[0])]
            question = confirming.plan_confirmation(group, before, after, options, scripts)
            planned = session.plan(question.request)
            say(f"Measuring both sides of {counted(len(group), 'change')} since {first_run}: {cell}")
            with handle_signals(printer.announce_stop):
                ended_run = session.run(planned, printer, command=["harness", *sys.argv[1:]], wait=wait)
        except HarnessError as error:
            say(f"Not confirmed: {cell} since {first_run}. {error}")
            is_undecided = True
            continue
        if ended_run.interrupted:
            return Exit.INTERRUPTED
        decisions = confirming.decide_all(question, ended_run.results, options.margin)
        # before the search, which takes minutes, because a job can be killed during the search
        _store_decisions(decisions)
        worst_decision = max(
            (entry for _, entry in decisions if entry and entry.confirmed), key=lambda entry: entry.ratio, default=None
        )
        is_stopped = False
        if worst_decision and worst_decision.ratio > 1.0 and worst_decision.versions and options.search:
            fields: dict[str, Any] = {}
            try:
                fields |= _locate_change(worst_decision, question, options, printer, wait=wait)
                fields |= _profile_change(replace(worst_decision, **fields), question, options, printer, wait=wait)
            except KeyboardInterrupt:
                is_stopped = True
            decisions = [
                (finding, replace(entry, **fields) if entry and entry.confirmed and entry.ratio > 1.0 else entry)
                for finding, entry in decisions
            ]
            _store_decisions(decisions)
        for finding, decision in decisions:
            if decision is None:
                is_undecided = True
                has_failed = any(launch.status is not Status.OK for launch in ended_run.results.launches)
                failure = "because launches failed. Its report shows the reasons."
                cause = failure if has_failed else "yet. Increase --rounds."
                name = escape(finding.key.cell)
                tell(f"Still suspected: {name}. The run in {ended_run.folder} has no clear verdict {cause}")
                continue
            tell(_describe_decision(finding, decision, ended_run.folder))
            is_slower |= decision.confirmed and decision.ratio > 1.0
        if is_stopped:
            return Exit.INTERRUPTED
    if is_slower:
        return Exit.SLOWER
    return Exit.CELLS_FAILED if is_undecided else Exit.OK


def _store_decisions(decisions: Sequence[tuple[SeriesFinding, Decision | None]]) -> None:
    """Add decisions to the history. A decision with the result of a search replaces the decision without it."""
    with History.open(told=say) as history:
        for _, decision in decisions:
            if decision:
                history.decide(decision)


def _locate_change(
    decision: Decision,
    question: confirming.ConfirmationRun,
    options: ConfirmRequest,
    printer: ProgressPrinter,
    *,
    wait: bool,
) -> dict[str, Any]:
    """Search the wheels between the two versions of a decision. Return the result as fields of the decision."""
    request = BisectRequest(
        scenario=question.request.scenarios[0],
        axes=dict(decision.key.axes),
        budget=options.search,
        backend=options.backend,
        gpu=question.request.gpu,
        cpus=question.request.cpus,
        margin=options.margin,
        results=options.results,
        command=["harness", *sys.argv[1:]],
    )
    result = None
    for good, bad, package in _list_searches(decision, question):
        try:
            request = replace(request, good=good, bad=bad, package=package)
            folder = create_folder(request)
            say(f"Searching the wheels between {good} and {bad}: {folder}")
            with handle_signals(printer.announce_stop):
                result = bisect(request, folder, printer, wait=wait)
            break
        except EqualEndpointsError as error:
            say(f"The change isn't between {good} and {bad}. {error}")
        except HarnessError as error:
            say(f"The search for the wheel with the change failed. {error}")
            return {}
    if result is None:
        return {}
    search = result.search
    belief, commits = search.posterior, result.commits or decision.commits
    if belief is None or search.ends is None:
        return {}
    pair = [search.text(number) for number in belief.likeliest]
    return {
        "pair": pair,
        "command": question.make_command(pair),
        "probability": round(belief.share, 4),
        "commits": list(commits),
    }


def _list_searches(decision: Decision, question: confirming.ConfirmationRun) -> list[tuple[str, str, str]]:
    """Return the ends of the possible searches, with the package: first the two versions, then their keras-nightly.

    A search of nightly TensorFlow wheels keeps the newer keras-nightly. So if keras-nightly became slower, its ends are
    equal.
    """
    good, bad = decision.versions
    searches = [(good, bad, "")]
    if find_moved_package(good, bad) in NIGHTLIES and question.keras_nightlies:
        searches.append((f"{bad}+keras-nightly=={question.keras_nightlies[0]}", bad, "keras-nightly"))
    return searches


def _profile_change(
    decision: Decision,
    question: confirming.ConfirmationRun,
    options: ConfirmRequest,
    printer: ProgressPrinter,
    *,
    wait: bool,
) -> dict[str, Any]:
    """Profile the versions before and after the change. Return the result as fields of the decision."""
    request = ProfileRequest(
        scenarios=question.request.scenarios,
        axes={axis: [value] for axis, value in decision.key.axes},
        environments=list(decision.sides),
        backend=options.backend,
        cpus=question.request.cpus,
        gpu=question.request.gpu,
        results=options.results,
    )
    try:
        say(f"Profiling {joined(list(decision.sides))}")
        with handle_signals(printer.announce_stop):
            ended_run = session.run(session.plan(request), printer, command=request.command(), wait=wait)
        if ended_run.interrupted:
            raise KeyboardInterrupt
        functions = confirming.find_changed_functions(ended_run.folder, ended_run.results, decision.sides)
    except HarnessError as error:
        say(f"The change was confirmed, but its profile could not be measured. {error}")
        return {}
    return {"profile": ended_run.folder.name, "functions": functions} if functions else {}


def _make_place_key(finding: SeriesFinding) -> str:
    return f"{finding.key} {finding.since}"


def _describe_decision(finding: SeriesFinding, decision: Decision, folder: Path) -> str:
    verdict = "Confirmed" if decision.confirmed else "Refuted"
    interval = f"{decision.ratio:.3f}× ({decision.low:.3f} to {decision.high:.3f})"
    suspicion = f"suspected: {finding.ratio:.3f}× since {finding.since}"
    sides = " and ".join(map(escape, decision.sides))
    share = f", {100.0 * decision.probability:.0f} %" if decision.probability is not None else ""
    sides_note = f" The change is between {sides}{share}." if sides and decision.confirmed else ""
    sentence = f"{escape(finding.key.cell)} takes {interval} as long as before"
    return f"{verdict}: {sentence}, measured side by side ({suspicion}).{sides_note} See {folder}"

"""`harness history confirm`: measures suspected changes, prints the decisions and stores them."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import session
from harness.bisect.candidates import find_moved_package
from harness.bisect.folder import create_folder
from harness.bisect.request import BisectRequest
from harness.bisect.run import bisect
from harness.bisect.search import EqualEndpointsError
from harness.cli.messages import handle_signals, say, tell
from harness.cli.running import ProgressPrinter
from harness.history import confirm as confirming
from harness.history.folder import History
from harness.history.request import ConfirmRequest
from harness.history.series import parse_time
from harness.history.states import SeriesFinding, State, find_changes
from harness.machine.identity import load_machine
from harness.model.defaults import MOST_CONFIRM_ROUNDS
from harness.model.environment import NIGHTLIES
from harness.model.errors import Exit, HarnessError, UsageError
from harness.model.history import Decision, Series
from harness.model.launch import Status
from harness.model.run import StopReason
from harness.model.texts import counted, escape, joined
from harness.paired.measurement import PairedMeasurement
from harness.session.request import ProfileRequest, Request
from harness.session.running import Ended


def find_suspected(history: History, series: Sequence[Series], confirmations: int) -> list[SeriesFinding]:
    """Return the changes in some series that are worth a confirmation on this machine.

    These are the suspected ones, those that the screen found, and likely ones with a newer run than the confirmation.
    If twice as many were refuted within a month as planned, the screen found something else that changed.
    """
    decisions, machine = history.decisions(), load_machine().id
    newest_runs = {one_series.key: one_series.points[-1].run for one_series in series}
    start = datetime.now(UTC) - timedelta(days=30)
    refuted = {
        decision.run
        for decision in decisions
        if decision.key.machine == machine and not decision.confirmed and parse_time(decision.when) > start
    }
    is_spent = len(refuted) >= 2 * confirmations

    def is_open(finding: SeriesFinding) -> bool:
        match finding.state:
            case State.SUSPECTED:
                return True
            case State.LIKELY:
                is_newer = finding.decision is not None and finding.decision.run < newest_runs[finding.key]
                return finding.key.machine == machine and is_newer
            case State.WATCH:
                return finding.key.machine == machine and not is_spent
        return False

    findings = find_changes(series, decisions, confirmations)
    if is_spent and any(finding.state is State.WATCH for finding in findings):
        say(
            f"Changes that are only watched aren't measured again: {counted(len(refuted), 'confirmation')} of the last "
            "30 days found no change. To allow more: --confirmations"
        )
    # the clearest slowdown first, because the job may end before all are measured
    return sorted(filter(is_open, findings), key=lambda finding: -finding.low)


def refuse_all(suspected: Sequence[SeriesFinding]) -> None:
    """Raise UsageError with a list of the suspected changes, if there are any."""
    if suspected:
        changes = (f"{escape(finding.key.cell)} since {finding.since}: {finding.ratio:.3f}×" for finding in suspected)
        listing = "\n".join(f"  {change}" for change in changes)
        raise UsageError(
            f"{counted(len(suspected), 'change')} can be measured again:\n{listing}",
            "Select some with -s (scenario), -e (environment) or -a (axis), or all with --all-suspected.",
        )


def confirm(
    history: History,
    suspected: Sequence[SeriesFinding],
    options: ConfirmRequest,
    scripts: Sequence[Path],
    *,
    wait: bool,
) -> Exit:
    """Measure suspected changes, print the decisions, and add them to the history.

    Return exit code 5 if a slowdown is confirmed, otherwise 1 if a change couldn't be decided.
    """
    if not suspected:
        say("No change is suspected.")
        return Exit.OK
    codes = {Exit.OK}
    for group in confirming.group_findings(suspected):
        try:
            confirmation = confirming.plan_group(history, group, options, scripts)
            changes = f"{counted(len(group), 'change')} since {group[0].since}"
            say(f"Measuring both sides of {changes}: {escape(group[0].key.cell)}")
            ended_run, decisions = _decide(confirmation, options, wait=wait)
        except HarnessError as error:
            say(f"Not confirmed: {escape(group[0].key.cell)} since {group[0].since}. {error}")
            codes.add(Exit.CELLS_FAILED)
            continue
        if ended_run.interrupted:
            return Exit.INTERRUPTED
        # before the search, which takes minutes, because a job can be killed during the search
        _store_decisions(decisions)
        decisions, is_stopped = _search_wheels(decisions, confirmation, options, wait=wait)
        codes |= {_print_decision(finding, decision, ended_run) for finding, decision in decisions}
        if is_stopped:
            return Exit.INTERRUPTED
    return next(code for code in (Exit.SLOWER, Exit.CELLS_FAILED, Exit.OK) if code in codes)


def _decide(
    confirmation: confirming.ConfirmationRun, options: ConfirmRequest, *, wait: bool
) -> tuple[Ended, confirming.Decisions]:
    """Measure both sides of a group. While a result is unclear, add rounds, up to MOST_CONFIRM_ROUNDS or the budget."""

    def measure(rounds: int, earlier: Ended | None) -> Ended:
        if earlier is None:
            return _run(confirmation.request, ["harness", *sys.argv[1:]], wait=wait)
        spent = sum(launch.seconds for launch in earlier.results.launches)
        budget = None if options.budget is None else max(0.001, options.budget - spent)
        printer = ProgressPrinter()
        with handle_signals(printer.announce_stop):
            return session.resume(
                earlier.folder, printer, backend=options.backend, wait=wait, rounds=rounds, budget=budget
            )

    def judge(ended_run: Ended) -> tuple[confirming.Decisions, bool]:
        decisions = confirming.decide_all(confirmation, ended_run.results, options.margin)
        is_over = any(stop.reason is not StopReason.ROUNDS for stop in ended_run.results.run.stops.values())
        return decisions, ended_run.interrupted or is_over or all(decision for _, decision in decisions)

    looks = range(options.rounds, max(options.rounds, MOST_CONFIRM_ROUNDS) + 1, options.rounds)
    measurement = PairedMeasurement(looks, measure, judge)
    while measurement.more:
        measurement.look()
    assert measurement.run
    assert measurement.result
    return measurement.run, measurement.result


def _run(request: Request | ProfileRequest, command: Sequence[str], *, wait: bool) -> Ended:
    printer = ProgressPrinter()
    with handle_signals(printer.announce_stop):
        return session.run(session.plan(request), printer, command=command, wait=wait)


def _search_wheels(
    decisions: confirming.Decisions, confirmation: confirming.ConfirmationRun, options: ConfirmRequest, *, wait: bool
) -> tuple[confirming.Decisions, bool]:
    """Search for the wheel of a confirmed slowdown of a release line, and profile both sides.

    A slowdown that only the screen found is searched for after its second confirmation. Store the decisions with the
    result, and return them, and whether the search was interrupted.
    """
    slowdowns = [
        decision
        for finding, decision in decisions
        if decision and decision.confirmed and decision.ratio > 1.0 and finding.state is not State.WATCH
    ]
    worst_decision = max(slowdowns, key=lambda decision: decision.ratio, default=None)
    if not (worst_decision and worst_decision.versions and options.search):
        return decisions, False
    fields, is_stopped = dict[str, Any](), False
    try:
        fields |= _locate_change(worst_decision, confirmation, options, wait=wait)
        fields |= _profile_change(replace(worst_decision, **fields), confirmation, options, wait=wait)
    except KeyboardInterrupt:
        is_stopped = True
    located = [
        (finding, replace(decision, **fields) if decision and decision in slowdowns else decision)
        for finding, decision in decisions
    ]
    _store_decisions(located)
    return located, is_stopped


def _store_decisions(decisions: confirming.Decisions) -> None:
    """Add decisions to the history. A decision with the result of a search replaces the decision without it."""
    history = History.open(say)
    for _, decision in decisions:
        if decision:
            history.decide(decision)


def _locate_change(
    decision: Decision, confirmation: confirming.ConfirmationRun, options: ConfirmRequest, *, wait: bool
) -> dict[str, Any]:
    """Search the wheels between the two versions of a decision. Return the result as fields of the decision."""
    request = BisectRequest(
        scenario=confirmation.request.scenarios[0],
        axes=dict(decision.key.axes),
        budget=options.search,
        backend=options.backend,
        gpu=confirmation.request.gpu,
        cpus=confirmation.request.cpus,
        margin=options.margin,
        results=options.results,
        command=["harness", *sys.argv[1:]],
    )
    result = None
    for good, bad, package in _list_searches(decision, confirmation):
        try:
            request = replace(request, good=good, bad=bad, package=package)
            folder = create_folder(request)
            say(f"Searching the wheels between {good} and {bad}: {folder}")
            printer = ProgressPrinter()
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
        "command": confirmation.make_command(pair),
        "probability": round(belief.share, 4),
        "commits": list(commits),
    }


def _list_searches(decision: Decision, confirmation: confirming.ConfirmationRun) -> list[tuple[str, str, str]]:
    """Return the ends of the possible searches, with the package: first the two versions, then their keras-nightly.

    A search of nightly TensorFlow wheels keeps the newer keras-nightly. So if keras-nightly became slower, its ends are
    equal.
    """
    good, bad = decision.versions
    searches = [(good, bad, "")]
    if find_moved_package(good, bad) in NIGHTLIES and confirmation.keras_nightlies:
        searches.append((f"{bad}+keras-nightly=={confirmation.keras_nightlies[0]}", bad, "keras-nightly"))
    return searches


def _profile_change(
    decision: Decision, confirmation: confirming.ConfirmationRun, options: ConfirmRequest, *, wait: bool
) -> dict[str, Any]:
    """Profile the versions before and after the change. Return the result as fields of the decision."""
    request = ProfileRequest(
        scenarios=confirmation.request.scenarios,
        axes={axis: [value] for axis, value in decision.key.axes},
        environments=list(decision.sides),
        backend=options.backend,
        cpus=confirmation.request.cpus,
        gpu=confirmation.request.gpu,
        results=options.results,
    )
    try:
        say(f"Profiling {joined(list(decision.sides))}")
        ended_run = _run(request, request.command(), wait=wait)
        if ended_run.interrupted:
            raise KeyboardInterrupt
        functions = confirming.find_changed_functions(ended_run.folder, ended_run.results, decision.sides)
    except HarnessError as error:
        say(f"The change was confirmed, but its profile could not be measured. {error}")
        return {}
    return {"profile": ended_run.folder.name, "functions": functions} if functions else {}


def _print_decision(finding: SeriesFinding, decision: Decision | None, ended_run: Ended) -> Exit:
    """Print the decision on a change, and return its exit code."""
    name, folder = escape(finding.key.cell), ended_run.folder
    if decision is None:
        has_failed = any(launch.status is not Status.OK for launch in ended_run.results.launches)
        cause = "because launches failed. Its report shows the reasons." if has_failed else "yet. Increase --rounds."
        tell(f"Still suspected: {name}. The run in {folder} has no clear verdict {cause}")
        return Exit.CELLS_FAILED
    verdict = "Refuted"
    if decision.confirmed:
        verdict = "Likely, until a second run confirms it" if finding.state is State.WATCH else "Confirmed"
    interval = f"{decision.ratio:.3f}× ({decision.low:.3f} to {decision.high:.3f})"
    suspicion = f"suspected: {finding.ratio:.3f}× since {finding.since}"
    sides = " and ".join(map(escape, decision.sides))
    share = f", {100.0 * decision.probability:.0f} %" if decision.probability is not None else ""
    sides_note = f" The change is between {sides}{share}." if sides and decision.confirmed else ""
    tell(
        f"{verdict}: {name} takes {interval} as long as before, measured side by side ({suspicion}).{sides_note} "
        f"See {folder}"
    )
    return Exit.SLOWER if decision.confirmed and decision.ratio > 1.0 else Exit.OK

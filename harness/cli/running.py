"""Output and exit codes of commands that measure: `harness matrix`, `run`, `repro` and `profile`."""

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import session
from harness.backends import registry
from harness.cli import display, documents, report
from harness.cli.dryrun import describe_shard, shorten_plan
from harness.cli.messages import choose_gate_exit, confirm_on_terminal, handle_signals, say, say_problems, say_refused
from harness.cli.options import FailOn, FailOnClaim
from harness.model.backend import Progress
from harness.model.errors import Exit, Problem, UnavailableError, UsageError
from harness.model.run import Run
from harness.model.scenario import SIDE, Cell
from harness.model.texts import counted, escape_json
from harness.runner.executor import WalkListener

if TYPE_CHECKING:
    from harness.report.judged import JudgedPatch

#: The maximum number of scenario errors that are printed. The report has the others.
MOST_ERRORS = 3


def run(
    request: session.Request | session.ProfileRequest,
    *,
    wait: bool = False,
    json: bool = False,
    fail_on: FailOn | None = None,
    exit_verdict: bool = False,
    judge: bool = False,
    by_history: bool = False,
) -> Exit:
    """Measure a plan in the folder of a new run, and return the exit code.

    With `json`, and `judge` or `exit_verdict`, the last document is the verdict (report/judged.py). If
    `by_history`, groups have only as many rounds as the history of this machine needs.
    """
    planned = _plan(request, wait=wait)
    if by_history:
        planned = shorten_plan(planned)
    say_refused(planned.refused)
    groups = planned.plan.groups
    if exit_verdict and groups and all(len({_find_side(cell) for cell in group.cells}) < 2 for group in groups):
        raise UsageError("--exit-verdict needs two environments to compare.", "Add another one with -e.")
    shard = planned.plan.shard
    if shard:
        say(describe_shard(shard, len(planned.plan.groups)))
        if not planned.plan.groups:
            return Exit.OK
    printer = ProgressPrinter()
    with handle_signals(printer.announce_stop):
        ended, missing_shards = _measure_plan(planned, printer, wait=wait)
        code = show(ended, json=json, fail_on=fail_on, judge=judge, exit_verdict=exit_verdict)
        _record(ended)
    return _report_missing_shards(missing_shards, code)


def _find_side(cell: Cell) -> tuple[str, str | None]:
    return cell.environment, dict(cell.axes).get(SIDE)


def _record(finished_run: session.Ended) -> None:
    """Add a finished run to the history of the project, unless the project or the user switched it off.

    A history keeps the first results of a run. So parts of a run, such as a shard, aren't added.
    """
    results, run = finished_run.results, finished_run.results.run
    is_part = run.unfinished or run.absent or run.plan.shard
    if os.environ.get("HARNESS_RECORD") != "1" or is_part or not session.has_numbers(results):
        return
    from harness.history.folder import History  # noqa: PLC0415 - only projects need it
    from harness.history.summary import summarize  # noqa: PLC0415

    history = History.open(say)
    if history.add(summarize(results)):
        say(f"The history in {history.path} has this run.")


def _read_unavailable(request: session.Request | session.ProfileRequest) -> Mapping[str, UnavailableError]:
    """Return the environments that a run in slots can't prepare, with errors, if the request is one of its shards."""
    if not isinstance(request, session.Request) or not (request.shard and request.slots):
        return {}
    from harness.fleet import dispatch  # noqa: PLC0415 - only shards need it

    return dispatch.read_unavailable(request.results)


def _plan(request: session.Request | session.ProfileRequest, *, wait: bool) -> session.Planned:
    """Plan a run. If it has other people's code and no containers, ask on a terminal whether the code may run."""
    lacking = _read_unavailable(request)
    try:
        planned = session.plan(request, lacking, say=say, wait=wait)
        if planned.untrusted and not registry.is_contained(request.backend):
            raise registry.UntrustedError(request.backend, planned.untrusted)
    except registry.UntrustedError as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        say(error.message)
        if not confirm_on_terminal("Run this code anyway?"):
            raise
        return session.plan(replace(request, trust=True), lacking, say=say, wait=wait)
    return planned


def _report_missing_shards(sentences: Sequence[str], code: Exit) -> Exit:
    """Print which shards of a run are missing, and return the exit code."""
    for sentence in sentences:
        say(sentence)
    return Exit.CELLS_FAILED if sentences and code is not Exit.INTERRUPTED else code


def _measure_plan(
    planned: session.Planned, printer: "ProgressPrinter", *, wait: bool
) -> tuple[session.Ended, Sequence[str]]:
    """Measure a plan on the machine, in a slot or in shards. Return the run, and sentences about missing shards."""
    command, request = ["harness", *sys.argv[1:]], planned.request
    if not (isinstance(request, session.Request) and (request.slots or request.on)):
        return session.run(planned, printer, command=command, wait=wait), ()
    from harness.fleet import dispatch  # noqa: PLC0415 - only shards need it

    if dispatch.uses_several_places(request):
        printer.in_shards = True
        return dispatch.run(planned, printer, command=command, wait=wait)
    slots = dispatch.find_slots(planned)
    # a single slot is the whole machine
    return session.run(planned, printer, command=command, wait=wait, slots=slots if len(slots) > 1 else ()), ()


def repro(request: session.Request, *, wait: bool, json: bool, fail_on: FailOnClaim | None) -> Exit:
    """Measure the claims of issues in a new run, and return the exit code."""
    from harness.upstream import repro as upstream  # noqa: PLC0415 - only this command needs it

    planned = _plan(request, wait=wait)
    say_refused(planned.refused)
    printer = ProgressPrinter()
    with handle_signals(printer.announce_stop):
        ended, missing_shards = _measure_plan(planned, printer, wait=wait)
        code = _report_missing_shards(missing_shards, show(ended, json=json, fail_on=None, only=("answer", "claims")))
        unfinished_claims = upstream.find_unfinished(ended.results)
        if unfinished_claims:
            say(f"These claims have no outcome: {', '.join(unfinished_claims)}. The report shows the reasons.")
        if bundle_path := upstream.write_bundle(ended.folder, ended.results):
            say(f"The text for the issue is in {bundle_path}")
        if fail_on and code is Exit.OK:
            return choose_gate_exit(upstream.gate(ended.results, fail_on), "No claim has an outcome")
        return code


def resume(
    folder: Path,
    request: session.Request,
    *,
    unsettled: bool,
    wait: bool,
    json: bool,
    fail_on: FailOn | None,
    exit_verdict: bool = False,
) -> Exit:
    """Resume the run in a folder, and return the exit code. The request can set the slots, rounds and budget."""
    printer = ProgressPrinter()
    missing_shards: Sequence[str] = ()
    with handle_signals(printer.announce_stop):
        if (folder / "fleet.json").exists():
            from harness.fleet import dispatch  # noqa: PLC0415 - as in `_measure_plan`

            printer.in_shards = True
            ended, missing_shards = dispatch.resume(folder, request, printer, unsettled=unsettled, wait=wait)
        else:
            rounds, budget = request.rounds, request.budget
            ended = session.resume(
                folder, printer, backend=request.backend, wait=wait, rounds=rounds, budget=budget, unsettled=unsettled
            )
        judge = any(word.partition("=")[0] == "--base" for word in ended.results.run.command)
        code = show(ended, json=json, fail_on=fail_on, judge=judge, exit_verdict=exit_verdict)
        _record(ended)
    return _report_missing_shards(missing_shards, code)


def show(
    ended: session.Ended,
    *,
    json: bool,
    fail_on: FailOn | None,
    judge: bool = False,
    exit_verdict: bool = False,
    only: Collection[str] = (),
) -> Exit:
    """Print the results of a run, and return the exit code. With `json`, `judge` adds the verdict."""
    if json:
        sys.stdout.write(escape_json((ended.folder / "launches.jsonl").read_text(encoding="utf-8")))
    is_complete = not (ended.interrupted or ended.broken_off)
    report.show(ended.written, ended.results, tables=not json, only=only, end=is_complete)
    _print_raised_errors(ended)
    if is_complete:
        verdict = None
        if judge or exit_verdict:
            from harness.report import judged  # noqa: PLC0415 - only these options need it

            verdict = judged.judge(ended.results)
            sys.stdout.write(judged.render(verdict) if json else "")
        return choose_exit_code(ended, fail_on, verdict if exit_verdict else None)
    if error := ended.broken_off:
        say(f"harness: {error}")
        documents.print_error(error.message, error.advice, error.exit)
    state = "Ended early" if ended.broken_off else "Interrupted"
    if ended.results.run.plan.profile_calls:
        say(f"{state}. The report has the finished profiles. To get the other profiles, start a new run.")
    else:
        say(f"{state}. To continue: {_format_resume_command(ended.folder)}")
    return ended.broken_off.exit if ended.broken_off else Exit.INTERRUPTED


def _print_raised_errors(ended: session.Ended) -> None:
    """Print the errors of scenarios with their lines, and commands that show the complete errors."""
    errors = session.find_raised_errors(ended.results)
    for error in errors[:MOST_ERRORS]:
        say_problems([Problem(error.path, error.line, f"in {error.function}: {error.error}")])
        # skip a command with a line break in a value
        if error.command.isprintable():
            say(f"To write a script that runs the cell without harness:\n    {error.command}")
    if errors[MOST_ERRORS:]:
        say(f"details.md has {counted(len(errors) - MOST_ERRORS, 'more error')}.")


def choose_exit_code(ended: session.Ended, fail_on: FailOn | None, verdict: "JudgedPatch | None" = None) -> Exit:
    """Return the exit code of a run. Failed cells take precedence over a gate. A run without a result has failed.

    With a `verdict`, a run without failed cells ends with the code of the verdict, and the gate isn't used.
    """
    if ended.broken or not session.has_numbers(ended.results):
        return Exit.CELLS_FAILED
    if verdict and not ended.refused:
        return Exit[f"VERDICT_{verdict.verdict.name}"]
    gate = choose_gate_exit(session.gate(ended.results), "No environment has a verdict") if fail_on else Exit.OK
    return Exit.CELLS_FAILED if ended.refused and gate is Exit.OK else gate


class ProgressPrinter(session.Listener):
    """Prints the progress of a run, and messages about signals, on stderr."""

    def __init__(self) -> None:
        self.in_shards = False
        self._run: Run | None = None
        self._is_launching = False
        self._was_launching = False

    def say(self, sentence: str) -> None:
        """Print a sentence for the user."""
        say(sentence)

    @contextmanager
    def preparing(self) -> Iterator[Progress]:
        """Show the preparation of environments."""
        with display.show_preparation() as progress:
            yield progress

    @contextmanager
    def launching(self, run: Run) -> Iterator[WalkListener]:
        """Show the launches."""
        self._run, self._is_launching = run, True
        try:
            with display.show_launches(run) as listener:
                yield listener
        finally:
            self._is_launching = False

    def announce_stop(self, count: int) -> str:
        """Return the message for the signal with this number (1 for the first one)."""
        if self.in_shards:
            return "Stopping: ending the running launches, then merging and reporting the finished ones." * (count == 1)
        if self._run is None:
            return "Stopping: the run hasn't started yet." if count == 1 else ""
        if count == 1 and self._is_launching:
            self._was_launching = True
            sentence = "Stopping: ending the running launches and reporting the finished ones."
            return f"{sentence} To skip the report, press Ctrl-C again."
        folder = shlex.quote(self._run.folder)
        message = f"Stopping without a report. The launches are saved. To write the report: harness report {folder}"
        if self._was_launching:
            clean_command = f"harness clean {self._run.id}"
            resume_command = _format_resume_command(Path(self._run.folder))
            message += f"\nTo remove leftovers of the launches: {clean_command}\nTo continue: {resume_command}"
        return message


def _format_resume_command(folder: Path) -> str:
    return f"harness matrix --resume {shlex.quote(str(folder))}"

"""Output and exit codes of commands that measure: `harness matrix`, `run`, `repro` and `profile`."""

import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import typer

from harness import session
from harness.backends import registry
from harness.cli import display, report
from harness.cli.dryrun import describe_shard
from harness.cli.messages import choose_gate_exit, handle_signals, say, say_problems, say_refused
from harness.cli.options import FailOn, FailOnClaim
from harness.model.backend import Progress
from harness.model.errors import Exit, Problem, UnavailableError
from harness.model.run import Run
from harness.model.texts import counted, escape_json
from harness.runner.executor import WalkListener

#: The maximum number of scenario errors that are printed. The report has the others.
RAISED = 3


def run(
    request: session.Request | session.ProfileRequest,
    *,
    wait: bool = False,
    json: bool = False,
    fail_on: FailOn | None = None,
) -> Exit:
    """Measure a plan in the folder of a new run, and return the exit code."""
    planned = _ask_for_trust(session.plan(request, _read_unavailable(request), say=say, wait=wait))
    say_refused(planned.refused)
    shard = planned.plan.shard
    if shard:
        say(describe_shard(shard, len(planned.plan.groups)))
        if not planned.plan.groups:
            return Exit.OK
    heard = ProgressPrinter()
    with handle_signals(heard.announce_stop):
        ended, lacks = _measure_plan(planned, heard, wait=wait)
        code = show(ended, json=json, fail_on=fail_on)
    return _report_missing_shards(lacks, code)


def _read_unavailable(request: session.Request | session.ProfileRequest) -> Mapping[str, UnavailableError]:
    """Return the environments that are unavailable to a shard of a run in slots, because the run can't prepare them."""
    if not isinstance(request, session.Request) or not (request.shard and request.slots):
        return {}
    from harness.fleet import dispatch  # noqa: PLC0415 - only shards need it

    return dispatch.read_unavailable(request.results)


def _ask_for_trust(planned: session.Planned) -> session.Planned:
    """Return the plan with --trust if the user agrees on a terminal to run an untrusted script without a container."""
    name, scripts = planned.request.backend, planned.untrusted
    if not scripts or registry.is_contained(name) or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return planned
    say(registry.UntrustedError(name, scripts).message)
    is_trusted = typer.confirm("Run this code anyway?", err=True)
    return replace(planned, request=replace(planned.request, trust=True)) if is_trusted else planned


def _report_missing_shards(lacks: Sequence[str], code: Exit) -> Exit:
    """Print which shards of a run are missing, and return the exit code."""
    for sentence in lacks:
        say(sentence)
    return Exit.CELLS_FAILED if lacks and code in (Exit.OK, Exit.SLOWER) else code


def _measure_plan(
    planned: session.Planned, heard: "ProgressPrinter", *, wait: bool
) -> tuple[session.Ended, Sequence[str]]:
    """Measure on the whole machine, in a slot or in shards. Return the run, and sentences about missing shards."""
    command, request = ["harness", *sys.argv[1:]], planned.request
    if not (isinstance(request, session.Request) and (request.slots or request.spread or request.on)):
        return session.run(planned, heard, command=command, wait=wait), ()
    from harness.fleet import dispatch  # noqa: PLC0415 - only shards need it

    if dispatch.uses_several_places(request):
        heard.in_shards = True
        whole = dispatch.run(planned, heard, command=command, wait=wait)
        return whole.merged.ended, whole.lacks
    slots = dispatch.find_slots_for_shard(planned)
    return session.run(planned, heard, command=command, wait=wait, slots=slots), ()


def repro(request: session.Request, *, wait: bool, json: bool, fail_on: FailOnClaim | None) -> Exit:
    """Measure the claims of issues in a new run, and return the exit code."""
    from harness.upstream import repro as upstream  # noqa: PLC0415 - only this command needs it

    planned = _ask_for_trust(session.plan(request, say=say, wait=wait))
    say_refused(planned.refused)
    heard = ProgressPrinter()
    with handle_signals(heard.announce_stop):
        ended, lacks = _measure_plan(planned, heard, wait=wait)
        code = _report_missing_shards(lacks, show(ended, json=json, fail_on=None, only=("answer", "claims")))
        left = upstream.find_unfinished(ended.results)
        if left:
            say(f"These claims have no outcome: {', '.join(left)}. The report shows the reasons.")
        if bundled := upstream.write_bundle(ended.folder, ended.results):
            say(f"The text for the issue is in {bundled}")
        if fail_on and code is Exit.OK:
            return choose_gate_exit(upstream.gate(ended.results, fail_on), "No claim has an outcome")
        return code


def resume(folder: Path, request: session.Request, *, wait: bool, json: bool, fail_on: FailOn | None) -> Exit:
    """Resume the run in a folder, with the slots, rounds and budget of a request if given. Return the exit code."""
    heard, lacks = ProgressPrinter(), list[str]()
    with handle_signals(heard.announce_stop):
        rounds, budget = request.rounds, request.budget
        if (folder / "fleet.json").exists():
            from harness.fleet import dispatch  # noqa: PLC0415 - as in `_measure_plan`

            heard.in_shards = True
            whole = dispatch.resume(folder, heard, rounds=rounds, budget=budget, slots=request.slots, wait=wait)
            ended, lacks = whole.merged.ended, whole.lacks
        else:
            ended = session.resume(folder, heard, backend=request.backend, wait=wait, rounds=rounds, budget=budget)
        code = show(ended, json=json, fail_on=fail_on)
    return _report_missing_shards(lacks, code)


def show(ended: session.Ended, *, json: bool, fail_on: FailOn | None, only: Collection[str] = ()) -> Exit:
    """Print the results of a run, and return the exit code."""
    if json:
        sys.stdout.write(escape_json((ended.folder / "launches.jsonl").read_text(encoding="utf-8")))
    is_whole = not (ended.interrupted or ended.broken_off)
    report.show(ended.written, ended.results, tables=not json, only=only, end=is_whole)
    _print_raised_errors(ended)
    if is_whole:
        return choose_exit_code(ended, fail_on)
    if ended.broken_off:
        say(f"harness: {ended.broken_off}")
    state = "Broken off" if ended.broken_off else "Interrupted"
    if ended.results.run.plan.profile_calls:
        say(f"{state}. The report has the finished profiles. To get the other profiles, start a new run.")
    else:
        say(f"{state}. To continue: {_format_resume_command(ended.folder)}")
    return ended.broken_off.exit if ended.broken_off else Exit.INTERRUPTED


def _print_raised_errors(ended: session.Ended) -> None:
    """Print the errors of scenarios with their lines, and commands that show the complete errors."""
    raised = session.find_raised_errors(ended.results)
    for failure in raised[:RAISED]:
        say_problems([Problem(failure.path, failure.line, f"in {failure.function}: {failure.error}")])
        # skip a command with a line break in a value
        if failure.command.isprintable():
            say(f"To write a script that runs the cell without harness:\n    {failure.command}")
    if raised[RAISED:]:
        say(f"details.md has {counted(len(raised) - RAISED, 'more error')}.")


def choose_exit_code(ended: session.Ended, fail_on: FailOn | None) -> Exit:
    """Return the exit code of a run. Failed cells take precedence over a gate. A run without a result has failed."""
    if ended.broken or not session.has_numbers(ended.results):
        return Exit.CELLS_FAILED
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
        with display.show_preparation() as shown:
            yield shown

    @contextmanager
    def launching(self, run: Run) -> Iterator[WalkListener]:
        """Show the launches."""
        self._run, self._is_launching = run, True
        try:
            with display.show_launches(run) as shown:
                yield shown
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
            finished = "Stopping: ending the running launches and reporting the finished ones."
            return f"{finished} To skip the report, press Ctrl-C again."
        folder = shlex.quote(self._run.folder)
        message = f"Stopping without a report. The launches are saved. To write the report: harness report {folder}"
        if self._was_launching:
            clean, again = f"harness clean {self._run.id}", _format_resume_command(Path(self._run.folder))
            message += f"\nTo remove leftovers of the launches: {clean}\nTo continue: {again}"
        return message


def _format_resume_command(folder: Path) -> str:
    return f"harness matrix --resume {shlex.quote(str(folder))}"

"""A pass under the profiler from its first step to its report."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import problems, session
from harness.cli.interruption import interruptible
from harness.cli.request import Prepared, Request, prepare
from harness.machine.lock import exclusive, machine_to_itself
from harness.model.errors import Exit
from harness.model.launch import BROKEN

if TYPE_CHECKING:
    from harness.store.folder import RunFolder


def show_plan(request: Request) -> None:
    """Print which cells would be profiled."""
    plan = prepare(request).plan
    for cell in plan.cells:
        print(cell)
    for entry in plan.unavailable:
        print(f"not available: {entry.cell}: {entry.reason.rstrip('.')}. {entry.advice}".rstrip())
    print(f"{len(plan.cells)} launches; {len(plan.unavailable)} cells not available.")


def profile(request: Request, backend: str, results: Path, calls: int) -> Exit:
    """Profile what was asked, in a new run's folder. Returns the exit code."""
    prepared = _untimed(prepare(request), calls)
    with machine_to_itself():
        code = _profile(session.begin(request, prepared, backend, results))
    return problems.exit_code(prepared.refused, code)


def write(folder: "RunFolder", *, show: bool = True) -> None:
    """Write profile.md and profile.html from what is stored, `show` the tables of shares on stdout."""
    from harness.report import profile_pages
    from harness.store.profiles import read_profiles

    run, launches = folder.read_run(), folder.read_launches()
    made = profile_pages.render(run, [(launch, read_profiles(folder.path, launch)) for launch in launches])
    paths = [folder.write_report(f"profile.{ending}", text) for ending, text in made.files.items()]
    if show:
        print(made.summary)
        sys.stdout.flush()
    print(f"Profile: {', '.join(map(str, paths))}", file=sys.stderr)


def _untimed(prepared: Prepared, calls: int) -> Prepared:
    """The plan as one of profiles: every cell once, and nothing to compare times by."""
    groups = [replace(group, control=None) for group in prepared.plan.groups]
    return replace(prepared, plan=replace(prepared.plan, groups=groups, rounds=0, profile_calls=calls))


def _profile(begun: session.Session) -> Exit:
    from harness.cli import progress
    from harness.machine.cpus import keeping_off
    from harness.runner import profiling
    from harness.runner.walk import Walk

    folder, plan, backend = begun.folder, begun.run.plan, begun.backend
    interrupted = False
    with exclusive(folder.path / ".lock", f"{folder.path} is being written."):
        try:
            with interruptible(), keeping_off(plan.limits.cpus), progress.show(plan) as listener:
                walk = Walk(plan, folder, backend, begun.requirements, begun.jobs, listener, lambda _: {}, begun.watch)
                profiling.profile(walk)
        except KeyboardInterrupt:
            interrupted = True
            backend.clean(begun.run.id)
    write(folder)
    if interrupted:
        print("Interrupted. What was profiled is in the report; the rest needs a new run.", file=sys.stderr)
        return Exit.INTERRUPTED
    broken = any(launch.status in BROKEN for launch in folder.read_launches())
    return Exit.CELLS_FAILED if broken else Exit.OK

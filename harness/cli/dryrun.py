"""`--dry-run`: the launches, their estimated duration, and what is built first, as text or JSON."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import typer

from harness import session
from harness.cli import documents
from harness.cli.messages import say, say_refused, tell_json, wrap_lines
from harness.model.errors import CannotRunHereError, Exit, UsageError
from harness.model.run import Shard, Unavailable, describe_fallbacks
from harness.model.scenario import Cell
from harness.model.texts import counted, escape, format_plain, joined


def show_plan(
    request: "session.Request | session.ProfileRequest", *, json: bool = False, by_history: bool = False
) -> Exit:
    """Print the plan, and return the exit code. Raises CannotRunHereError if no cell can be launched."""
    planned = session.plan(request, say=say, builds=False)
    if by_history:
        planned = shorten_plan(planned)
    say_refused(planned.refused)
    outlook = session.estimate_duration(planned)
    refusal = None
    try:
        planned.refuse_nothing()
    except CannotRunHereError as error:
        refusal = error
    if json:
        document = _make_document(planned, outlook)
        if refusal:
            document |= asdict(documents.ErrorDocument(refusal.message, refusal.advice, refusal.exit))
            documents.printed_errors.append(refusal)
        tell_json(document)
    else:
        typer.echo(wrap_lines("\n".join(map(escape, _list_lines(planned, outlook))), sys.stdout))
    if refusal:
        raise refusal
    return Exit.CELLS_FAILED if planned.refused else Exit.OK


def shorten_plan(planned: "session.Planned") -> "session.Planned":
    """Return the plan with only as many rounds of each group as the history of this machine needs."""
    from harness.history.folder import History  # noqa: PLC0415 - only nightly runs need it
    from harness.history.rounds import plan_rounds  # noqa: PLC0415
    from harness.machine.identity import load_machine  # noqa: PLC0415

    rounds = plan_rounds(planned.plan, History.open(say).series(), load_machine().id)
    if rounds:
        names = joined([f"{name} ({counted(count, 'round')})" for name, count in rounds.items()])
        say(f"Measured less often, because the history of this machine varies little: {names}.")
    return replace(planned, plan=replace(planned.plan, settled=rounds))


def show_rest(path: Path, request: "session.Request", *, unsettled: bool, json: bool = False) -> Exit:
    """Print what `--resume` would measure, and return the exit code. Raises the errors of `load_earlier`."""
    if (path / "fleet.json").exists():
        raise UsageError(f"{path} was measured in shards, so --dry-run doesn't know the rest.", "Omit --dry-run.")
    earlier = session.load_earlier(
        path, request.backend, rounds=request.rounds, budget=request.budget, unsettled=unsettled
    )
    rest = {} if earlier.over else session.estimate_rest(earlier)
    launches = sum(count for count, _ in rest.values())
    seconds = sum(seconds for _, seconds in rest.values())
    if json:
        groups = [{"group": name, "launches": count} for name, (count, _) in rest.items()]
        tell_json({"run": str(path), "groups": groups, "seconds": round(seconds, 1)})
        return Exit.OK
    lines = [f"{name}: {counted(count, 'launch')}" for name, (count, _) in rest.items()]
    total = f"In all at most {counted(launches, 'launch')}, about {_format_rounded(seconds)} at the speed so far."
    typer.echo(wrap_lines("\n".join(map(escape, [*lines, earlier.over or total])), sys.stdout))
    return Exit.OK


def _make_document(planned: "session.Planned", outlook: "session.DurationEstimate") -> dict[str, object]:
    plan = planned.plan
    return {
        "seed": plan.seed,
        "shard": asdict(plan.shard) if plan.shard else None,
        "reference": planned.reference,
        "rounds": plan.rounds,
        "precision": plan.precision,
        "budget_seconds": plan.budget_seconds,
        "margin": plan.margin,
        "gpus": list(plan.limits.gpus),
        "stand_ins": [
            {"environment": fallback.environment, "for": fallback.role, "reason": fallback.reason}
            for fallback in plan.stand_ins
        ],
        "compiled": dict(plan.compiled),
        "moved": planned.moved,
        "lines": {environment.line: environment.exact for environment in planned.environments if environment.line},
        "refused": list(planned.refused),
        "outlook": asdict(outlook),
        "cells": [{"group": group.name, "cell": str(cell)} for group in plan.groups for cell in group.cells],
        "not available": [
            {"cell": str(entry.cell), "reason": entry.reason, "advice": entry.advice} for entry in plan.unavailable
        ],
    }


def describe_shard(shard: Shard, groups: int) -> str:
    """Describe which part of the plan a shard measures."""
    sentence = (
        f"Shard {shard} of the plan {shard.plan}: {groups or 'none'} of its {groups + len(shard.elsewhere)} groups."
    )
    return sentence if groups else f"{sentence} This shard measures nothing, and `harness merge` doesn't need it."


def _list_lines(planned: "session.Planned", outlook: "session.DurationEstimate") -> Iterator[str]:
    plan = planned.plan
    if plan.shard:
        yield describe_shard(plan.shard, len(plan.groups))
    fallback_sentence = describe_fallbacks(plan.stand_ins)
    if fallback_sentence:
        yield fallback_sentence
    yield from planned.gpu_lines
    yield from planned.line_sentences
    yield from (f"{name} is {override}." for name, override in planned.moved.items())
    for group in plan.groups:
        if not plan.profile_calls:
            yield group.name
        for cell in group.cells:
            yield str(cell) if plan.profile_calls else f"  {cell}"
    yield from _list_unavailable(plan.unavailable)
    yield _describe_counts(planned)
    if plan.cells:
        yield _describe_duration(planned, outlook)
        yield _describe_builds(outlook)
        if planned.request.share or not plan.limits.cpus:
            yield "Launches share their CPUs with other work."
        else:
            yield "Launches have priority over other work on their CPUs, if the machine allows it. To share: --share"
        yield from filter(None, [outlook.rights])


def _list_unavailable(entries: Sequence[Unavailable]) -> Iterator[str]:
    """Yield a line for each reason: one or two cells, or the number of cells and their environments."""
    cells: dict[tuple[str, str], list[Cell]] = {}
    for entry in entries:
        cells.setdefault((entry.reason.rstrip("."), entry.advice), []).append(entry.cell)
    for (reason, advice), its_cells in cells.items():
        names = joined(list(dict.fromkeys(cell.environment for cell in its_cells)))
        few, many = joined([str(cell) for cell in its_cells[:2]]), f"{counted(len(its_cells), 'cell')} of {names}"
        subject = few if len(its_cells) < 3 else many
        yield f"not available: {subject}: {reason}. {advice}".rstrip()


def _describe_counts(planned: "session.Planned") -> str:
    """Describe the numbers of cells, rounds and launches."""
    plan = planned.plan
    missing_note = f" {counted(len(plan.unavailable), 'cell', 'is')} not available." if plan.unavailable else ""
    if plan.profile_calls:
        return f"{counted(len(plan.cells), 'launch')}.{missing_note}"
    at_most = "at most " if plan.ends_early or plan.budget_seconds else ""
    is_piloted = plan.piloted and any(group.piloted for group in plan.groups)
    # pilots that don't determine the length of launches may be unnecessary
    pilot_note = "at most " if is_piloted and not plan.sampling.is_open else ""
    controls = sum(group.control is not None and group.controlled for group in plan.groups)
    return (
        f"{counted(len(plan.cells), 'cell')} in {counted(len(plan.groups), 'group')}, and "
        f"{counted(controls, 'control')} (a cell's second launch in a round). "
        f"The run has {'a pilot and ' if is_piloted else ''}{at_most}"
        f"{counted(plan.rounds, 'round')}: {at_most or pilot_note}{plan.all_launches} launches.{missing_note}"
    )


def _describe_duration(planned: "session.Planned", outlook: "session.DurationEstimate") -> str:
    """Describe the estimated duration and its source."""
    plan = planned.plan
    at_most = "at most " if plan.ends_early or plan.budget_seconds else ""
    basis = f"estimated from {outlook.basis}" if outlook.basis else ""
    if outlook.unknown:
        subject_cells = "these cells" if not outlook.basis else f"{outlook.unknown} of the cells"
        assumption = f"assuming {format_plain(outlook.start)} s for the start of each launch"
        assumption += f", because {planned.request.results} doesn't contain an earlier run of {subject_cells}"
        basis = f"{basis}, and {assumption}" if basis else assumption
    if outlook.lazy_starts:
        names = counted(outlook.lazy_starts, "environment")
        basis += f"; {names} whose kernels the driver compiles when they are first needed, in about 5 min each"
    if outlook.first_starts:
        starts = counted(outlook.first_starts, "first start")
        basis += f"; {starts} of at least 30 min, in which the driver compiles GPU code"
        at_most = "at least "
    return f"The run takes {at_most}about {_format_rounded(outlook.seconds)}: {basis}."


def _format_rounded(seconds: float) -> str:
    """Format a rounded duration: `40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{max(5, round(seconds / 5) * 5)} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def _describe_builds(outlook: "session.DurationEstimate") -> str:
    """Describe the images or environments that are built before the first launch."""
    if outlook.unprepared is None:
        return f"This machine cannot run this plan: {outlook.unasked.replace(chr(10), ' ')}"
    count = len(outlook.unprepared)
    if not count:
        return f"All {outlook.makes}s are ready."
    names = ", ".join(outlook.unprepared)
    return f"Before the first launch, {counted(count, outlook.makes, 'is')} prepared, which takes extra time: {names}."

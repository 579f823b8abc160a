"""Summarizes a run for the history."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness import session
from harness.analysis.comparisons import ratios
from harness.analysis.observations import find_commit
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, combine
from harness.machine.lock import is_held
from harness.model.environment import X86_64, Device, Environment
from harness.model.errors import UsageError
from harness.model.history import CellPoint, MeasuredSeries, Measurer, SeriesSoftware, Summary
from harness.model.launch import Clock, Interleave, Protocol, Status
from harness.model.run import Machine, Run
from harness.model.scenario import DEVICE, Cell
from harness.model.texts import counted
from harness.plan.groups import find_control, name_group

#: The number of hexadecimal digits of a SHA-256 hash that a history stores.
_DIGITS = 16

#: The largest number of characters of the reason why a cell has no result.
_REASON_LENGTH = 300

#: The number of decimals of a stored log ratio. No measurement is accurate to a millionth.
_DECIMALS = 8


def summarize(results: Results) -> Summary:
    """Return the part of a run that a history stores.

    A cell is compared with the control of its group, by the paired log ratios of the rounds
    (`analysis.comparisons.ratios`). In a group without a control, cells only have times. For a merged run, the summary
    has facts about each machine. Raises UsageError for a run of profiles.
    """
    run = results.run
    if run.plan.profile_calls:
        raise UsageError(f"{run.id} has profiles instead of measurements.")
    each_machine = list(results.each_machine.values())
    series = _name_series(run.environments)
    measurers = [_identify_machine(machine_results.run) for machine_results in each_machine]
    return Summary(
        run=run.id,
        started=run.started,
        harness=run.harness,
        commit=run.commit,
        suite=run.suite,
        margin=run.plan.margin,
        way=_describe_settings(run),
        reference=series.get(run.reference, run.reference),
        kit=run.kit[:_DIGITS],
        machines=measurers,
        software={
            f"{series[environment.name]}{second}": SeriesSoftware(
                _hash_json(run.pins.get(name, {})),
                run.images.get(name, ""),
                pins,
                environment.exact,
                find_commit(results.launches, environment.name),
            )
            for environment in run.environments
            for second in ("", f":{Device.GPU}")
            if (pins := dict(run.pins.get(name := f"{environment.name}{second}", {})))
            or name in run.images
            or (environment.line and not second)
        },
        scenarios={
            scenario.name: MeasuredSeries((run.own or run.sources).get(scenario.name, "")[:_DIGITS], scenario.title)
            for scenario in run.scenarios
        },
        points=[
            point
            for machine_results, measurer in zip(each_machine, measurers, strict=True)
            for point in _list_points(machine_results, measurer.machine.id, series)
        ],
        merged=list(run.merged),
    )


def load_summary(path: Path) -> Summary:
    """Return the summary of a finished run, from its folder.

    Raises UsageError if `path` isn't such a folder, if it is corrupt or from a newer harness, if the run has profiles,
    or if the run hasn't finished.
    """
    if is_held(path / ".lock"):
        raise UsageError(f"{path} is being measured.", "Add the run after it has ended.")
    results = session.read(path)
    if not results.run.stops and not results.run.plan.profile_calls:
        raise UsageError(f"{path} was interrupted.", f"Continue it: harness matrix --resume {path}")
    return summarize(results)


def _name_series(environments: Sequence[Environment]) -> dict[str, str]:
    """Return the name of each environment in the keys of time series: its release line, or its own name.

    If a run has several environments of one line, only the newest one gets the name of the line.
    """
    from packaging.version import Version

    newest_by_name: dict[str, Environment] = {}
    for environment in sorted(environments, key=lambda candidate: (Version(candidate.tensorflow), candidate.as_of)):
        newest_by_name[environment.line or environment.name] = environment
    return {
        candidate.name: candidate.line if newest_by_name.get(candidate.line) == candidate else candidate.name
        for candidate in environments
    }


def _find_reason(cell: Cell, results: Results) -> str:
    """Return the reason why a cell has no result, on one line; empty if the run recorded no reason."""
    if unavailable := results.found.unavailable.get(cell):
        text = unavailable.reason
    else:
        launch = results.found.culprit(cell)
        text = launch.error if launch else ""
    return " ".join(text.split())[:_REASON_LENGTH]


def _find_references(run: Run, cells: Iterable[Cell]) -> dict[Cell, Cell]:
    """Return the baseline cell of each cell, including cells that were not available."""
    scenarios = {scenario.name: scenario for scenario in run.scenarios}
    references = {cell: group.control for group in run.plan.groups for cell in group.cells if group.control}
    cells_by_group = {group.name: group.cells for group in run.plan.groups}
    for cell in cells:
        if cell not in references and cell.scenario in scenarios:
            cells_of_group = cells_by_group.get(name_group(cell, scenarios[cell.scenario]), ())
            if cell not in cells_of_group and (reference := find_control([*cells_of_group, cell], run.reference)):
                references[cell] = reference
    return references


def _list_points(results: Results, machine: str, series: Mapping[str, str]) -> list[CellPoint]:
    run, lookup = results.run, results.found
    baselines = {cell: other for cell, other in _find_references(run, lookup.cells).items() if cell != other}
    compared_cells = [cell for cell in lookup.cells if cell in baselines]
    estimates = ratios([(cell, baselines[cell]) for cell in compared_cells], lookup)
    estimates_by_cell = dict(zip(compared_cells, estimates, strict=True))

    def point(cell: Cell, status: Status, seconds: Estimate | None) -> CellPoint:
        baseline, ratio = baselines.get(cell), estimates_by_cell.get(cell)
        log_ratios, interval = _compute_logs(ratio), seconds and seconds.interval
        return CellPoint(
            machine=machine,
            scenario=cell.scenario,
            device=cell.device.value,
            axes=dict(cell.anywhere.axes),
            environment=series.get(cell.environment, cell.environment),
            status=status,
            reference=series.get(baseline.environment, baseline.environment) if baseline else "",
            against=_list_baseline_axes(cell, baseline) if baseline else {},
            ratio=log_ratios[0],
            low=log_ratios[1],
            high=log_ratios[2],
            rounds=ratio.rounds if ratio else seconds.rounds if seconds else 0,
            seconds=_round_seconds(seconds.value) if seconds else None,
            seconds_low=_round_seconds(interval.low) if interval else None,
            seconds_high=_round_seconds(interval.high) if interval else None,
            reason="" if seconds else _find_reason(cell, results),
            calls=work.calls if (work := results.work.get(cell)) else None,
        )

    # the same as `results.cells` but without tables, which would take too long for a thousand runs
    rounds_by_cell = ((cell, lookup.series.get(cell)) for cell in lookup.cells)
    times = ((cell, combine(list(rounds.values())) if rounds else None) for cell, rounds in rounds_by_cell)
    return [point(cell, Status.OK if time else lookup.status(cell) or Status.INTERRUPTED, time) for cell, time in times]


def _list_baseline_axes(cell: Cell, baseline: Cell) -> dict[str, str]:
    """Return the axes of a cell's baseline, and the device of the baseline if it differs from the cell's device."""
    device = {DEVICE: baseline.device.value} if baseline.device is not cell.device else {}
    return {**baseline.anywhere.axes, **device}


def _compute_logs(ratio: Estimate | None) -> list[float | None]:
    """Return the log of a ratio, and the logs of the ends of its interval."""
    interval = ratio.interval if ratio else None
    ends = [interval.low, interval.high] if interval else [None, None]
    values = [ratio.value if ratio else None, *ends]
    return [None if value is None else round(math.log(value), _DECIMALS) for value in values]


def _round_seconds(seconds: float) -> float:
    """Round to six significant digits, to keep the files small."""
    return float(f"{seconds:.6g}")


def _describe_settings(run: Run) -> str:
    """Describe the settings of a run. If two runs differ in them, their times of the same cell aren't comparable."""
    plan = run.plan
    cpus = "all CPUs" if plan.limits.cpus is None else counted(len(plan.limits.cpus), "CPU")
    architectures = sorted({environment.architecture for environment in run.environments} - {X86_64})
    parts = [
        cpus,
        *architectures,
        "in turns" if plan.interleave is Interleave.TURNS else "launch after launch",
        *(["CPU time"] if plan.clock is Clock.CPU else []),
        *(["the source's iterations"] if plan.sampling.protocol is Protocol.DOCUMENT else []),
    ]
    return ", ".join(parts)


def _identify_machine(run: Run) -> Measurer:
    """Return the machine of a run. If the run has no machine id, the id is a hash of its known facts."""
    is_remote, host = run.backend.is_remote, run.host
    cpu, cores = str(host.get("cpu", "")), host.get("cores", 0)
    facts = [run.backend.system, run.backend.cpus, run.backend.memory_bytes] if is_remote else [cpu, cores]
    return Measurer(
        machine=run.machine or Machine(f"h-{_hash_json(facts)[:8]}"),
        cpu="" if is_remote else cpu,
        cores=run.backend.cpus if is_remote else int(cores),
        system=run.backend.system if is_remote else str(host.get("system", "")),
        kernel=run.backend.kernel if is_remote else str(host.get("kernel", "")),
        driver=_describe_driver(run),
    )


def _describe_driver(run: Run) -> str:
    """Return the models and the driver of the launches' GPUs; empty on the CPU, or if the GPUs are unknown."""
    gpus = run.host.get("gpus") if run.plan.limits.gpus else None
    if not isinstance(gpus, Sequence) or isinstance(gpus, str):
        return ""
    names = [f"{gpu.get('name', 'GPU')}, driver {gpu.get('driver') or 'unknown'}" for gpu in gpus]
    return "; ".join(dict.fromkeys(names))


def _hash_json(value: object) -> str:
    """Return the first characters of the SHA-256 of a JSON value. The order of keys doesn't matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]

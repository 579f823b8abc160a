"""pyperf's JSON format, version 1.0: one benchmark per cell, and one run per launch with the launch mean as its value.

https://pyperf.readthedocs.io/en/latest/api.html#pyperf-json-format
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harness.analysis.cells import CellResult
from harness.analysis.results import Results
from harness.analysis.rounds import compute_mean, compute_subtracted_share
from harness.model.environment import Environment, name_on
from harness.model.launch import Clock, Launch
from harness.model.run import Run
from harness.model.texts import format_cpu_list
from harness.report.escape import dump_json, escape_terminal
from harness.report.formats import name_cells, require_numbers
from harness.report.sections.run_info import list_pairs

Metadata = dict[str, str | float]


def render(results: Results) -> str:
    """Return a benchmark suite with the cells that have a result.

    Raises NothingSelectedError if there are none, because pyperf refuses an empty suite.
    """
    run = results.run
    environments = {environment.name: environment for environment in run.environments}
    benchmarks = [
        {
            "metadata": _make_benchmark_metadata(result, environments.get(result.cell.environment), run),
            "runs": [_make_run(launch) for launch in results.found.numbers[result.cell]],
        }
        for result in require_numbers(results, "pyperf")
    ]
    return dump_json({"version": "1.0", "metadata": _make_suite_metadata(run), "benchmarks": benchmarks})


def _make_suite_metadata(run: Run) -> Metadata:
    """Return the metadata of all benchmarks. pyperf compares a part of it before it adds runs to a benchmark."""
    cores = run.host.get("cores")
    return _clean_metadata(
        {
            "unit": "second",
            "cpu_count": cores if isinstance(cores, int) else None,
            "cpu_model_name": str(run.host.get("cpu") or ""),
            "cpu_affinity": format_cpu_list(run.plan.limits.cpus or ()),
            "platform": str(run.host.get("kernel") or ""),
            "harness_version": run.harness,
            "harness_run": run.id,
            "harness_commit": run.commit,
            "harness_clock": run.plan.clock.value if run.plan.clock is Clock.CPU else "",
            **{f"host_{name}": text for name, text in list_pairs(run.host)},
            **{f"backend_{name}": text for name, text in list_pairs(run.backend.to_dict())},
        }
    )


def _make_benchmark_metadata(result: CellResult, environment: Environment | None, run: Run) -> Metadata:
    cell = result.cell
    return _clean_metadata(
        {
            "name": name_cells(result.name, run),
            "python_version": environment.python if environment else "",
            "scenario": cell.scenario,
            "environment": cell.environment,
            "device": cell.device.value,
            "tensorflow": environment.tensorflow if environment else "",
            "keras": environment.keras if environment else "",
            "image": run.images.get(name_on(cell.environment, cell.device, run.images), ""),
            **{f"axis_{axis}": value for axis, value in cell.axes.items()},
        }
    )


def _make_run(launch: Launch) -> dict[str, Any]:
    memory = launch.resources.get("max_rss_bytes", 0.0)
    metadata = {
        "loops": launch.steps,
        "harness_round": launch.round,
        "harness_role": launch.role.value,
        "date": _format_date(launch.started),
        "harness_taken": compute_subtracted_share(launch) or None,
        "duration": launch.seconds if launch.seconds > 0.0 else None,
        "mem_max_rss": int(memory) if memory >= 1.0 else None,
    }
    return {"values": [compute_mean(launch)], "metadata": _clean_metadata(metadata)}


def _clean_metadata(facts: Mapping[str, str | float | None]) -> Metadata:
    """Return the known facts, each on one line. Empty names and texts are omitted, because pyperf refuses them."""
    lines = {
        escape_terminal(name): escape_terminal(fact) if isinstance(fact, str) else fact for name, fact in facts.items()
    }
    return {name: fact for name, fact in lines.items() if name and fact is not None and fact != ""}


def _format_date(started: str) -> str:
    """Return the time in UTC in pyperf's format; empty if `started` isn't a valid time."""
    try:
        return datetime.fromisoformat(started).astimezone(UTC).isoformat(" ")
    except ValueError:
        return ""

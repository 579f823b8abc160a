"""Makes the jobs of launches. A job has the scenario's files and settings. The files are read once per run."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.files import hash_files
from harness.machine import cpus
from harness.model.environment import Device
from harness.model.launch import SHORT, Job, Limits, Sampling
from harness.model.scenario import CPUS, DEVICE, Cell, Scenario
from harness.project import Project
from harness.scenarios.catalog import find_files_of, read_kit_files


class JobMaker:
    """Makes the jobs of one run. It reads files once, so that edits during the run have no effect.

    Raises UsageError if the file of a scenario is missing.
    """

    def __init__(self, project: Project, scenarios: Mapping[str, Scenario], limits: Limits) -> None:
        self.kit = read_kit_files(project)
        self._scenarios = scenarios
        self._limits = limits
        self._on_cores = cache(self._choose_cores)
        self._files = {name: find_files_of(scenario, self.kit) for name, scenario in scenarios.items()}

    def hash_sources(self) -> dict[str, str]:
        """Return a hash of each scenario's files and the kit. To resume a run, the hashes must be the same."""
        return {name: hash_files(files) for name, files in self._files.items()}

    def hash_own_files(self) -> dict[str, str]:
        """Return a hash of each scenario's own files, without the kit."""
        return {
            name: hash_files({file: data for file, data in files.items() if file not in self.kit})
            for name, files in self._files.items()
        }

    def list_scripts(self, own: Collection[Path]) -> dict[str, str]:
        """Return the source text of each scenario outside the project's folders `own`, by scenario name.

        A reader of the report can then run the scenario without having its file.
        """
        return {
            name: self._files[name][scenario.path.name].decode(errors="replace")
            for name, scenario in self._scenarios.items()
            if scenario.path.parent not in own
        }

    def __call__(self, cell: Cell, sampling: Sampling) -> Job:
        """Return the job for one launch of a cell."""
        scenario = self._scenarios[cell.scenario]
        return Job(
            cell=cell,
            script=scenario.path.name,
            files=self._files[cell.scenario],
            sampling=sampling,
            limits=self._choose_device(cell, scenario),
            environ={axis: cell.axes[axis] for axis in scenario.environ},
            settings={axis: cell.axes[axis] for axis in scenario.settings if axis != DEVICE},
        )

    def make_first_start(self, environment: str) -> Job:
        """Return the job of an environment's first start, in which the driver compiles code. It has only the kit."""
        cell = Cell("first start", environment, Device.GPU, {})
        return Job(cell, "kit/first_start.py", self.kit, SHORT, self._limits, environ={})

    def _choose_device(self, cell: Cell, scenario: Scenario) -> Limits:
        """Return the limits of a cell. In a run on both devices, launches on the CPU get no GPU."""
        limits = self._on_cores(cell.axes[CPUS]) if CPUS in scenario.settings else self._limits
        return replace(limits, gpus=(), first_start_seconds=0.0) if cell.device is Device.CPU else limits

    def _choose_cores(self, count: str) -> Limits:
        """Return the limits of launches on this number of cores, chosen from the cores of the largest launches."""
        return replace(self._limits, cpus=cpus.choose(count, set(self._limits.cpus or ())))

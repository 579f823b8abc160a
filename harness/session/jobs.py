"""Makes the jobs of launches. A job has the files of the scenario, which are read once per run, and the settings."""

from collections.abc import Collection, Mapping
from pathlib import Path

from harness.catalog.project import Project
from harness.catalog.scenarios import files_of, fingerprint, kit_files
from harness.model.launch import Job, Limits, Sampling
from harness.model.scenario import Cell, Scenario


class JobMaker:
    """Makes the jobs of one run. It reads files once, so that edits during the run have no effect.

    Raises UsageError if the file of a scenario is missing.
    """

    def __init__(self, project: Project, scenarios: Mapping[str, Scenario], limits: Limits) -> None:
        self.kit = kit_files(project)
        self._scenarios = scenarios
        self._limits = limits
        self._files = {name: files_of(scenario, self.kit) for name, scenario in scenarios.items()}

    def sources(self) -> dict[str, str]:
        """Return a hash of each scenario's files and the kit. To resume a run, the hashes must be the same."""
        return {name: fingerprint(files) for name, files in self._files.items()}

    def own(self) -> dict[str, str]:
        """Return a hash of each scenario's own files, without the kit."""
        return {
            name: fingerprint({file: data for file, data in files.items() if file not in self.kit})
            for name, files in self._files.items()
        }

    def scripts(self, own: Collection[Path]) -> dict[str, str]:
        """Return the source text of each scenario outside of the project's folders `own`, by scenario name.

        A reader of the report can then run the scenario without having its file.
        """
        return {
            name: self._files[name][scenario.path.name].decode(errors="replace")
            for name, scenario in self._scenarios.items()
            if scenario.path.parent not in own
        }

    def __call__(self, cell: Cell, sampling: Sampling) -> Job:
        """Return the job that launches a cell."""
        scenario = self._scenarios[cell.scenario]
        return Job(
            cell=cell,
            script=scenario.path.name,
            files=self._files[cell.scenario],
            sampling=sampling,
            limits=self._limits,
            environ={axis: cell.axes[axis] for axis in scenario.environ},
            settings={axis: cell.axes[axis] for axis in scenario.settings},
        )

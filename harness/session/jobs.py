"""The job of a launch: the files of its scenario, read once per run, and the settings of the request."""

from collections.abc import Collection, Mapping
from pathlib import Path

from harness.catalog.project import Project
from harness.catalog.scenarios import files_of, fingerprint, kit_files
from harness.model.launch import Job, Limits, Sampling
from harness.model.scenario import Cell, Scenario


class JobMaker:
    """Factory of the jobs of one run. It reads files once, so that edits during the run have no effect.

    Raises UsageError if the file of a scenario is missing.
    """

    def __init__(self, project: Project, scenarios: Mapping[str, Scenario], limits: Limits) -> None:
        self.kit = kit_files(project)
        self._scenarios = scenarios
        self._limits = limits
        self._files = {name: files_of(scenario, self.kit) for name, scenario in scenarios.items()}

    def sources(self) -> dict[str, str]:
        """Return a hash by scenario of its files and the kit's: it must stay the same when a run is resumed."""
        return {name: fingerprint(files) for name, files in self._files.items()}

    def own(self) -> dict[str, str]:
        """Scenario to a hash of its own files, without the kit's."""
        return {
            name: fingerprint({file: data for file, data in files.items() if file not in self.kit})
            for name, files in self._files.items()
        }

    def scripts(self, own: Collection[Path]) -> dict[str, str]:
        """Return the source text of each scenario outside the project's folders `own`, by scenario name.

        With this text, a reader of the report can run the scenario without the project.
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

"""All results of a run, computed from its launches. Each property is computed once, at first use."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

from harness.analysis.answers import Answer, answers, interleave_answers
from harness.analysis.attribution import Attribution, attributions
from harness.analysis.behaviour import Behaviour, SettingDifference, behaviours, differences
from harness.analysis.cell_index import Lookup, lookup
from harness.analysis.cells import CellResult, Missing, cell_results, find_missing
from harness.analysis.claims import ClaimResult, claims
from harness.analysis.control import Control
from harness.analysis.environments import Software, software
from harness.analysis.interference import RunInterference, find_interference
from harness.analysis.interleaving import Interleaving, NonInterleavedRatio, describe_interleaving, is_bias
from harness.analysis.looks import Endings, describe_ends
from harness.analysis.observations import Statement, statements
from harness.analysis.on_device import OnDevice, collect_recordings, explain_missing
from harness.analysis.printed_settings import split_numbers
from harness.analysis.quality import Grade, Quality, assess
from harness.analysis.quantities import growths, is_time, launches_of
from harness.analysis.rounds import apply_clock
from harness.analysis.sizing import samplings
from harness.analysis.sweeps import MeasuredSweep, ScalingPoint, scaling, sweeps
from harness.analysis.tables import Agreement, MeasuredCell, ScenarioTable, agreements, find_measured, tables
from harness.analysis.verdicts import Withheld
from harness.analysis.work_counts import StepWork, find_work
from harness.model.errors import UsageError
from harness.model.launch import Launch, Sampling
from harness.model.run import Run
from harness.model.scenario import GROWTH, STEP, Cell

#: The reasons for missing verdicts that more rounds may remove.
_TEMPORARY = (Withheld.FEW_ROUNDS, Withheld.CONTROL)

#: Modules whose `read_csv` makes a table. The first one that is installed is used.
FRAME_PACKAGES = ("pandas", "polars", "pyarrow.csv")


class Results:
    """A run with its launches and their analysis.

    Reports, exports, the gate and the terminal get such an object, and compute nothing themselves. `launches` have the
    times that are judged: wall-clock or CPU time, depending on the plan's clock. `to_html` formats the comparisons for
    a notebook, in the same way as in reports, and `to_csv` lists the launches for `frame`.
    """

    def __init__(
        self,
        run: Run,
        launches: Sequence[Launch],
        to_html: "Callable[[Results], str] | None" = None,
        to_csv: "Callable[[Results], str] | None" = None,
    ) -> None:
        self.run, self._splits = split_numbers(run, launches)
        self.launches = apply_clock(run.plan.clock, launches)
        self._stored = launches
        self._found: dict[str, Lookup] = {}
        self._to_html, self._to_csv = to_html, to_csv

    def __repr__(self) -> str:
        """Return the run's id and the quality of its measurement."""
        quality = f": measurement {self.quality.grade}" if self.quality else ""
        return f"<Results of {self.run.id}{quality}>"

    def _repr_html_(self) -> str | None:
        """Return the answer, the quality of the measurement and the main table as HTML for a notebook."""
        return self._to_html(self) if self._to_html else None

    def frame(self) -> Any:
        """Return a table with one row per launch, and the columns of the format `csv`.

        It is a table of pandas, polars or pyarrow: of the first one that is installed. Raises UsageError without any.
        """
        text = self._to_csv(self).encode() if self._to_csv else b""
        for package in FRAME_PACKAGES:
            with suppress(ModuleNotFoundError):
                return import_module(package).read_csv(io.BytesIO(text))
        raise UsageError("frame() needs pandas, polars or pyarrow.", "Install one of them.")

    @cached_property
    def machines(self) -> "Mapping[str, Results]":
        """The results of each machine of a run that was merged from several, by name; otherwise empty.

        Results about a whole run (its control, interference, interleaving) are computed for each machine.
        """
        by_machine = {}
        for facts in self.run.machines:
            run = self.run.of_machine(facts)
            groups = {group.name for group in run.plan.groups}
            launches = [launch for launch in self._stored if launch.group in groups]
            by_machine[facts.label] = Results(run, launches, self._to_html, self._to_csv)
        return by_machine

    @cached_property
    def by_setting(self) -> "Sequence[Results]":
        """The results of each printed number that a script prints for several settings. The settings are an axis."""
        return [Results(*split, self._to_html, self._to_csv) for split in self._splits]

    @property
    def each_machine(self) -> "Mapping[str, Results]":
        """The results of each machine by name. For a run of one machine, this object under an empty name."""
        return self.machines or {"": self}

    @cached_property
    def agreements(self) -> list[Agreement]:
        """The agreement of machines, for each comparison that several machines measured."""
        return [agreement for table in self.all_tables for agreement in agreements(table)]

    @property
    def margin(self) -> float:
        """The margin of the verdicts, on the log scale."""
        return math.log1p(self.run.plan.margin)

    @cached_property
    def found(self) -> Lookup:
        """The index of the cells."""
        return lookup(self.run, self.launches)

    def found_of(self, quantity: str) -> Lookup:
        """Return the index of the cells for a quantity.

        Memory growth has no logarithm, so it uses the index for the time per step.
        """
        if quantity in (STEP, GROWTH):
            return self.found
        if quantity not in self._found:
            self._found[quantity] = lookup(self.run, launches_of(quantity, self._stored, self.run.plan.clock))
        return self._found[quantity]

    def values_of(self, quantity: str, cell: Cell) -> Mapping[int, float]:
        """Return a cell's value of a quantity in each round, in the unit of the quantity; empty if it has none."""
        index = self.found_of(quantity)
        return growths(index.numbers.get(cell, ())) if quantity == GROWTH else index.series.get(cell, {})

    @cached_property
    def tables(self) -> list[ScenarioTable]:
        """A table of times and comparisons for each scenario that has a result."""
        return [table for table in tables(self.run, self.found) if table.rows]

    @cached_property
    def all_tables(self) -> list[ScenarioTable]:
        """The tables of each scenario: the table of times per step, then the tables of its other quantities.

        A scenario that times no steps has only tables of other quantities.
        """
        names = dict.fromkeys(quantity for scenario in self.run.scenarios for quantity in scenario.quantities)
        by_quantity = {name: tables(self.run, self.found_of(name), name) for name in names}
        return [
            table
            for scenario in self.run.scenarios
            for of_quantity in (self.tables, *(by_quantity[quantity] for quantity in scenario.quantities))
            for table in of_quantity
            if table.scenario.name == scenario.name and table.rows
        ]

    @cached_property
    def cells(self) -> list[CellResult]:
        """The result of each cell, in the plan's order."""
        return cell_results(self.found, self.tables, self.on_device)

    @cached_property
    def measured(self) -> Mapping[str, Sequence[MeasuredCell]]:
        """The cells that have a result, by scenario, in the order of the table."""
        empty: dict[str, Sequence[MeasuredCell]] = {scenario.name: () for scenario in self.run.scenarios}
        return empty | {table.scenario.name: find_measured(table, self.found) for table in self.tables}

    @cached_property
    def answers(self) -> list[Answer]:
        """The results of comparisons as answers, in the order of the report."""
        return interleave_answers([answers(table) for table in self.all_tables])

    @cached_property
    def control(self) -> Control | None:
        """The A/A control: the difference between two identical cells in the time per step.

        If no step is timed, it is the difference in the first other time that the run compares.
        """
        quantities = (table.quantity for table in self.all_tables if is_time(table.quantity))
        controls = (self.found_of(quantity).control for quantity in (STEP, *quantities))
        return next((control for control in controls if control), None)

    @cached_property
    def unsettled_groups(self) -> list[str]:
        """The groups that further rounds may settle, in the plan's order (`harness matrix --resume --unsettled`).

        Such a group has an unclear comparison or claim that isn't too close to the margin, or a comparison without a
        verdict because of too few rounds or the control. If a scenario has claims, only its claims matter. Groups that
        can't be continued aren't included.
        """
        claimed = {claim.scenario.name for claim in self.claims}
        tables = [table for table in self.all_tables if table.scenario.name not in claimed]
        outcomes = [(place.worse, place.settling, place.compared) for claim in self.claims for place in claim.places]
        outcomes += [(compared.cell, compared.settling, compared) for table in tables for compared in table.compared]
        groups = {
            self.found.groups.get(cell)
            for cell, needed, compared in outcomes
            if ((needed and needed.is_likely) or (compared and compared.withheld in _TEMPORARY))
            and not self.found.has_ended(cell)
        }
        return [group.name for group in self.run.plan.groups if group.name in groups]

    @property
    def compares(self) -> bool:
        """Whether a table of the run has a comparison."""
        return any(column.other for table in self.all_tables for column in table.columns)

    @property
    def has_several_scenarios(self) -> bool:
        """Whether the run has cells of several scenarios."""
        return len({cell.scenario for cell in self.found.cells}) > 1

    @cached_property
    def disturbance(self) -> RunInterference:
        """The rounds with interference from other processes."""
        return find_interference(self.run, self.launches)

    @cached_property
    def quality(self) -> Quality | None:
        """The quality of the measurement; None if nothing was timed. A merged run has that of its worst machine."""
        if self.machines:
            by_name = {name: machine.quality for name, machine in self.machines.items()}
            qualities = [replace(quality, machine=name) for name, quality in by_name.items() if quality]
            return max(qualities, key=lambda quality: list(Grade).index(quality.grade), default=None)
        rounds = sorted({table.rounds for table in self.all_tables})
        compares = self.compares or bool(self.claims)
        return assess(rounds, self.control, self.disturbance, self.margin, compares=compares)

    @property
    def is_poor(self) -> bool:
        """Whether the measurement is so poor that reports don't emphasize its verdicts."""
        return self.quality is not None and self.quality.grade is Grade.POOR

    @cached_property
    def turns(self) -> Interleaving | None:
        """How samples were interleaved, and the resulting bias. None without interleaving or for several machines."""
        if self.machines:
            return None
        # the same comparison may be in two columns
        compared = {
            (comparison.cell, comparison.other): comparison.alone
            for table in self.tables
            for comparison in table.compared
        }
        sequential_ratios = [
            NonInterleavedRatio(*pair, shift, is_bias(shift)) for pair, shift in compared.items() if shift
        ]
        counted = [launch for launches in self.found.numbers.values() for launch in launches]
        return describe_interleaving(counted, sequential_ratios)

    @cached_property
    def on_device(self) -> Mapping[Cell, OnDevice]:
        """The GPU activity that TensorFlow's profiler recorded, by cell."""
        return collect_recordings(self.launches)

    @cached_property
    def untold_on_device(self) -> Mapping[Cell, str]:
        """The reason why TensorFlow's profiler recorded no GPU activity, by cell."""
        return explain_missing(self.launches, self.found)

    @cached_property
    def work(self) -> Mapping[Cell, StepWork]:
        """The counted calls of a step, by cell. Cells without counts are missing."""
        return {cell: work for cell in self.found.cells if (work := find_work(cell, self.found))}

    @cached_property
    def ended(self) -> Endings:
        """The reason why each group ended, for example its budget."""
        return describe_ends(self.run)

    @cached_property
    def samplings(self) -> list[Sampling]:
        """The sampling of each group with a result, or the planned sampling if there is none."""
        if self.machines:
            return [sampling for machine in self.machines.values() for sampling in machine.samplings]
        plan = self.run.plan
        groups = dict.fromkeys(self.found.groups[cell] for cell in self.found.series if cell in self.found.groups)
        return list(samplings(plan.sampling, groups, self._stored, plan.single_steps).values()) or [plan.sampling]

    @cached_property
    def attributions(self) -> list[Attribution]:
        """The attributions of all tables: the effects of axes, and their interactions."""
        return [attribution for table in self.tables for attribution in attributions(self.run, table, self.found)]

    @cached_property
    def claims(self) -> list[ClaimResult]:
        """The claims of upstream issues, with their results."""
        return claims(self.run, self.found_of)

    @cached_property
    def sweeps(self) -> list[tuple[ScenarioTable, MeasuredSweep]]:
        """The curves along numeric axes, each with its table."""
        return [(table, sweep) for table in self.tables for sweep in sweeps(table, self.found, self.margin)]

    @cached_property
    def scaling(self) -> list[tuple[ScenarioTable, list[ScalingPoint]]]:
        """The scaling over cores, for each table with cells on several numbers of cores."""
        return [(table, points) for table in self.all_tables if (points := scaling(table))]

    @cached_property
    def settings(self) -> list[SettingDifference]:
        """TensorFlow settings that differ between compared cells, although the request didn't change them."""
        return [difference for table in self.tables for difference in differences(table, self.found)]

    @cached_property
    def statements(self) -> list[Statement]:
        """The statements of the scenarios' sources, checked against observations."""
        return statements(self.run, self.found)

    @cached_property
    def behaviours(self) -> list[Behaviour]:
        """The observations of cells, by experiment."""
        return behaviours(self.run, self.found)

    @cached_property
    def software(self) -> list[Software]:
        """The versions of the software in the run's environments."""
        return software(self.run)

    @cached_property
    def missing(self) -> list[Missing]:
        """Cells and launches without a result, with the reason."""
        return find_missing(self.found)

    @cached_property
    def causes(self) -> Mapping[Cell, Missing]:
        """The reason for each cell without a result, or with failed launches."""
        return {cell: entry for entry in self.missing for cell in entry.cells}

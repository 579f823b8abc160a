"""What follows from a run's launches, in one place."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.run import Machine, MachineFacts
from tests.factories import cells, rounds, run
from tests.quantified import quantified, quantified_run


def test_each_part_is_computed_once_and_a_run_without_launches_has_every_part():
    results, nothing = Results(run(), rounds(dict.fromkeys(cells(), 0.01))), Results(run(), [])
    for part in ("found", "tables", "answers", "attributions", "sweeps", "statements", "behaviours", "missing"):
        assert getattr(results, part) is getattr(results, part), part
        getattr(nothing, part)
    assert (nothing.tables, nothing.compares) == ([], False)
    assert [table.scenario.name for table in results.tables] == ["step"]


def test_the_results_of_each_machine_are_shown_in_a_notebook_too():
    planned = run()
    facts = [MachineFacts(Machine(identity), identity, {}, planned.backend) for identity in ("m-1", "m-2")]
    results = Results(replace(planned, machines=facts), [], lambda part: part.run.machine.id, lambda part: "")
    assert [machine._repr_html_() for machine in results.machines.values()] == ["m-1", "m-2"]


def test_a_scenario_that_times_no_step_has_tables_answers_and_a_control_of_its_phases():
    launches = [replace(entry, samples=(), observations={"seen": 1}) for entry in quantified()]
    results = Results(quantified_run("first call"), launches)
    assert [table.quantity for table in results.all_tables] == ["first call"]
    assert results.answers
    assert results.control
    assert results.found.control is None

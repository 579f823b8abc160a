import pytest

from harness.model.errors import UsageError
from harness.model.suite import Part, Suite
from harness.plan.broken import without_broken
from harness.plan.selection import Catalog, Selection
from tests.factories import scenario

SUITE = Suite("all", "All", ["*"], [Part("step", {}), Part("broken", {})])
CATALOG = Catalog(["tf2.0"], {"step": scenario(), "other": scenario("other")}, {"all": SUITE})


def chosen(selection: Selection) -> tuple[list[str], list[str]]:
    """What is selected, broken or not, and what is left of it in the suite or by name."""
    selection, catalog, names = without_broken(selection, CATALOG, ["broken"])
    if selection.suite:
        return names, [part.scenario for part in catalog.suites["all"].parts]
    return names, list(selection.scenarios)


def test_a_broken_scenario_is_taken_out_of_what_was_typed() -> None:
    assert chosen(Selection(scenarios=["step", "brok*"])) == (["step", "broken"], ["step"])


def test_a_broken_scenario_is_taken_out_of_a_suite() -> None:
    assert chosen(Selection(suite="all")) == (["step", "broken"], ["step"])


def test_a_broken_scenario_that_was_not_selected_changes_nothing() -> None:
    selection = Selection(scenarios=["step"])
    assert without_broken(selection, CATALOG, ["broken"]) == (selection, CATALOG, ["step"])


def test_of_a_suite_what_was_typed_beside_it_counts() -> None:
    selection = Selection(suite="all", scenarios=["step", "other"])
    assert without_broken(selection, CATALOG, ["broken"]) == (selection, CATALOG, ["step"])


def test_a_name_of_no_scenario_is_told_beside_the_broken_ones() -> None:
    with pytest.raises(UsageError, match=r"Did you mean broken\?"):
        without_broken(Selection(scenarios=["brokn"]), CATALOG, ["broken"])

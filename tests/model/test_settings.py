"""Settings: axes that every scenario has where somebody asks for them."""

import pytest

from harness.model.errors import UsageError
from harness.model.scenario import CPUS, STEP, Comparison
from harness.model.settings import SETTINGS, free_values, open_to, with_settings
from tests.factories import cell, scenario


def test_settings_become_the_last_axes_but_for_a_scenarios_own():
    extended = with_settings(scenario(), {"xla": ["off", "on"]})
    assert list(extended.axes) == ["call", "dtype", "mode", "xla"]
    assert (extended.axes["xla"], extended.settings) == (["on", "off"], ["xla"])
    assert (extended.compare[-1].along, extended.compare[-1].plus, extended.compare[-1].against) == ("xla", "on", "")
    assert extended.compared_axes == ("mode", "xla")
    extended = with_settings(scenario(), {"precision": ["mixed_float16"]})
    assert list(extended.compare) == list(scenario().compare)
    assert "precision" in extended.row_axes
    declared = scenario(axes={"xla": ["fast", "slow"]})
    assert open_to(declared) == [name for name in SETTINGS if name != "xla"]
    assert open_to(scenario(axes={"xla": ["on", "off"]}, settings=["xla"])) == list(SETTINGS)


def test_numbers_of_cores_and_process_variables_are_axes():
    extended = with_settings(scenario(), {CPUS: ["4", "1", "2", "1"]})
    assert (extended.axes[CPUS], extended.settings) == (["1", "2", "4"], [CPUS])
    added = extended.compare[len(scenario().compare) :]
    assert [(entry.along, entry.plus, entry.against) for entry in added] == [(CPUS, "2", "1"), (CPUS, "4", "1")]
    # and every quantity of a scenario is
    extended = with_settings(scenario(compare=[Comparison("import", "environment", of="import")]), {CPUS: ["1", "2"]})
    assert [entry.of for entry in extended.compare] == ["import", STEP, "import"]
    assert str(cell(cpus="2", xla="on", precision="mixed_float16")).endswith(" cpus=2 xla=on mixed_float16")
    extended = with_settings(scenario(), {"KERAS_BACKEND": ["tensorflow", "jax"]})
    assert (extended.environ, extended.settings) == (["KERAS_BACKEND"], [])
    assert (extended.compare[-1].plus, extended.compare[-1].against) == ("jax", "tensorflow")
    for text in ("0", "-1", "1.5", "two", "1-2", ""):
        with pytest.raises(UsageError, match=f"Invalid -a cpus={text}: "):
            free_values(CPUS, ["1", text])

"""Settings: axes that every scenario has where somebody asks for them."""

from harness.model.settings import AS_IT_COMES, SETTINGS, open_to, values, with_settings
from tests.factories import cell, scenario


def test_what_was_asked_for_becomes_the_last_axis_and_is_compared_in_the_settings_order() -> None:
    made = with_settings(scenario(), {"xla": ["off", "on"]})
    assert list(made.axes) == ["call", "dtype", "mode", "xla"]
    assert (made.axes["xla"], made.settings) == (["on", "off"], ["xla"])
    assert (made.compare[-1].along, made.compare[-1].plus, made.compare[-1].against) == ("xla", "on", "")
    assert made.compared_axes == ("mode", "xla")


def test_one_value_is_compared_with_nothing() -> None:
    made = with_settings(scenario(), {"precision": ["mixed_float16"]})
    assert list(made.compare) == list(scenario().compare)
    assert "precision" in made.row_axes


def test_nothing_asked_for_changes_nothing() -> None:
    made = with_settings(scenario(), {})
    assert (made.axes, list(made.compare), list(made.settings)) == (scenario().axes, list(scenario().compare), [])


def test_an_axis_of_the_scenarios_own_keeps_its_name_to_itself() -> None:
    own = scenario(axes={"xla": ["fast", "slow"]})
    assert open_to(own) == [name for name in SETTINGS if name != "xla"]
    assert open_to(scenario(axes={"xla": ["on", "off"]}, settings=["xla"])) == list(SETTINGS)


def test_every_setting_can_be_left_as_it_comes() -> None:
    assert all(values(name)[-1] == AS_IT_COMES for name in SETTINGS)


def test_a_cell_tells_bare_values_with_their_axis() -> None:
    assert str(cell(xla="on", precision="mixed_float16")).endswith("graph xla=on mixed_float16")

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import UsageError
from harness.plan.names import resolve

NAMES = ["tf1.14", "tf1.15", "tf2.0", "tf2.10"]


def test_globs_take_names_in_the_order_typed_each_once() -> None:
    assert resolve(["tf2.*", "tf1.14", "tf2.0"], NAMES, "environment") == ["tf2.0", "tf2.10", "tf1.14"]


def test_spaces_dashes_and_case_make_no_difference() -> None:
    assert resolve(["Op-by op"], ["graph", "op_by_op"], "value") == ["op_by_op"]


def test_a_misspelt_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        resolve(["tf1.41"], NAMES, "environment")
    assert "no environment 'tf1.41'. Did you mean tf1.14?" in str(caught.value)
    assert "tf1.14, tf1.15, tf2.0, tf2.10" in str(caught.value)


@given(st.lists(st.text(min_size=1), unique=True, min_size=1), st.data())
def test_every_name_finds_itself_first(names: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names))
    assert resolve([name], names, "thing") == [name]

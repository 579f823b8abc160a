import re

from hypothesis import given
from hypothesis import strategies as st

from harness.report.charts.picture import file_names


@given(st.lists(st.text(max_size=100), max_size=10))
def test_whatever_a_scenario_is_called_its_files_names_are_harmless_and_its_own(scenarios):
    names = file_names(scenarios)
    assert names.keys() == set(scenarios)
    assert len({name.lower() for name in names.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,70}", name) for name in names.values())


def test_a_usual_name_stays():
    assert file_names(["keras_step", "../../etc/passwd"]) == {
        "keras_step": "keras_step",
        "../../etc/passwd": "etc-passwd",
    }

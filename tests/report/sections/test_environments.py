"""What differs between environments."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.model.environment import Environment
from harness.report import markdown
from harness.report.blocks import Where
from harness.report.sections import environments
from harness.report.sections.environments import PACKAGES, SIDE_BY_SIDE
from tests.factories import ENVIRONMENTS, cell, run
from tests.report.sections.reading import all_tables, column, heads, rows, summaries, texts

OTHERS = "The other packages that differ"


def made(asked):
    (found,) = environments.make_sections(Results(asked, []))
    return found


def compared(*packages, tensorflow=None):
    """Environments that have these packages, `a`, `b` and so on, all of one TensorFlow unless it is given."""
    releases = tensorflow or ["2.0.0"] * len(packages)
    known = [
        Environment(name, release, "3.7", "2020-01-01T00:00:00Z")
        for name, release in zip("abcdefghij", releases, strict=False)
    ]
    pins = {each.name: {"tensorflow": each.tensorflow, **has} for each, has in zip(known, packages, strict=True)}
    return run([], environments=known, pins=pins, images={})


def overview(asked, where=Where.PASTE):
    return all_tables(made(asked), where)[0]


def test_the_report_has_a_line_an_environment_in_which_changes_stand_out():
    found = overview(run())
    assert heads(found) == ["environment", "TensorFlow", "Keras", "Python", "NumPy"]
    assert rows(found) == [
        ["tf1.14", "1.14.0", "2.2.5", "3.7", "1.17.4"],
        ["tf2.0", "2.0.0", "2.3.1", "3.7", "1.17.4"],
    ]
    assert [[entry.text for entry in line.entries if entry.stands_out] for line in found.lines] == [
        [],
        ["2.0.0", "2.3.1"],
    ]
    assert texts(made(run()), Where.PASTE) == ["Bold: different from the line above."]


def test_an_environment_in_which_a_package_moved_is_told():
    moved = replace(ENVIRONMENTS[0], name="moved", base="tf1.14", asked="tf1.14+keras-nightly==3.5")
    own = run().pins["tf1.14"]
    pins = {"tf1.14": own, "moved": {**own, "keras-nightly": "3.5"}}
    del pins["moved"]["keras"]
    found = made(run(environments=[ENVIRONMENTS[0], moved], pins=pins))
    assert rows(all_tables(found, Where.PASTE)[0])[1][2] == "3.5"
    told = f"moved is tf1.14 with keras-nightly 3.5 instead of keras {own['keras']}."
    assert told in texts(found, Where.PASTE)


def test_all_else_is_folded_away_in_the_details():
    found = made(compared({"numpy": "1", "six": "1"}, {"numpy": "2", "six": "2"}, tensorflow=["1.15.0", "2.0.0"]))
    assert [block.text for line in all_tables(found, Where.PASTE)[0].lines for block in line.entries].count("six") == 0
    assert summaries(found, Where.PASTE) == []
    assert summaries(found, Where.DETAILS) == [OTHERS, "Identical in all environments"]


def test_where_tensorflow_is_the_same_the_package_that_differs_is_in_the_report():
    found = made(compared({"six": "1", "wrapt": "1"}, {"six": "2", "wrapt": "1"}))
    (table,) = all_tables(found, Where.PASTE)
    assert heads(table) == ["environment", "TensorFlow", "Python", "six"]
    assert column(table, "six") == ["1", "2"]
    assert OTHERS not in summaries(found)


def test_two_of_one_tensorflow_among_others_have_their_differences_there_too():
    has = [{"six": "1", "wrapt": "1"}, {"six": "1", "wrapt": "2"}, {"six": "3", "wrapt": "2"}]
    found = made(compared(*has, tensorflow=["1.15.0", "2.0.0", "2.0.0"]))
    assert heads(all_tables(found, Where.PASTE)[0])[-1] == "six"
    (table,) = [table for table in all_tables(found) if table.caption == OTHERS]
    assert rows(table) == [["wrapt", "1", "2", "2"]]


def test_of_many_such_packages_the_others_are_counted_and_in_the_details():
    names = [f"p{index}" for index in range(PACKAGES + 2)]
    found = made(compared(dict.fromkeys(names, "1"), dict.fromkeys(names, "2")))
    assert heads(all_tables(found, Where.PASTE)[0])[-PACKAGES:] == names[:PACKAGES]
    assert "2 more packages differ." in " ".join(texts(found, Where.PASTE))
    (table,) = [table for table in all_tables(found) if table.caption == OTHERS]
    assert column(table, "package") == names[PACKAGES:]


@pytest.mark.parametrize(("second", "is_said"), [({}, True), ({"six": "2"}, False)])
def test_an_empty_place_is_explained(second, is_said):
    asked = compared({"six": "1"}, second, tensorflow=["1.15.0", "2.0.0"])
    assert ("Empty: the environment doesn't contain the package." in texts(made(asked))) is is_said


def test_what_was_not_recorded_does_not_stand_out():
    asked = run(pins={"tf1.14": {"tensorflow": "1.14.0", "keras": "2.2.5", "numpy": "1.13.0"}})
    assert column(overview(asked), "NumPy") == ["1.13.0", "not known"]
    assert not overview(asked).lines[1].entries[-1].stands_out


def test_tensorflows_package_is_a_column_where_it_differs():
    pins = {"tf1.14": {"tensorflow": "2.1.0"}, "tf2.0": {"tensorflow-cpu": "2.1.0"}}
    assert column(overview(run(pins=pins)), "TensorFlow's package") == ["tensorflow", "tensorflow-cpu"]
    assert "TensorFlow's package" not in heads(overview(run()))


def test_what_is_the_same_in_all_is_one_sentence():
    (sentence,) = [text for text in texts(made(run())) if "six" in text]
    assert sentence == "TensorFlow's package tensorflow, Python 3.7, NumPy 1.17.4, six 1.13.0."


def test_environments_that_differ_in_nothing_say_so():
    assert texts(made(compared({}, {})), Where.PASTE) == [
        "The environments don't differ in anything that was recorded."
    ]


def test_an_environment_alone_has_its_packages():
    found = made(run([cell()]))
    assert found.title == "Environment"
    assert "Contents of tf1.14" in summaries(found)
    assert len(rows(all_tables(found, Where.PASTE)[0])) == 1


def test_what_ran_is_shortened_as_engines_show_it():
    assert texts(made(run()))[-1] == (
        "Images, or locks of local environments: tf1.14 sha256:abababababab, tf2.0 sha256:abababababab."
    )


MANY = [{"numpy": str(index // 2), "six": str(index)} for index in range(SIDE_BY_SIDE + 1)]
RELEASES = [f"2.{index}.0" for index in range(SIDE_BY_SIDE + 1)]


@pytest.mark.parametrize("count", [SIDE_BY_SIDE, SIDE_BY_SIDE + 1])
def test_many_environments_have_a_line_each_in_which_changes_stand_out(count):
    found = overview(compared(*MANY[:count], tensorflow=RELEASES[:count]))
    assert [line.entries[-1].text for line in found.lines[:3]] == ["0", "0", "1"]
    assert [line.entries[-1].stands_out for line in found.lines[:5]] == [False, False, True, False, True]


def test_of_many_environments_other_packages_are_what_changed_from_the_line_above():
    has = [{"absl-py": "1", "six": "1"}, {"absl-py": "2", "six": "1"}, {"absl-py": "2"}]
    found = made(compared(*has, *[has[2]] * (SIDE_BY_SIDE - 2), tensorflow=RELEASES))
    assert heads(all_tables(found, Where.PASTE)[0]) == ["environment", "TensorFlow", "Python"]
    (table,) = all_tables(found, Where.DETAILS)
    assert rows(table)[:4] == [["a", "absl-py 1, six 1"], ["b", "absl-py 2"], ["c", "-six"], ["d", ""]]


def test_many_environments_of_one_tensorflow_have_the_package_that_differs():
    assert heads(overview(compared(*MANY)))[-1] == "six"


def test_every_line_has_an_entry_under_every_heading():
    for asked in (run(), compared(*MANY), compared(*MANY, tensorflow=RELEASES), run(environments=ENVIRONMENTS)):
        for table in all_tables(made(asked)):
            assert {len(line.entries) for line in table.lines} == {len(table.heads)}


def test_a_run_of_nothing_has_no_section():
    assert not list(environments.make_sections(Results(run([], images={}, pins={}), [])))


def test_versions_of_a_changed_release_only():
    known = [replace(ENVIRONMENTS[0], name=f"tf9.{minor}", tensorflow=f"9.{minor // 2}.0") for minor in range(7)]
    pins = {entry.name: {"tensorflow": entry.tensorflow, "six": "1"} for entry in known}
    found = overview(run([], environments=known, pins=pins))
    assert [line.entries[1].stands_out for line in found.lines] == [False, False, True, False, True, False, True]


def test_many_packages_are_folded_once_in_the_details():
    first, second = ({f"p{index}": version for index in range(60)} for version in "12")
    results = Results(compared(first, second, tensorflow=["1.15.0", "2.0.0"]), [])
    assert markdown.render_full(list(environments.make_sections(results))).count("<details>") == 2

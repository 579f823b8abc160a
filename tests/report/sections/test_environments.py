"""What differs between environments."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.environment import Environment
from harness.report import markdown
from harness.report.blocks import Where
from harness.report.sections import environments
from harness.report.sections.environments import PACKAGES, SIDE_BY_SIDE
from tests.factories import ENVIRONMENTS, cell, run
from tests.report.sections.reading import all_tables, column, heads, rows, summaries, texts

OTHERS = "The other packages that differ"


def make_section(of):
    (section,) = environments.make_sections(Results(of, []))
    return section


def run_with(*packages, tensorflow=None):
    """Environments that have these packages, `a`, `b` and so on, all of one TensorFlow unless it is given."""
    releases = tensorflow or ["2.0.0"] * len(packages)
    known = [
        Environment(name, release, "3.7", "2020-01-01T00:00:00Z")
        for name, release in zip("abcdefghij", releases, strict=False)
    ]
    pins = {
        environment.name: {"tensorflow": environment.tensorflow, **names}
        for environment, names in zip(known, packages, strict=True)
    }
    return run([], environments=known, pins=pins, images={})


def find_overview(of):
    return all_tables(make_section(of), Where.PASTE)[0]


def find_others(section):
    (table,) = [table for table in all_tables(section) if table.caption == OTHERS]
    return table


def test_the_report_has_a_line_an_environment_in_which_changes_stand_out():
    overview = find_overview(run())
    assert heads(overview) == ["environment", "TensorFlow", "Keras", "Python", "NumPy"]
    assert rows(overview) == [
        ["tf1.14", "1.14.0", "2.2.5", "3.7", "1.17.4"],
        ["tf2.0", "2.0.0", "2.3.1", "3.7", "1.17.4"],
    ]
    strong = [[entry.text for entry in line.entries if entry.stands_out] for line in overview.lines]
    assert strong == [[], ["2.0.0", "2.3.1"]]


def test_an_environment_in_which_a_package_moved_has_its_version():
    moved = replace(ENVIRONMENTS[0], name="moved", base="tf1.14", asked="tf1.14+keras-nightly==3.5")
    old = run().pins["tf1.14"]
    new = {name: version for name, version in old.items() if name != "keras"} | {"keras-nightly": "3.5"}
    section = make_section(run(environments=[ENVIRONMENTS[0], moved], pins={"tf1.14": old, "moved": new}))
    assert rows(all_tables(section, Where.PASTE)[0])[1][2] == "3.5"
    text = f"moved is tf1.14 with keras-nightly 3.5 instead of keras {old['keras']}."
    assert text in texts(section, Where.PASTE)


def test_all_else_is_folded_away_in_the_details():
    section = make_section(run_with({"numpy": "1", "six": "1"}, {"numpy": "2", "six": "2"}, tensorflow=["1.15", "2.0"]))
    assert "six" not in heads(all_tables(section, Where.PASTE)[0])
    assert summaries(section, Where.PASTE) == []
    assert summaries(section, Where.DETAILS)[0] == OTHERS
    assert len(summaries(section, Where.DETAILS)) == 2


def test_where_tensorflow_is_the_same_the_package_that_differs_is_in_the_report():
    section = make_section(run_with({"six": "1", "wrapt": "1"}, {"six": "2", "wrapt": "1"}))
    (table,) = all_tables(section, Where.PASTE)
    assert heads(table) == ["environment", "TensorFlow", "Python", "six"]
    assert column(table, "six") == ["1", "2"]
    assert OTHERS not in summaries(section)
    # and in that of two among others, whose other differences are in the details
    packages = [{"six": "1", "wrapt": "1"}, {"six": "1", "wrapt": "2"}, {"six": "3", "wrapt": "2"}]
    section = make_section(run_with(*packages, tensorflow=["1.15.0", "2.0.0", "2.0.0"]))
    assert heads(all_tables(section, Where.PASTE)[0])[-1] == "six"
    assert rows(find_others(section)) == [["wrapt", "1", "2", "2"]]


def test_of_many_such_packages_the_others_are_counted_and_in_the_details():
    names = [f"p{at}" for at in range(PACKAGES + 2)]
    section = make_section(run_with(dict.fromkeys(names, "1"), dict.fromkeys(names, "2")))
    assert heads(all_tables(section, Where.PASTE)[0])[-PACKAGES:] == names[:PACKAGES]
    assert "2 more packages" in " ".join(texts(section, Where.PASTE))
    assert column(find_others(section), "package") == names[PACKAGES:]


def test_an_empty_place_is_explained():
    for second, is_explained in (({}, True), ({"six": "2"}, False)):
        section = make_section(run_with({"six": "1"}, second, tensorflow=["1.15.0", "2.0.0"]))
        assert ("Empty: the environment doesn't contain the package." in texts(section)) is is_explained


def test_what_was_not_recorded_does_not_stand_out():
    overview = find_overview(run(pins={"tf1.14": {"tensorflow": "1.14.0", "keras": "2.2.5", "numpy": "1.13.0"}}))
    assert column(overview, "NumPy") == ["1.13.0", "not known"]
    assert not overview.lines[1].entries[-1].stands_out


def test_tensorflows_package_is_a_column_where_it_differs():
    pins = {"tf1.14": {"tensorflow": "2.1.0"}, "tf2.0": {"tensorflow-cpu": "2.1.0"}}
    assert column(find_overview(run(pins=pins)), "TensorFlow's package") == ["tensorflow", "tensorflow-cpu"]
    assert "TensorFlow's package" not in heads(find_overview(run()))


def test_what_is_the_same_and_what_ran_is_one_sentence_each():
    assert "six 1.13.0." in texts(make_section(run()))[-2]
    assert texts(make_section(run()))[-1].endswith(": tf1.14 sha256:abababababab, tf2.0 sha256:abababababab.")
    assert texts(make_section(run_with({}, {})), Where.PASTE) == [
        "The environments don't differ in anything that was recorded."
    ]


def test_an_environment_alone_has_its_packages():
    section = make_section(run([cell()]))
    assert section.title == "Environment"
    assert "Contents of tf1.14" in summaries(section)
    assert len(rows(all_tables(section, Where.PASTE)[0])) == 1
    assert not list(environments.make_sections(Results(run([], images={}, pins={}), [])))


MANY = [{"numpy": str(at // 2), "six": str(at)} for at in range(SIDE_BY_SIDE + 1)]
RELEASES = [f"2.{at}.0" for at in range(SIDE_BY_SIDE + 1)]


def test_many_environments_have_a_line_each_in_which_changes_stand_out():
    for count in (SIDE_BY_SIDE, SIDE_BY_SIDE + 1):
        overview = find_overview(run_with(*MANY[:count], tensorflow=RELEASES[:count]))
        assert [line.entries[-1].text for line in overview.lines[:3]] == ["0", "0", "1"]
        assert [line.entries[-1].stands_out for line in overview.lines[:5]] == [False, False, True, False, True]
    assert heads(find_overview(run_with(*MANY)))[-1] == "six"


def test_of_many_environments_other_packages_are_what_changed_from_the_line_above():
    packages = [{"absl-py": "1", "six": "1"}, {"absl-py": "2", "six": "1"}, {"absl-py": "2"}]
    section = make_section(run_with(*packages, *[packages[2]] * (SIDE_BY_SIDE - 2), tensorflow=RELEASES))
    assert heads(all_tables(section, Where.PASTE)[0]) == ["environment", "TensorFlow", "Python"]
    (table,) = all_tables(section, Where.DETAILS)
    assert rows(table)[:4] == [["a", "absl-py 1, six 1"], ["b", "absl-py 2"], ["c", "-six"], ["d", ""]]


def test_every_line_has_an_entry_under_every_heading():
    for of in (run(), run_with(*MANY), run_with(*MANY, tensorflow=RELEASES), run(environments=ENVIRONMENTS)):
        for table in all_tables(make_section(of)):
            assert {len(line.entries) for line in table.lines} == {len(table.heads)}


def test_versions_of_a_changed_release_stand_out():
    known = [replace(ENVIRONMENTS[0], name=f"tf9.{minor}", tensorflow=f"9.{minor // 2}.0") for minor in range(7)]
    pins = {environment.name: {"tensorflow": environment.tensorflow, "six": "1"} for environment in known}
    overview = find_overview(run([], environments=known, pins=pins))
    assert [line.entries[1].stands_out for line in overview.lines] == [False, False, True, False, True, False, True]


def test_many_packages_are_folded_once_in_the_details():
    first, second = ({f"p{at}": version for at in range(60)} for version in "12")
    section = make_section(run_with(first, second, tensorflow=["1.15.0", "2.0.0"]))
    assert markdown.render_full([section]).count("<details>") == 2

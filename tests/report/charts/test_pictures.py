from harness.report.charts.picture import Kind
from harness.report.charts.pictures import pictures
from tests.report.charts.examples import document

KINDS = [Kind.RATIOS, Kind.TIMES, Kind.EFFECTS, Kind.PHASES, Kind.COURSE]


def test_a_table_has_its_comparisons_times_effects_phases_and_launches():
    made = pictures(document())
    assert [each.kind for each in made] == KINDS
    assert [each.file for each in made] == [f"charts/{kind.value}-step.svg" for kind in KINDS]


def test_what_stands_for_a_picture_says_its_content():
    ratios, times, effects, phases, course = (each.words.alt for each in pictures(document()))
    assert ratios.startswith("Chart of 10 comparisons of step, from -")
    assert "%, slower (fit, each release's default mode: tf2.0 against tf1.14) to +" in ratios
    assert times.startswith("Chart of the time per step of 8 cells of step, from ")
    assert effects.startswith("Chart of what accounts for the times of step, 6 effects: from ×0.")
    assert course.startswith("Chart of 50 launches of step in order of time: ")
    assert phases.startswith("Chart of the phases of 8 cells of step before the steady state, most of it import: ")


def test_words_are_sentences_without_a_template_left_in_them():
    for each in pictures(document()):
        text = " ".join([each.words.title, *each.words.notes, each.words.axis, each.words.alt])
        assert not any(mark in text for mark in ("{", "}", "None", "  "))
        assert all(note.endswith(".") for note in each.words.notes)


def test_the_specifications_are_vega_lite():
    import altair

    for each in pictures(document()):
        altair.Chart.from_dict(dict(each.specification))

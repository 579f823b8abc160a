"""Artifacts that were not kept."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.report.sections import unsaved_artifacts
from tests.factories import cells, rounds, run
from tests.report.sections.reading import all_tables, rows, texts

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))


def test_where_all_was_kept_there_is_no_section():
    assert not list(unsaved_artifacts.make_sections(Results(run(), rounds(TIMES))))


def test_launches_that_are_ok_tell_what_was_not_kept_too():
    first, *others = rounds(TIMES)
    launches = [replace(first, not_kept=["a: not a regular file", "b: deeper than 8 folders"]), *others]
    (section,) = unsaved_artifacts.make_sections(Results(run(), launches))
    (table,) = all_tables(section)
    assert [line[2] for line in rows(table)] == ["a: not a regular file; b: deeper than 8 folders"]
    assert "1 launch left unsaved artifacts" in texts(section)[0]

"""What changed since an earlier run, as Markdown."""

import re
from dataclasses import replace

from harness.history import changes
from harness.history.states import State, judge_series
from harness.model.history import Note
from tests.history.nights import changed, decided, entries, key, noise, run_of, season, series


def test_a_change_that_was_found_since_is_told_with_what_changed_before_it() -> None:
    of, runs, notes = season()
    since = runs[83]
    before = [judge_series(item) for item in changes.cut_series([entry.series for entry in of], since)]
    text = changes.render(before, of, since, runs, notes)
    assert text.startswith("# History: since the run of 23 Oct 2026\n\n36 runs: ")
    assert "**Confirmed: 1 series slower since the run of 24 Oct 2026.** Before that run, this changed" in text
    assert "- Before the run of 24 Oct 2026: the lock of tf2.1 (4f1c → 9be2) (2 series)" in text
    assert "- Note of 2 Nov 2026: the machine moved to the other room &lt;b&gt;&amp;amp;&lt;/b&gt;" in text
    assert "BIOS" not in text


def test_what_stands_as_it_did_is_in_a_table_of_its_own() -> None:
    of, runs, notes = season()
    text = changes.render(of, of, runs[-1], runs, notes)
    assert "No run was added since then." in text
    assert "No series changed its state." in text
    assert text.index("## Unchanged findings") < text.index("gather tf2.1 cpu vs tf1.14")
    assert "## Breaks and notes" not in text


def test_a_confirmation_says_what_the_series_was_before() -> None:
    of = changed(series(key(), [*noise(10), *noise(6, 0.1, seed=2)]), lock=("9be2", 10))
    before = judge_series(of)
    after = judge_series(of, [decided(before, confirmed=True)])
    assert [finding.state for finding in after.findings] == [State.CONFIRMED]
    text = changes.render([before], [after], entries(16)[-1], entries(16), []).replace("\u00a0", " ")
    assert "| confirmed | suspected |" in text
    # what both sides showed stands beside what nights do
    assert re.search(r"\| \+1[01]\.\d % \(.*\) \| \+8\.9 % \(\+8\.0 to \+9\.8\) \|", text)


def test_a_refutation_says_what_was_measured() -> None:
    of = changed(series(key(), [*noise(10), *noise(6, 0.1, seed=2)]), lock=("9be2", 10))
    before = judge_series(of)
    after = judge_series(of, [decided(before, confirmed=False)])
    text = changes.render([before], [after], entries(16)[-1], entries(16), []).replace("\u00a0", " ")
    assert "| +0.1 % (-0.1 to +0.3) |" in text


def test_what_is_found_no_longer_is_said() -> None:
    of = series(key(), [*noise(10), *noise(6, 0.1, seed=2)])
    found = judge_series(of)
    assert found.findings
    text = changes.render([found], [replace(found, findings=[], changes=[])], entries(16)[-2], entries(16), [])
    assert "No longer found: step tf2.1 cpu vs tf1.14 (+1" in text
    assert "1 new run: " in text


def test_without_an_earlier_run_everything_is_new() -> None:
    of, runs, notes = season()
    text = changes.render([], of, None, runs, notes)
    assert text.startswith("# History: all runs\n")
    assert "120 runs: " in text
    assert "## Unchanged findings" not in text
    assert "the driver (570.86 → 575.51) (16 series; runs before and after it are not compared)" in text


def test_the_last_line_says_up_to_which_run_it_tells() -> None:
    of, runs, notes = season()
    text = changes.render([], of, None, runs, notes)
    assert changes.read_last_run(text) == runs[-1].run
    assert changes.read_last_run("# Something else\n") == ""
    assert changes.read_last_run(f"{text}\nand somebody’s words") == ""


def test_a_series_until_a_run_has_the_points_up_to_it_and_is_left_out_without_any() -> None:
    one, other = series(key(), noise(5)), series(key("later"), noise(5))
    late = replace(other, points=other.points[3:])
    assert [len(entry.points) for entry in changes.cut_series([one, late], entries(5)[2])] == [3]
    assert changes.cut_series([one], entries(5)[1])[0].points[-1].run == run_of(1)[0]


def test_more_than_a_comment_has_room_for_is_cut_with_a_word_on_where_it_is() -> None:
    of = [judge_series(series(key(n=str(at) * 40), [*noise(10), *noise(6, 0.1, seed=2)])) for at in range(600)]
    text = changes.render([], of, None, entries(16), [Note("2026-08-02", "moved")])
    assert len(text) < 65_000
    assert "The rest exceeds the size limit" in text
    assert changes.read_last_run(text)

"""What changed since an earlier run, as Markdown."""

from dataclasses import replace

from harness.history import changes
from harness.model.history import Note
from tests.history.nights import changed, decided, entries, judge_series, key, noise, run_of, season, series


def test_what_changed_since_a_run(golden):
    series_list, runs, notes = season()
    since = runs[83]
    before = [judge_series(item) for item in changes.cut_series([entry.series for entry in series_list], since)]
    assert changes.render(before, series_list, since, runs, notes).replace("\u00a0", " ") == golden
    # note that nothing is new since the newest run
    assert changes.render(series_list, series_list, runs[-1], runs, notes).replace("\u00a0", " ") == golden


def test_a_confirmation_a_refutation_and_what_is_found_no_longer(golden):
    one_series = changed(series(key(), [*noise(10), *noise(6, 0.1, seed=2)]), lock=("9be2", 10))
    before, runs = judge_series(one_series), entries(16)
    afters = {
        "confirmed": judge_series(one_series, [decided(before, confirmed=True)]),
        "refuted": judge_series(one_series, [decided(before, confirmed=False)]),
        "found no longer": replace(before, findings=[], changes=[]),
    }
    texts = {name: changes.render([before], [after], runs[-2], runs, []) for name, after in afters.items()}
    assert "\n".join(f"({name})\n{text}" for name, text in texts.items()).replace("\u00a0", " ") == golden


def test_without_an_earlier_run_everything_is_new(golden):
    series_list, runs, notes = season()
    text = changes.render([], series_list, None, runs, notes)
    assert text.replace("\u00a0", " ") == golden


def test_a_series_until_a_run_has_the_points_up_to_it_and_is_left_out_without_any():
    one, other = series(key(), noise(5)), series(key("later"), noise(5))
    late = replace(other, points=other.points[3:])
    assert [len(entry.points) for entry in changes.cut_series([one, late], entries(5)[2])] == [3]
    assert changes.cut_series([one], entries(5)[1])[0].points[-1].run == run_of(1)[0]


def test_more_than_a_comment_has_room_for_is_cut():
    one = judge_series(series(key(), [*noise(10), *noise(6, 0.1, seed=2)]))
    series_list = [
        replace(
            one,
            series=replace(one.series, key=key(n=name)),
            findings=[replace(finding, key=key(n=name)) for finding in one.findings],
        )
        for name in (str(number) * 40 for number in range(600))
    ]
    text = changes.render([], series_list, None, entries(16), [Note("2026-08-02", "moved")])
    assert 30_000 < len(text) < 65_000
    assert "harness history report -o history.html" in text

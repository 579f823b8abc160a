"""Breaks: what changed between two nights, named, and whether anything is compared across it."""

from harness.history.segments import SegmentBoundary, find_boundaries, split_segments
from tests.history.series import series


def test_a_break_says_what_changed_to_what_and_whether_it_is_a_cut():
    boundaries = [
        ({"driver": "NVIDIA H200 570.86"}, True, "the driver (none → NVIDIA H200 570.86)"),
        ({"kit": "k2"}, True, "the kit (k1 → k2)"),
        ({"reference_lock": "dddddddddddd"}, True, "the lock of tf1.14 (cccccccc → dddddddd)"),
        ({"lock": "bbbbbbbbbbbb"}, False, "the lock of tf2.1 (aaaaaaaa → bbbbbbbb)"),
        # an image is another with another lock
        ({"lock": "bbbbbbbbbbbb", "image": "2222222222"}, False, "the lock of tf2.1 (aaaaaaaa → bbbbbbbb)"),
        ({"image": "sha256:2222222222"}, False, "the image of tf2.1 (11111111 → 22222222)"),
        ({"scenario": "s2"}, False, "the file of step (s1 → s2)"),
    ]
    for origin, is_cut, words in boundaries:
        assert find_boundaries(series([0.0] * 4, {2: origin})) == [SegmentBoundary(2, is_cut, words)]
    # what is measured by and not with is none
    assert find_boundaries(series([0.0] * 4, {2: {"machine": "new name", "harness": "9.9", "commit": "abc"}})) == []
    assert find_boundaries(series([])) == []


def test_another_version_of_a_line_is_a_mark_and_of_its_baseline_a_cut():
    one_series = series(
        [0.0] * 5,
        {
            0: {"version": "", "reference_version": ""},
            1: {"version": "tf-nightly==1", "reference_version": "tf2.21"},
            2: {"version": "tf-nightly==2", "lock": "b", "image": "2"},
            4: {"reference_version": "tf2.22", "reference_lock": "d"},
        },
    )
    # points of earlier versions of harness have no version
    assert find_boundaries(one_series) == [
        SegmentBoundary(2, False, "the version of tf2.1 (tf-nightly==1 → tf-nightly==2)", is_version=True),
        SegmentBoundary(4, True, "the version of tf1.14 (tf2.21 → tf2.22)"),
    ]


def test_an_epoch_begins_at_each_cut_and_at_no_mark():
    one_series = series([0.0] * 9, {2: {"lock": "b"}, 4: {"kit": "k2", "driver": "d"}, 7: {"reference_lock": "d"}})
    assert split_segments(one_series, find_boundaries(one_series)) == [range(4), range(4, 7), range(7, 9)]
    assert split_segments(series([]), []) == [range(0)]

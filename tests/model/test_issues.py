from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import UsageError
from harness.model.issues import HOW_TO_WRITE, REPOSITORIES, Issue, make_unknown_error, parse


@pytest.mark.parametrize(
    ("text", "repository", "number"),
    [
        ("T#33487", "tensorflow/tensorflow", 33487),
        (" t#33487 ", "tensorflow/tensorflow", 33487),
        ("33487", "tensorflow/tensorflow", 33487),
        ("#33487", "tensorflow/tensorflow", 33487),
        ("K#13118", "keras-team/keras", 13118),
        ("tk#238", "keras-team/tf-keras", 238),
        ("Tensorflow/TensorFlow#120", "tensorflow/tensorflow", 120),
        ("tensorflow/addons#2273", "tensorflow/addons", 2273),
        ("https://github.com/tensorflow/tensorflow/issues/33487", "tensorflow/tensorflow", 33487),
        ("https://github.com/tensorflow/tensorflow/issues/33487#issuecomment-1", "tensorflow/tensorflow", 33487),
        ("http://www.github.com/keras-team/keras/pull/22512/files?w=1", "keras-team/keras", 22512),
        ("github.com/tensorflow/addons/issues/2273/", "tensorflow/addons", 2273),
    ],
)
def test_a_name_a_number_or_a_url_is_an_issue(text: str, repository: str, number: int) -> None:
    assert parse(text) == Issue(repository, number)


@pytest.mark.parametrize(
    "text",
    [
        *("", "T#", "T33487", "X#1", "T#0", "T#-1", "T#1.5", "T#1234567890", "T#١", "a/b", "../..#1"),
        *("https://github.com/a/b", "https://github.com//b/issues/1", "https://gitlab.com/a/b/issues/1"),
        "https://evil.org/github.com/a/b/issues/1",
    ],
)
def test_anything_else_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert repr(text) in refused.value.message
    assert refused.value.advice == HOW_TO_WRITE


@given(st.sampled_from([*REPOSITORIES.values(), "tensorflow/addons", "a-b/c.d_e"]), st.integers(1, 10**9 - 1))
def test_what_an_issue_is_called_and_where_it_is_read_mean_it_again(repository: str, number: int) -> None:
    issue = Issue(repository, number)
    assert parse(issue.short) == parse(issue.url) == issue


@given(st.text("TK#/githubcom.:0123456789 -ab", max_size=40))
def test_whatever_is_typed_is_an_issue_or_a_sentence(text: str) -> None:
    with suppress(UsageError):
        assert parse(text).number > 0


def test_an_issue_that_nobody_claims_anything_of_gets_all_and_no_near_miss() -> None:
    error = make_unknown_error(parse("T#33488"), [parse("T#33487"), parse("K#13118"), parse("T#33487")])
    assert error.message == "No scenario checks a claim of T#33488."
    assert error.advice.startswith("Issues with claims: K#13118, T#33487. ")
    assert "Issues with claims: none." in make_unknown_error(parse("T#1"), []).advice


def test_many_known_issues_are_not_listed_but_where_they_are() -> None:
    error = make_unknown_error(parse("T#99999"), [parse(f"K#{number}") for number in range(19990, 20010)])
    assert error.message == "No scenario checks a claim of T#99999."
    assert error.advice.startswith("To list the 20 issues with claims, run `harness repro list`. Use T#33487 ")

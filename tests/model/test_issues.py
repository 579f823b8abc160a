import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import UsageError
from harness.model.issues import HOW_TO_WRITE, REPOSITORIES, Issue, make_unknown_error, parse

GITHUB = "https://github.com/tensorflow/tensorflow/issues/33487"
NAMES = {
    "T#33487": ("tensorflow/tensorflow", 33487),
    "tensorflow#33487": ("tensorflow/tensorflow", 33487),
    " t#33487 ": ("tensorflow/tensorflow", 33487),
    "33487": ("tensorflow/tensorflow", 33487),
    "#33487": ("tensorflow/tensorflow", 33487),
    "K#13118": ("keras-team/keras", 13118),
    "tk#238": ("keras-team/tf-keras", 238),
    "Tensorflow/TensorFlow#120": ("tensorflow/tensorflow", 120),
    "tensorflow/addons#2273": ("tensorflow/addons", 2273),
    GITHUB: ("tensorflow/tensorflow", 33487),
    f"{GITHUB}#issuecomment-1": ("tensorflow/tensorflow", 33487),
    "http://www.github.com/keras-team/keras/pull/22512/files?w=1": ("keras-team/keras", 22512),
    "github.com/tensorflow/addons/issues/2273/": ("tensorflow/addons", 2273),
}
WRONG = [
    *("", "T#", "T33487", "X#1", "T#0", "T#-1", "T#1.5", "T#1234567890", "T#١", "a/b", "../..#1"),
    *("https://github.com/a/b", "https://github.com//b/issues/1", "https://gitlab.com/a/b/issues/1"),
    "https://evil.org/github.com/a/b/issues/1",
]


def test_a_name_a_number_or_a_url_is_an_issue_and_nothing_else_is():
    assert {text: parse(text) for text in NAMES} == {text: Issue(*parts) for text, parts in NAMES.items()}
    for text in WRONG:
        with pytest.raises(UsageError) as raised:
            parse(text)
        assert (repr(text) in raised.value.message, raised.value.advice) == (True, HOW_TO_WRITE)


@given(st.sampled_from([*REPOSITORIES.values(), "tensorflow/addons", "a-b/c.d_e"]), st.integers(1, 10**9 - 1))
def test_what_an_issue_is_called_and_where_it_is_read_mean_it_again(repository, number):
    issue = Issue(repository, number)
    assert parse(issue.short) == parse(issue.url) == issue


def test_an_issue_that_nobody_claims_anything_of_gets_all_and_of_many_where_they_are(snapshot):
    issues_with_claims = {
        "none": [],
        "some": [parse("T#33487"), parse("K#13118"), parse("T#33487")],
        "many": [parse(f"K#{number}") for number in range(19990, 20010)],
    }
    assert {
        case: str(make_unknown_error(parse("T#33488"), issues)) for case, issues in issues_with_claims.items()
    } == snapshot

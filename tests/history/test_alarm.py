"""One rolling issue per root cause, against a stub of GitHub's API that answers over HTTP."""

import re
from dataclasses import replace

import pytest

from harness.history.alarm import BODY_CHARACTERS, LABEL, MOST_NEW, Alarm, GitHub, Kind, alarms, steps
from harness.history.states import findings
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.history import Decision
from tests.github import REPOSITORY, TOKEN, serving
from tests.history.series import KEY, series, stepped

NIGHT = "2026-11-20T04:00:00+00:00"


def alarm(cause="a", *, series=("one",), since="2026-11-18T04:00:00+00:00", confirmed=NIGHT, body="It is slower."):
    return Alarm(cause, series, since, confirmed, f"Slower: {cause}", body)


@pytest.fixture
def stub():
    with serving() as found:
        yield found


@pytest.fixture
def github(stub):
    return GitHub(stub.address, REPOSITORY, TOKEN)


def night(github, *alarms):
    """One night: look, decide, do."""
    done = steps(alarms, github.ours())
    for step in done:
        github.do(step)
    return [step.kind for step in done]


def test_a_cause_is_opened_once_and_edited_in_place(stub, github):
    assert night(github, alarm()) == [Kind.OPEN]
    assert night(github, alarm()) == [Kind.KEEP]
    assert night(github, alarm(body="It is slower, in two.")) == [Kind.EDIT]
    (issue,) = stub.issues
    assert issue["title"] == "Slower: a"
    assert issue["body"].endswith("It is slower, in two.")
    assert issue["labels"] == [LABEL]
    assert stub.writes == ["POST /repos/someone/fork/issues", "PATCH /repos/someone/fork/issues/1"]


def test_two_causes_are_two_issues_and_another_ones_issue_is_left_alone(stub, github):
    stub.add(title="Nightly fails", labels=[LABEL], body="written by hand")
    stub.add(title="Slower: a", labels=[], body=alarm().text)
    assert night(github, alarm("a"), alarm("b", series=["two"])) == [Kind.OPEN, Kind.OPEN]
    assert night(github, alarm("a"), alarm("b", series=["two"])) == [Kind.KEEP, Kind.KEEP]
    assert len(stub.issues) == 4


def test_a_closed_issue_is_opened_again_only_where_the_cause_was_confirmed_since(stub, github):
    night(github, alarm())
    stub.close(1, "2026-11-21T12:00:00Z")
    assert night(github, alarm()) == [Kind.KEEP]
    assert stub.issues[0]["state"] == "closed"
    assert night(github, alarm(confirmed="2026-11-22T04:00:00+00:00")) == [Kind.REOPEN]
    assert (stub.issues[0]["state"], len(stub.issues), stub.comments[0][0]) == ("open", 1, 1)


@pytest.mark.parametrize("reason", ["not_planned", "duplicate"])
def test_what_somebody_closed_as_not_planned_stays_closed(stub, github, reason):
    night(github, alarm())
    stub.close(1, "2026-11-21T12:00:00Z", reason)
    assert night(github, alarm(confirmed="2026-11-25T04:00:00+00:00")) == [Kind.KEEP]
    assert (stub.issues[0]["state"], len(stub.issues)) == ("closed", 1)


def test_a_beginning_that_moves_by_some_nights_is_no_second_issue(stub, github):
    night(github, alarm("a"))
    assert night(github, alarm("a, moved", since="2026-11-16T04:00:00+00:00")) == [Kind.EDIT]
    # another change of the same series, weeks later, is one
    assert night(github, alarm("later", since="2026-12-20T04:00:00+00:00")) == [Kind.OPEN]


def test_two_causes_of_one_issue_are_told_in_it_together(stub, github):
    night(github, alarm("a", series=["one", "two"]))
    again = [alarm("b", series=["one"], body="First."), alarm("c", series=["two"], body="Second.")]
    assert night(github, *again) == [Kind.EDIT]
    assert "First." in stub.issues[0]["body"]
    assert "Second." in stub.issues[0]["body"]
    assert night(github, *again) == [Kind.KEEP]


def test_a_night_that_breaks_everything_opens_a_few_and_the_next_night_the_others(stub, github):
    many = [alarm(str(number), series=[str(number)]) for number in range(MOST_NEW + 2)]
    assert night(github, *many) == [*[Kind.OPEN] * MOST_NEW, Kind.HOLD, Kind.HOLD]
    assert night(github, *many) == [*[Kind.KEEP] * MOST_NEW, Kind.OPEN, Kind.OPEN]


def test_every_page_of_issues_is_looked_at_and_no_pull_request(stub, github):
    stub.page = 2
    for number in range(5):
        stub.add(title=str(number), labels=[LABEL], body=alarm(str(number), series=[str(number)]).text)
    stub.add(title="pull", labels=[LABEL], body=alarm("5", series=["5"]).text, pull_request={})
    assert [issue.title for issue in github.ours()] == ["0", "1", "2", "3", "4"]


def test_a_text_that_is_too_long_is_cut_between_lines_and_says_so(stub, github):
    long = alarm(body="\n".join(f"| series {number} | slower |" for number in range(9000)), series=["x" * 8] * 500)
    assert len(long.text) <= BODY_CHARACTERS
    assert long.text.endswith("| slower |\n\n… The rest has no room here: `harness history report` has it.")
    assert night(github, long) == [Kind.OPEN]
    assert night(github, long) == [Kind.KEEP]


@pytest.mark.parametrize(
    "body", [None, "", "<!-- harness-alarm {} -->", "<!-- harness-alarm {x} -->", "edited", "<!-- harness-alarm [] -->"]
)
def test_an_issue_whose_mark_somebody_edited_is_none_of_ours(stub, github, body):
    stub.add(labels=[LABEL], body=body)
    assert night(github, alarm()) == [Kind.OPEN]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "GITHUB_TOKEN is wrong, or has expired."),
        (403, "needs the permission `issues: write`"),
        (404, "GITHUB_REPOSITORY is wrong"),
        (410, "Turn issues on"),
        (500, "GitHub answers 500"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_the_token(stub, github, status, told):
    stub.fails = status
    with pytest.raises(CannotRunHereError) as error:
        github.ours()
    assert told in str(error.value)
    assert TOKEN not in str(error.value)


def test_an_address_where_nothing_answers_is_told():
    with serving() as gone:
        address = gone.address
    with pytest.raises(CannotRunHereError, match="cannot be asked"):
        GitHub(address, REPOSITORY, TOKEN).do(steps([alarm()], [])[0])


def test_what_is_no_repository_is_refused():
    with pytest.raises(UsageError, match="is no repository"):
        GitHub("http://127.0.0.1", "../../user", TOKEN)


def test_a_next_page_elsewhere_does_not_get_the_token(stub, github):
    stub.page = 1
    for number in range(2):
        stub.add(title=str(number), labels=[LABEL], body=alarm(str(number)).text)
    stub.address = "http://127.0.0.1:9"
    with pytest.raises(CannotRunHereError, match="does not get the token"):
        github.ours()


def slower(share=0.08, key=KEY):
    """A series that is slower from its 15th night on, with another lock."""
    return series(stepped(14, 24, share), {14: {"lock": "bbbbbbbbbbbb"}}, key)


def decision(of, *, confirmed=True, when="2026-01-25T04:00:00+00:00"):
    (finding,) = findings([of])
    return Decision(of.key, finding.since, finding.suspects, confirmed, "run-c", when, 1.08, 1.06, 1.1)


def test_what_is_only_suspected_refuted_or_faster_gives_no_alarm():
    of = slower()
    assert alarms([of], []) == []
    assert alarms([of], [decision(of, confirmed=False)]) == []
    faster = slower(-0.08)
    assert alarms([faster], [decision(faster)]) == []


def test_an_alarm_says_what_takes_longer_since_when_what_changed_and_how_it_was_confirmed():
    of = slower()
    (told,) = alarms([of], [decision(of)])
    assert told.title == "Slower since 2026-01-15: step in tf2.1, on m-1"
    assert told.confirmed == "2026-01-25T04:00:00+00:00"
    assert (
        "since the run run-014 of 2026-01-15. What changed then: the lock of tf2.1 (aaaaaaaa → bbbbbbbb)." in told.body
    )
    assert re.search(r"\| step tf2\.1 cpu call=fit \| tf1\.14 \| 1\.0[789]× \(1\.\d\d to 1\.\d\d\) \|", told.body)
    assert (
        "Confirmed on 2026-01-25: both sides were measured again side by side in the run run-c, 1.08× (1.06"
        in told.body
    )
    assert "harness history show --points -s step -e tf2.1" in told.body


def test_series_of_one_cause_are_one_alarm():
    both = [slower(key=replace(KEY, axes=(("call", call),))) for call in ("fit", "predict")]
    (told,) = alarms(both, [decision(each) for each in both])
    assert told.title == "Slower since 2026-01-15: step in tf2.1 and 1 more, on m-1"
    assert len(set(told.series)) == 2


def test_what_a_stranger_named_calls_nobody_and_is_no_markup():
    of = slower(key=replace(KEY, scenario="@team <b>x</b> | `y`"))
    (told,) = alarms([of], [decision(of)])
    table = next(line for line in told.body.splitlines() if "team" in line and line.startswith("|"))
    assert "@\u200bteam &lt;b&gt;x&lt;/b&gt; \\| \\`y\\`" in table

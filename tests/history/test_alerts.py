"""One rolling issue per root cause: the nightly script runs with a fake `gh`."""

import importlib.util
import io
import json
import re
import subprocess
from dataclasses import replace
from datetime import date
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from harness.history.alerts import (
    BODY_CHARACTERS,
    LABEL,
    LISTED,
    MOST_NEW,
    Alert,
    IssueAction,
    find_alerts,
    plan_steps,
    read_issues,
)
from harness.history.nightly_file import RuleKind, SuppressionRule
from harness.history.states import find_changes
from harness.model.defaults import CONFIRM_ROUNDS
from harness.model.errors import UsageError
from harness.model.history import Decision, Measurer, Summary
from harness.model.run import Machine
from tests.github import Repository
from tests.history.series import KEY, of_line, series, stepped

SCRIPT = str(Path(__file__).parents[2] / ".github" / "nightly" / "issues")
loader = SourceFileLoader("nightly_issues", SCRIPT)
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly_issues", loader))
loader.exec_module(script)

NIGHT = "2026-11-20T04:00:00+00:00"


def alert(cause="a", *, series=("one",), since="2026-11-18T04:00:00+00:00", confirmed=NIGHT, body="It is slower."):
    return Alert(cause, series, since, confirmed, f"Slower: {cause}", body)


@pytest.fixture
def github(tmp_path, monkeypatch):
    """Return the repository that the nightly script changes."""
    repository = Repository(tmp_path / "repository.json")
    monkeypatch.setattr(script, "gh", repository.gh)
    return repository


def tracked(github):
    """List the issues, as the nightly script does."""
    listed = github._path.with_name("issues.json")
    listed.write_text(github.gh("issue", "list", "--label", LABEL, "--state", "all", "--limit", "99", "--json", LISTED))
    return read_issues(listed)


def night(github, *alerts):
    """List the issues, decide, and carry out the steps."""
    done = plan_steps(alerts, tracked(github))
    for step in done:
        script.carry_out(json.loads(json.dumps(step.document)))
    return [step.kind for step in done]


def test_a_cause_is_opened_once_and_edited_in_place(github):
    assert night(github, alert()) == [IssueAction.OPEN]
    assert night(github, alert()) == [IssueAction.KEEP]
    assert night(github, alert(body="It is slower, in two.")) == [IssueAction.EDIT]
    (issue,) = github.issues
    assert issue["title"] == "Slower: a"
    assert issue["body"].endswith("It is slower, in two.")
    assert issue["labels"] == [LABEL]
    assert github.writes == ["issue create", "issue edit 1"]


def test_two_causes_are_two_issues_and_another_ones_issue_is_left_alone(github):
    github.add(title="Nightly fails", labels=[LABEL], body="written by hand")
    github.add(title="Slower: a", labels=[], body=alert().text)
    assert night(github, alert("a"), alert("b", series=["two"])) == [IssueAction.OPEN, IssueAction.OPEN]
    assert night(github, alert("a"), alert("b", series=["two"])) == [IssueAction.KEEP, IssueAction.KEEP]
    assert len(github.issues) == 4


def test_a_closed_issue_is_opened_again_only_where_the_cause_was_confirmed_since(github):
    night(github, alert())
    github.close(1, "2026-11-21T12:00:00Z")
    assert night(github, alert()) == [IssueAction.KEEP]
    assert github.issues[0]["state"] == "CLOSED"
    assert night(github, alert(confirmed="2026-11-22T04:00:00+00:00")) == [IssueAction.REOPEN]
    assert (github.issues[0]["state"], len(github.issues), len(github.comments)) == ("OPEN", 1, 1)


@pytest.mark.parametrize("reason", ["NOT_PLANNED", "DUPLICATE"])
def test_what_somebody_closed_as_not_planned_stays_closed(github, reason):
    night(github, alert())
    github.close(1, "2026-11-21T12:00:00Z", reason)
    assert night(github, alert(confirmed="2026-11-25T04:00:00+00:00")) == [IssueAction.KEEP]
    assert (github.issues[0]["state"], len(github.issues)) == ("CLOSED", 1)


def test_a_beginning_that_moves_by_some_nights_is_no_second_issue(github):
    night(github, alert("a"))
    assert night(github, alert("a, moved", since="2026-11-16T04:00:00+00:00")) == [IssueAction.EDIT]
    # another change of the same series, weeks later, is one
    assert night(github, alert("later", since="2026-12-20T04:00:00+00:00")) == [IssueAction.OPEN]


def test_two_causes_of_one_issue_are_told_in_it_together(github):
    night(github, alert("a", series=["one", "two"]))
    again = [alert("b", series=["one"], body="First."), alert("c", series=["two"], body="Second.")]
    assert night(github, *again) == [IssueAction.EDIT]
    assert "First." in github.issues[0]["body"]
    assert "Second." in github.issues[0]["body"]
    assert night(github, *again) == [IssueAction.KEEP]


def test_a_night_that_breaks_everything_opens_a_few_and_the_next_night_the_others(github):
    many = [alert(str(number), series=[str(number)]) for number in range(MOST_NEW + 2)]
    assert night(github, *many) == [*[IssueAction.OPEN] * MOST_NEW, IssueAction.HOLD, IssueAction.HOLD]
    assert night(github, *many) == [*[IssueAction.KEEP] * MOST_NEW, IssueAction.OPEN, IssueAction.OPEN]


def test_a_text_that_is_too_long_is_cut_between_lines_and_says_so(github):
    long = alert(body="\n".join(f"| series {number} | slower |" for number in range(9000)), series=["x" * 8] * 500)
    assert len(long.text) <= BODY_CHARACTERS
    assert long.text.endswith(
        "| slower |\n\n… The rest exceeds the size limit of an issue. To see the whole report: `harness history "
        "report`."
    )
    assert night(github, long) == [IssueAction.OPEN]
    assert night(github, long) == [IssueAction.KEEP]


@pytest.mark.parametrize(
    "body", [None, "", "<!-- harness-alarm {} -->", "<!-- harness-alarm {x} -->", "edited", "<!-- harness-alarm [] -->"]
)
def test_an_issue_whose_mark_somebody_edited_is_none_of_ours(github, body):
    github.add(labels=[LABEL], body=body)
    assert night(github, alert()) == [IssueAction.OPEN]


@pytest.mark.parametrize("text", ["", "{}", "3", "[3]", '[{"number": 1}]', '[{"state": "OPEN", "number": "x"}]'])
def test_a_file_that_is_no_list_of_issues_is_refused_with_the_command_that_writes_one(tmp_path, text):
    path = tmp_path / "issues.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"(?s)isn't a list of issues.*gh issue list --label {LABEL}"):
        read_issues(path)
    with pytest.raises(UsageError, match=r"Can't read .*nowhere"):
        read_issues(tmp_path / "nowhere")


def test_a_label_that_the_repository_lacks_is_created_once(github):
    night(github, alert())
    night(github, alert("b", series=["two"]))
    assert github.labels == [LABEL]
    assert github.writes == ["issue create"] * 2


def test_a_step_that_gh_refuses_ends_the_script_and_is_named(monkeypatch, tmp_path):
    def refuse(*words, **_):
        raise subprocess.CalledProcessError(1, words)

    (tmp_path / "issues.json").write_text("[]")
    monkeypatch.setattr(script, "gh", refuse)
    monkeypatch.setattr("sys.argv", ["issues", str(tmp_path / "issues.json")])
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps([plan_steps([alert()], [])[0].document])))
    with pytest.raises(SystemExit, match="::error::gh ended with 1: open a new one: Slower: a"):
        script.main()


def test_a_night_whose_job_ends_early_opens_nothing_twice(github):
    both = [alert("a"), alert("b", series=["two"])]
    script.carry_out(plan_steps(both, [])[0].document)
    assert night(github, *both) == [IssueAction.KEEP, IssueAction.OPEN]
    assert [issue["title"] for issue in github.issues] == ["Slower: a", "Slower: b"]


def slower(share=0.08, key=KEY):
    """A series that is slower from its 15th night on, with another lock."""
    return series(stepped(14, 24, share), {14: {"lock": "bbbbbbbbbbbb"}}, key)


def decision(of, *, confirmed=True, when="2026-01-25T04:00:00+00:00"):
    (finding,) = find_changes([of])
    return Decision(of.key, finding.since, finding.suspects, confirmed, "run-c", when, 1.08, 1.06, 1.1)


def test_what_is_only_suspected_refuted_or_faster_gives_no_alarm():
    of = slower()
    assert find_alerts([of], []) == []
    assert find_alerts([of], [decision(of, confirmed=False)]) == []
    faster = slower(-0.08)
    assert find_alerts([faster], [decision(faster)]) == []


def test_a_change_on_a_machine_of_another_file_gives_no_alarm():
    of = slower()
    machine = of.points[-1].origin.machine or of.key.machine
    assert find_alerts([of], [decision(of)], machines=["other"]) == []
    assert len(find_alerts([of], [decision(of)], machines=[machine])) == 1


def test_an_alarm_says_what_takes_longer_since_when_what_changed_and_how_it_was_confirmed():
    of = slower()
    (told,) = find_alerts([of], [decision(of)])
    assert told.title == "Slower since 2026-01-15: step in tf2.1, on m-1"
    assert told.confirmed == "2026-01-25T04:00:00+00:00"
    assert (
        "in the run run-014 of 2026-01-15. Changes at that time: the lock of tf2.1 (aaaaaaaa → bbbbbbbb)." in told.body
    )
    assert re.search(r"\| step tf2\.1 cpu call=fit \| tf1\.14 \| 1\.0[789]× \(1\.\d\d to 1\.\d\d\) \|", told.body)
    assert (
        "Confirmed on 2026-01-25: both sides were measured again side by side in the run run-c. "
        "There, time after / before is 1.08× (1.06" in told.body
    )
    assert "harness history show --points -s step -e tf2.1" in told.body


def test_an_alarm_of_another_environment_has_the_command_of_its_confirmation():
    of = slower()
    words = ["harness", "matrix", "-e", "tf2.1+numpy==1.17.5", "-e", "tf2.1"]
    (told,) = find_alerts([of], [replace(decision(of), command=words)])
    assert "To repeat the comparison:\n\n```sh\nharness matrix -e tf2.1+numpy==1.17.5 -e tf2.1\n```" in told.body
    assert told.command == " ".join(words)
    (without,) = find_alerts([of], [decision(of)])
    assert "To repeat" not in without.body


def test_series_of_one_cause_are_one_alarm():
    both = [slower(key=replace(KEY, axes=(("call", call),))) for call in ("fit", "predict")]
    (told,) = find_alerts(both, [decision(entry) for entry in both])
    assert told.title == "Slower since 2026-01-15: step in tf2.1 and 1 more, on m-1"
    assert len(set(told.series)) == 2


def test_what_a_stranger_named_calls_nobody_and_is_no_markup():
    of = slower(key=replace(KEY, scenario="@team <b>x</b> | `y`"))
    (told,) = find_alerts([of], [decision(of)])
    table = next(line for line in told.body.splitlines() if "team" in line and line.startswith("|"))
    assert "@\u200bteam &lt;b&gt;x&lt;/b&gt; \\| \\`y\\`" in table


def test_an_alarm_of_a_line_has_the_wheels_the_commits_the_machine_and_the_command(night: Summary):
    of = of_line(stepped(14, 24))
    pair = ["tf-nightly==2.23.0.dev013", "tf-nightly==2.23.0.dev014"]
    link = "https://github.com/tensorflow/tensorflow/compare/a...b"
    searched = replace(decision(of), versions=["x", "y"], pair=pair, probability=0.987, commits=[link])
    facts = replace(night, machines=[Measurer(Machine("m-1"), "Epyc", 8, "Debian 12", "6.1", "H100, driver 575")])
    (told,) = find_alerts([of], [searched], summary=lambda run: facts if run == "run-c" else None)
    command = f"harness matrix -e {pair[0]} -e {pair[1]} -s step -a call=fit --rounds {CONFIRM_ROUNDS}"
    assert (told.command, list(told.sides), told.probability) == (command, pair, 0.987)
    assert told.machine == "Epyc, 8 cores, Debian 12, 6.1, H100, driver 575"
    assert f"The first slower version is {pair[1]}. The version before it is {pair[0]} (probability 99 %)." in told.body
    assert all(text in told.body for text in (link, command, told.machine))
    words = ["harness", "matrix", "-e", pair[0], "-e", pair[1], "-s", "step", "--cpus", "2", "--budget", "30m"]
    (stored,) = find_alerts([of], [replace(searched, command=words)], summary=lambda _: facts)
    assert stored.command == " ".join(words)
    (open_place,) = find_alerts([of], [replace(searched, pair=[], probability=None)])
    assert "The change came after x, and at the latest with y." in open_place.body
    document = plan_steps([told], [])[0].document
    assert (document["sides"], document["command"], document["commits"]) == (pair, command, [link])


def test_an_alarm_keeps_its_confirmation_if_a_later_night_finds_the_change_one_run_earlier():
    of = of_line(stepped(14, 24))
    said = replace(decision(of), versions=["x", "y"])
    moved = replace(said, since="run-013", suspects=["the wheel of that run"])
    whole, of_moved = (find_alerts([of], [value])[0] for value in (said, moved))
    assert of_moved == whole
    assert "Confirmed on 2026-01-25" in of_moved.body
    assert (of_moved.confirmed, list(of_moved.sides)) == (said.when, ["x", "y"])


def test_the_issue_of_a_machine_is_closed_by_its_next_run(github):
    silent = replace(alert("overdue | rack"), overdue="rack", file="a.toml", series=[])
    assert night(github, silent, alert("b", series=["two"])) == [IssueAction.OPEN, IssueAction.OPEN]
    (closing,) = plan_steps([], tracked(github), file="a.toml")
    script.carry_out(closing.document)
    # the other issue is a slowdown, which a person closes
    assert [issue["state"] for issue in github.issues] == ["CLOSED", "OPEN"]
    assert github.comments == [closing.comment]
    assert plan_steps([], tracked(github), file="a.toml") == []
    # it was overdue before it was closed: the same silence doesn't open it again
    assert night(github, silent) == [IssueAction.KEEP]
    assert night(github, replace(silent, confirmed="2026-12-09T04:00:00+00:00")) == [IssueAction.REOPEN]


@pytest.mark.parametrize(
    "scope", [{}, {"file": "b.toml"}, {"file": "a.toml", "unplanned": {"rack"}}], ids=["no file", "other file", "other"]
)
def test_the_issue_of_a_machine_stays_open_if_this_run_does_not_cover_the_machine(github, scope):
    night(github, replace(alert(), overdue="rack", file="a.toml"))
    assert plan_steps([], tracked(github), **scope) == []


def test_an_issue_links_to_the_workflow_run_that_wrote_its_text(github, monkeypatch):
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "me/mine")
    for number, body, kind in (
        (1, "First.", IssueAction.OPEN),
        (2, "First.", IssueAction.KEEP),
        (3, "Second.", IssueAction.EDIT),
    ):
        monkeypatch.setenv("GITHUB_RUN_ID", str(number))
        assert night(github, alert(body=body)) == [kind]
    (issue,) = github.issues
    assert issue["body"].endswith("Second.\n\n[Workflow run](https://github.com/me/mine/actions/runs/3)")


@pytest.mark.parametrize("kind", RuleKind)
def test_a_change_that_is_accepted_or_muted_is_no_issue_until_the_day(kind):
    of = slower()
    said = [decision(of)]
    (finding,) = find_changes([of])
    since = finding.started[:10] if kind is RuleKind.ACCEPT else ""
    rule = SuppressionRule(kind, of.key.cell, "bug 5", date(2026, 12, 31), since=since)
    assert find_alerts([of], said, rules=[rule], today=date(2026, 12, 31)) == []
    assert len(find_alerts([of], said, rules=[rule], today=date(2027, 1, 1))) == 1
    assert len(find_alerts([of], said, rules=[replace(rule, series="other *")], today=date(2026, 12, 31))) == 1

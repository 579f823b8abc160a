"""Alerts about confirmed slowdowns: one per cause, with the text of its GitHub issue (`harness.history.issues`)."""

import hashlib
import itertools
import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from harness.history.nightly_file import SuppressionRule
from harness.history.states import SeriesFinding, State, find_changes
from harness.model.defaults import LEVEL
from harness.model.history import Decision, Key, Series, Summary
from harness.model.texts import counted, format_number, joined, remove_password
from harness.report.blocks import Block, Code, Column, Items, Text, tabulate
from harness.report.escape import escape_terminal
from harness.report.markdown import render_blocks, shorten

#: Limits for issues, in characters. GitHub's own limits are 65,536 for a body and 256 for a title.
BODY_CHARACTERS, TITLE_CHARACTERS = 60_000, 240

#: The note at the end of an issue about closing it.
_CLOSING_NOTE = (
    "Nightly runs update this text. If you close the issue as completed, it is reopened only if the change is "
    "confirmed again later. If you close it as not planned, it stays closed."
)

#: The options of commands in issues, and the pattern of plain values: names, versions and numbers. Options that depend
#: on the machine are left out. A job that also runs scripts wrote the decision. So its command must not name an address
#: or a file.
_SHOWN_FLAGS = (
    *("-s", "-e", "-a", "--gpu", "--cpus", "--rounds", "--budget", "--warmup", "--measure", "--reference"),
    *("--base", "--head"),
)
_PLAIN_VALUE = re.compile(r"\w[\w.,=<>!~+*\[\]-]{0,200}(@(\d{4}-\d\d-\d\d|py3\.\d{1,2}))?")

#: The address of the commits between two versions.
_COMMITS_ADDRESS = re.compile(
    r"https://github\.com/[\w.-]+/[\w.-]+/(compare|commits)/[\w.+-]+(\?since=[\d-]+&until=[\d-]+)?"
)


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert about one cause: the content of an issue.

    - `cause`: the key of the cause; `series`: short hashes of the affected time series
    - `since`: the start of the first run after the change, `confirmed`: the time of its last confirmation; in ISO 8601
    - `title`, `body`: Markdown
    """

    cause: str
    series: Sequence[str]
    since: str
    confirmed: str
    title: str
    body: str

    @property
    def text(self) -> str:
        """The body with its hidden comment, without passwords in addresses, shortened to GitHub's limit."""
        fields = {"cause": hash_text(self.cause), "since": self.since, "series": sorted(self.series)[:100]}
        mark = f"<!-- harness-alarm {json.dumps(fields)} -->\n"
        return mark + shorten(remove_password(self.body), BODY_CHARACTERS - len(mark), "harness history report")


def find_alerts(
    history: Iterable[Series],
    decisions: Sequence[Decision],
    summary: Callable[[str], Summary | None] = lambda run: None,
    *,
    rules: Sequence[SuppressionRule] = (),
    machines: Collection[str] | None = None,
    today: date = date.min,
) -> list[Alert]:
    """Return an alert for each cause of confirmed slowdowns in a history.

    - Changes that one of the `rules` accepts or mutes on the day `today` are left out.
    - If `machines` are given, changes on other machines are left out, because another nightly.toml contains them.
    - `summary` returns the stored summary of a run, which describes its machine.
    """
    # skip series without a confirmation: only a decision confirms a change, and a search takes milliseconds per series
    decided_keys = {decision.key for decision in decisions if decision.confirmed}
    by_key = {series.key: series for series in history if series.key in decided_keys}
    causes: dict[str, list[SeriesFinding]] = {}
    for finding in find_changes(by_key.values(), decisions):
        machine = by_key[finding.key].points[-1].origin.machine
        if machines is not None and (machine or finding.key.machine) not in machines:
            continue
        is_ruled_out = any(rule.applies(finding.key, finding.started, machine, today) for rule in rules)
        if finding.state is State.CONFIRMED and finding.ratio > 1.0 and not is_ruled_out:
            causes.setdefault(finding.cause, []).append(finding)
    return [_make_alert(cause, members, by_key, summary) for cause, members in causes.items()]


def _make_alert(
    cause: str, members: list[SeriesFinding], by_key: Mapping[Key, Series], summary: Callable[[str], Summary | None]
) -> Alert:
    findings = sorted(members, key=lambda finding: -finding.ratio)
    worst, *others = findings
    start = min(finding.started for finding in members)
    machine = by_key[worst.key].points[-1].origin.machine or worst.key.machine
    confirmation = max((finding.decision for finding in members if finding.decision), key=lambda entry: entry.when)
    facts = _describe_machine(worst.key.machine, summary(confirmation.run) or summary(worst.since))
    repetition = shlex.join(rebuild_command(confirmation.command))
    count_note = f" and {len(others)} more" if others else ""
    title = f"Slower since {start[:10]}: {worst.key.scenario} in {worst.key.environment}{count_note}, on {machine}"
    blocks = [
        *_describe_findings(findings, start, machine),
        Text(
            f"Confirmed on {confirmation.when[:10]}: both sides were measured again side by side in the run "
            f"{confirmation.run}. There, time after / before is {_format_ratio(confirmation)}."
        ),
    ]
    if facts:
        blocks.append(Text(f"Machine: {facts}."))
    if confirmation.work:
        blocks.append(Text(f"Work of a step, counted exactly: {confirmation.work}"))
    if confirmation.sides:
        blocks += [*_describe_versions(confirmation), *_list_functions(confirmation, machine)]
    if repetition:
        blocks += [Text("To repeat the comparison:"), Code(repetition)]
    command = ["harness", "history", "show", "--points", "-s", worst.key.scenario, "-e", worst.key.environment]
    blocks += [Text("Nightly runs:"), Code(shlex.join(command)), Text(_CLOSING_NOTE, is_small=True)]
    return Alert(
        cause=cause,
        series=[hash_text(repr(finding.key))[:8] for finding in members],
        since=start,
        confirmed=confirmation.when,
        title=escape_terminal(title, TITLE_CHARACTERS),
        body=render_blocks(blocks),
    )


def _describe_findings(findings: Sequence[SeriesFinding], start: str, machine: str) -> Iterator[Block]:
    """Yield a sentence about the start of the change, and a table of the findings."""
    changes = list(dict.fromkeys(text for finding in findings for text in finding.suspects))
    yield Text(
        f"First seen on the machine {machine}, in the run {findings[0].since} of {start[:10]}. "
        + (f"Changes at that time: {joined(changes)}." if changes else "No recorded fact changed at that time.")
    )
    columns: list[Column[SeriesFinding]] = [
        Column("series", lambda finding: finding.key.cell),
        Column("baseline", lambda finding: finding.key.versus),
        Column("time after / before", _format_ratio, is_number=True),
    ]
    yield tabulate("Slower series", columns, findings)
    yield Text(
        "Each value is the time after the change divided by the time before it, relative to the baseline of the run."
    )


def _describe_machine(machine: str, summary: Summary | None) -> str:
    """Describe the machine of a run: its processor, its system, and its GPUs with their driver."""
    measurers = summary.machines if summary else ()
    measurer = next((candidate for candidate in measurers if candidate.machine.id == machine), None)
    if measurer is None:
        return ""
    cpu = f"{measurer.cpu}, {counted(measurer.cores, 'core')}" if measurer.cpu else counted(measurer.cores, "core")
    return ", ".join(filter(None, [cpu, measurer.system, measurer.kernel, measurer.driver]))


def _describe_versions(decision: Decision) -> Iterator[Block]:
    """Yield the versions around the change, and the commits between them."""
    before, after = decision.sides
    sentence = f"The change came after {before}, and at the latest with {after}."
    if decision.pair and decision.probability is not None:
        subject = "The" if decision.probability >= LEVEL else "Most likely, the"
        probability = f"probability {100.0 * decision.probability:.0f} %"
        sentence = f"{subject} first slower version is {after}. The version before it is {before} ({probability})."
    yield Text(sentence)
    if decision.commits:
        # GitHub makes a link of an address, unless it has a space
        yield Items(
            [text if _COMMITS_ADDRESS.fullmatch(text) else text.replace("://", ": //") for text in decision.commits]
        )


def _list_functions(decision: Decision, machine: str) -> Iterator[Block]:
    """Yield the functions whose time changed."""
    if not decision.functions:
        return
    columns: list[Column[tuple[str, float, float]]] = [
        Column("function", lambda function: function[0]),
        Column("before, ms per step", lambda function: format_number(1000.0 * function[1]), is_number=True),
        Column("after, ms per step", lambda function: format_number(1000.0 * function[2]), is_number=True),
    ]
    yield tabulate("Functions", columns, decision.functions)
    yield Text(
        f"Time in the function itself, measured with a profiler. The run {decision.profile} has the flame graphs, in "
        f"profile.html. It is in the artifact of the machine {machine} of the workflow run that confirmed the change, "
        "for 30 days."
    )


def rebuild_command(words: Sequence[str]) -> list[str]:
    """Return a `harness matrix` command with only the options in `_SHOWN_FLAGS`; empty for any other command.

    The result is also empty if one of their values isn't plain.
    """
    groups: list[list[str]] = []
    for word in words[2:]:
        if word.startswith("-"):
            groups.append([word])
        elif groups:
            groups[-1].append(word)
    shown = [group for group in groups if group[0] in _SHOWN_FLAGS]
    are_plain = all(
        len(values) == (0 if flag == "--gpu" else 1) and all(map(_PLAIN_VALUE.fullmatch, values))
        for flag, *values in shown
    )
    is_known = [*words[:2]] == ["harness", "matrix"] and bool(shown)
    return [*words[:2], *itertools.chain(*shown)] if is_known and are_plain else []


def _format_ratio(change: SeriesFinding | Decision) -> str:
    return f"{change.ratio:.2f}× ({change.low:.2f} to {change.high:.2f})"


def hash_text(text: str) -> str:
    """Return a short hash, for the hidden comment of an issue."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]

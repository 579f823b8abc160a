"""Names that distinguish series, and sentences about their findings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.history.detection import ChangePoint
from harness.history.series import parse_time
from harness.history.states import JudgedSeries, SeriesFinding, State
from harness.model.history import Decision, HistoryEntry, Key
from harness.model.scenario import STEP
from harness.model.texts import counted, joined
from harness.report import format

#: Changes by at least this factor are written as a factor, and smaller changes in percent.
LARGE = 3.0

#: The order of states in a list: those that need attention first.
ORDER = (State.CONFIRMED, State.LIKELY, State.SUSPECTED, State.WATCH, State.REFUTED)


def find_last(judged: JudgedSeries) -> SeriesFinding | None:
    """Return the last finding of a series, which determines its state; None if there is none."""
    return judged.findings[-1] if judged.findings else None


def rank(judged: JudgedSeries) -> tuple[int, float, Key]:
    """Return the sort key of a series: state, then largest change first, then name."""
    finding = find_last(judged)
    state = ORDER.index(finding.state) if finding else len(ORDER)
    return state, -abs(math.log(finding.ratio)) if finding else 0.0, judged.series.key


@dataclass(frozen=True, slots=True)
class SeriesNames:
    """The names of some series, the `columns` in which the series differ, and the values of each series in them."""

    texts: Mapping[Key, str]
    columns: Sequence[str]
    parts: Mapping[Key, Sequence[str]]


def make_names(keys: Iterable[Key], entries: Sequence[HistoryEntry]) -> SeriesNames:
    """Return names that distinguish series. Machine and measurement settings are part of a name only if they differ."""
    machines = {machine.id: machine.name or machine.id for entry in entries for machine in entry.machines}
    facts = {key: _list_facts(key, machines) for key in keys}
    fact_names = dict.fromkeys(name for fact in facts.values() for name in fact)
    columns = [name for name in fact_names if len({fact.get(name, "") for fact in facts.values()}) > 1]

    def text(key: Key, fact: Mapping[str, str]) -> str:
        parts = [key.cell]
        parts += [key.quantity] if key.quantity != STEP else []
        parts += [f"vs {key.versus}"] if key.versus else []
        parts += [f"on {fact['machine']}"] if "machine" in columns else []
        parts += [f"({key.way})"] if "way" in columns else []
        return " ".join(parts)

    return SeriesNames(
        texts={key: text(key, fact) for key, fact in facts.items()},
        columns=columns,
        parts={key: [fact.get(name, "") for name in columns] for key, fact in facts.items()},
    )


def _list_facts(key: Key, machines: Mapping[str, str]) -> dict[str, str]:
    return {
        "scenario": key.scenario,
        "environment": key.environment,
        "reference": key.versus,
        "device": key.device,
        "machine": machines.get(key.machine, key.machine),
        "way": key.way,
        **{f"{axis}": value for axis, value in key.axes},
    }


def format_day(started: str) -> str:
    """Return the day of an instant (ISO 8601) in UTC: `18 Nov 2026`."""
    moment = parse_time(started)
    return f"{moment.day} {moment:%b %Y}"


def describe_direction(finding: SeriesFinding) -> str:
    """Return the direction: slower or faster."""
    return "slower" if finding.ratio > 1.0 else "faster"


def format_change(change: SeriesFinding | ChangePoint | Decision) -> str:
    """Format a change of time: `+8.1 % (+7.8 to +8.4)`, or `17.2× (16.9 to 17.5)` for changes by LARGE or more."""
    ratios = [change.ratio, change.low, change.high]
    if not 1 / LARGE < change.ratio < LARGE:
        value, low, high = map(format.number, ratios)
        return f"{value}× ({low} to {high})"
    value, low, high = (f"{round(100.0 * (ratio - 1.0), 1) + 0.0:+.1f}" for ratio in ratios)
    return f"{value} % ({low} to {high})"


def group_by_cause(series: Iterable[JudgedSeries]) -> list[list[SeriesFinding]]:
    """Group findings by cause. Causes that need attention come first, and among equal states the newest causes."""
    by_cause: dict[str, list[SeriesFinding]] = {}
    for judged in sorted(series, key=rank):
        for finding in judged.findings:
            by_cause.setdefault(finding.cause, []).append(finding)
    groups = [sorted(group, key=lambda member: ORDER.index(member.state)) for group in by_cause.values()]
    newest_first = sorted(groups, key=lambda group: parse_time(group[0].started), reverse=True)
    return sorted(newest_first, key=lambda group: ORDER.index(group[0].state))


def format_title(members: Sequence[SeriesFinding]) -> str:
    """Return the title of a cause: `Confirmed: 2 series slower since the run of 18 Nov 2026`.

    It counts the series in the same state as the first one. The others are listed below the title.
    """
    first_finding = members[0]
    same_state = [finding for finding in members if finding.state is first_finding.state]
    directions = {describe_direction(finding) for finding in same_state}
    direction = directions.pop() if len(directions) == 1 else "different"
    start = f"since the run of {format_day(first_finding.started)}"
    match first_finding.state:
        case State.CONFIRMED | State.LIKELY | State.SUSPECTED:
            return f"{first_finding.state.value.capitalize()}: {_count_series(len(same_state))} {direction} {start}"
        case State.REFUTED:
            return f"Refuted: {_count_series(len(same_state))} did not become {direction} {start}"
    return f"Watched: {_count_series(len(same_state))} may be {direction} {start}"


def describe_suspects(members: Sequence[SeriesFinding]) -> str:
    """Describe the software changes at the time when the series of a cause changed."""
    suspects = list(dict.fromkeys(suspect for finding in members for suspect in finding.suspects))
    if not suspects:
        return "No recorded fact changed before that run."
    return f"Before that run, this changed: {joined(suspects)}."


def explain_state(state: State, decision: Decision | None = None) -> str:
    """Explain a state in a sentence. For a single series, it contains the result of its `decision`."""
    text = f": {format_change(decision)}" if decision else ""
    match state:
        case State.CONFIRMED:
            sides = joined(decision.sides) if decision else ""
            return (
                "Both sides were measured again in one run, which confirmed the "
                f"change{text}{f', between {sides}' if sides else ''}."
            )
        case State.LIKELY:
            return (
                f"Both sides were measured again in one run, which agrees{text}. A second such run would confirm the "
                "change: harness history confirm"
            )
        case State.SUSPECTED:
            return "To measure both sides again, side by side: harness history confirm"
        case State.REFUTED:
            return f"Both sides were measured again in one run, and the difference was smaller{text}."
    return "The newest runs are above the earlier level. To measure both sides again: harness history confirm"


def describe_series(judged: JudgedSeries) -> str:
    """Describe the changes of a series in sentences, the latest change first."""
    runs = counted(sum(point.log_ratio is not None for point in judged.series.points), "run")
    if not judged.series.key.reference:
        return "This cell is the baseline of other cells, so it has times instead of ratios."
    if not judged.findings:
        return f"No open change in {runs}."
    sentences = [
        f"{finding.state.value.capitalize()}: its time is {format_change(finding)} since the run {finding.since} of "
        f"{format_day(finding.started)}. {describe_suspects([finding])} "
        f"{explain_state(finding.state, finding.decision)}"
        for finding in reversed(judged.findings)
    ]
    return " ".join(sentences)


def describe_counts(series: Sequence[JudgedSeries]) -> str:
    """Return a sentence that counts the series in each state.

    For example, `Of 18 series, 1 is confirmed to have changed, 16 are unchanged and 1 is the baseline of others.`
    """
    compared_series = [judged for judged in series if judged.series.key.reference]
    states = [finding.state if (finding := find_last(judged)) else None for judged in compared_series]
    counts = [(states.count(state), words) for state, words in _STATE_WORDS.items() if state in states]
    if not any(states):
        return f"No open change in {_count_series(len(series))}."
    if len(compared_series) < len(series):
        counts.append((len(series) - len(compared_series), "the baseline of others"))
    listing = joined([f"{count:,} {'is' if count == 1 else 'are'} {words}" for count, words in counts])
    return f"Of {_count_series(len(series))}, {listing}."


#: Descriptions of the series in each state, after `is` or `are`.
_STATE_WORDS = {
    State.CONFIRMED: "confirmed to have changed",
    State.LIKELY: "likely to have changed",
    State.SUSPECTED: "suspected to have changed",
    State.WATCH: "watched",
    State.REFUTED: "refuted",
    None: "unchanged",
}


def _count_series(count: int) -> str:
    """Format a number of series. The singular and the plural of the word are the same."""
    return f"{count:,} series"

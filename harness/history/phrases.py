"""Names of series that distinguish them, and sentences about their findings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.history.detection import ChangePoint
from harness.history.states import JudgedSeries, SeriesFinding, State
from harness.model.history import Decision, HistoryEntry, Key
from harness.model.scenario import STEP
from harness.model.texts import counted, joined
from harness.report import format

#: Changes from this factor on are written as a factor, smaller ones in percent.
LARGE = 3.0

#: The order of states in a list: those that need attention first.
ORDER = (State.CONFIRMED, State.SUSPECTED, State.WATCH, State.REFUTED)


def newest(of: JudgedSeries) -> SeriesFinding | None:
    """Return the state of a series: its last finding."""
    return of.findings[-1] if of.findings else None


def rank(of: JudgedSeries) -> tuple[int, float, Key]:
    """Return the sort key of a series: state, then largest change first, then name."""
    found = newest(of)
    state = ORDER.index(found.state) if found else len(ORDER)
    return state, -abs(math.log(found.ratio)) if found else 0.0, of.series.key


@dataclass(frozen=True, slots=True)
class Names:
    """The names of some series; the `columns` in which they differ, and the values of each."""

    texts: Mapping[Key, str]
    columns: Sequence[str]
    parts: Mapping[Key, Sequence[str]]


def names(keys: Iterable[Key], entries: Sequence[HistoryEntry]) -> Names:
    """Return names that distinguish series; they have the machine and the way of measuring if these differ."""
    known = {machine.id: machine.name or machine.id for entry in entries for machine in entry.machines}
    facts = {key: _facts(key, known) for key in keys}
    every = dict.fromkeys(name for fact in facts.values() for name in fact)
    columns = [name for name in every if len({fact.get(name, "") for fact in facts.values()}) > 1]

    def text(key: Key, fact: Mapping[str, str]) -> str:
        told = [key.cell]
        told += [key.quantity] if key.quantity != STEP else []
        told += [f"vs {key.versus}"] if key.versus else []
        told += [f"on {fact['machine']}"] if "machine" in columns else []
        told += [f"({key.way})"] if "way" in columns else []
        return " ".join(told)

    return Names(
        texts={key: text(key, fact) for key, fact in facts.items()},
        columns=columns,
        parts={key: [fact.get(name, "") for name in columns] for key, fact in facts.items()},
    )


def _facts(key: Key, machines: Mapping[str, str]) -> dict[str, str]:
    return {
        "scenario": key.scenario,
        "environment": key.environment,
        "reference": key.versus,
        "device": key.device,
        "machine": machines.get(key.machine, key.machine),
        "way": key.way,
        **{f"{axis}": value for axis, value in key.axes},
    }


def day(started: str) -> str:
    """Return the day of an instant (ISO 8601) in UTC: `18 Nov 2026`."""
    when = moment(started)
    return f"{when.day} {when:%b %Y}"


def moment(started: str) -> datetime:
    """Return the time of an ISO 8601 text; UTC is the default zone."""
    when = datetime.fromisoformat(started)
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


def moved(finding: SeriesFinding) -> str:
    """Return the direction: slower or faster."""
    return "slower" if finding.ratio > 1.0 else "faster"


def size(change: SeriesFinding | ChangePoint | Decision) -> str:
    """By how much the time changed: `+8.1 % (+7.8 to +8.4)`; from three times on `17.2× (16.9 to 17.5)`."""
    told = [change.ratio, change.low, change.high]
    if not 1 / LARGE < change.ratio < LARGE:
        value, low, high = map(format.number, told)
        return f"{value}× ({low} to {high})"
    value, low, high = (f"{round(100.0 * (ratio - 1.0), 1) + 0.0:+.1f}" for ratio in told)
    return f"{value} % ({low} to {high})"


def causes(of: Iterable[JudgedSeries]) -> list[list[SeriesFinding]]:
    """Return findings by cause: those that need attention first, then the latest first."""
    found: dict[str, list[SeriesFinding]] = {}
    for each in sorted(of, key=rank):
        for finding in each.findings:
            found.setdefault(finding.cause, []).append(finding)
    made = [sorted(some, key=lambda each: ORDER.index(each.state)) for some in found.values()]
    latest = sorted(made, key=lambda some: moment(some[0].started), reverse=True)
    return sorted(latest, key=lambda some: ORDER.index(some[0].state))


def title(of: Sequence[SeriesFinding]) -> str:
    """Return the title of a cause: `Confirmed: 2 series slower since the run of 18 Nov 2026`.

    It covers the series in the state of the first one; the others are named below it.
    """
    first = of[0]
    alike = [each for each in of if each.state is first.state]
    ways = {moved(each) for each in alike}
    way = ways.pop() if len(ways) == 1 else "different"
    since = f"since the run of {day(first.started)}"
    match first.state:
        case State.CONFIRMED | State.SUSPECTED:
            return f"{first.state.value.capitalize()}: {_many(len(alike))} {way} {since}"
        case State.REFUTED:
            return f"Refuted: {_many(len(alike))} did not become {way} {since}"
    return f"Watched: {_many(len(alike))} may be {way} {since}"


def reasons(of: Sequence[SeriesFinding]) -> str:
    """Return the changes at the time when the series of a cause changed."""
    suspects = list(dict.fromkeys(each for finding in of for each in finding.suspects))
    if not suspects:
        return "No recorded fact changed before that run."
    return f"Before that run, this changed: {joined(suspects)}."


def meaning(state: State, decision: Decision | None = None) -> str:
    """Explain a state in a sentence; for one series, with the result of its `decision`."""
    told = f": {size(decision)}" if decision else ""
    match state:
        case State.CONFIRMED:
            sides = joined(decision.sides) if decision else ""
            return f"Both sides were measured again in one run{told}{f', between {sides}' if sides else ''}."
        case State.SUSPECTED:
            return "To measure both sides again, side by side: harness history confirm"
        case State.REFUTED:
            return f"Both sides were measured again in one run, and did not differ as much{told}."
    return "The newest runs differ from the earlier level, but they are too few, or earlier runs vary as much."


def standing(of: JudgedSeries) -> str:
    """Describe a series in sentences: each of its changes, the latest first."""
    runs = counted(sum(point.log_ratio is not None for point in of.series.points), "run")
    if not of.series.key.reference:
        return "This cell is the baseline of others, so it has times instead of ratios."
    if not of.findings:
        return f"No open change in {runs}."
    told = [
        f"{each.state.value.capitalize()}: its time is {size(each)} since the run {each.since} of "
        f"{day(each.started)}. {reasons([each])} {meaning(each.state, each.decision)}"
        for each in reversed(of.findings)
    ]
    return " ".join(told)


def answer(of: Sequence[JudgedSeries]) -> str:
    """Return a sentence that counts the series in each state.

    For example, `Of 17 series, 1 is confirmed to have changed and 16 are unchanged.`
    """
    compared = [each for each in of if each.series.key.reference]
    states = [found.state if (found := newest(each)) else None for each in compared]
    counts = [(states.count(state), words) for state, words in _TOLD.items() if state in states]
    if not any(states):
        return f"No open change in {_many(len(compared))}."
    told = joined([f"{count:,} {'is' if count == 1 else 'are'} {words}" for count, words in counts])
    return f"Of {_many(len(compared))}, {told}."


#: Names of the series in each state.
_TOLD = {
    State.CONFIRMED: "confirmed to have changed",
    State.SUSPECTED: "suspected to have changed",
    State.WATCH: "watched",
    State.REFUTED: "refuted",
    None: "unchanged",
}


def _many(count: int) -> str:
    """Series are series, be it one or many."""
    return f"{count:,} series"

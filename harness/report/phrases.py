"""Phrases that several sections share. Each function returns plain text, which the renderer escapes."""

from collections.abc import Iterable, Iterator, Sequence

from harness.analysis.environments import pins
from harness.analysis.results import Results
from harness.analysis.work_counts import COUNTS, StepWork, compare_functions
from harness.model.environment import Environment, differences
from harness.model.launch import Clock
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.model.texts import joined
from harness.report import format
from harness.report.blocks import REST, Heading, Where

#: The largest number of names in a list. Further names are only counted.
LISTED = 12

#: If there are more environments than this, sentences only count them, and tables show them in rows, not columns.
SIDE_BY_SIDE = 6

#: The largest number of packages that are named if environments differ only in packages.
PACKAGES = 3


def list_names(names: Sequence[str], limit: int = LISTED) -> str:
    """Join names with semicolons. If there are more than `limit`, the other names are only counted."""
    remainder = [f"and {len(names) - limit} more"] if len(names) > limit else []
    return "; ".join([*names[:limit], *remainder])


def join_remarks(remarks: Iterable[str]) -> str:
    """Join the remarks on a line of a table. Empty remarks are omitted."""
    return "; ".join(filter(None, remarks))


def format_heading(results: Results, scenario: Scenario, place: str = "", where: Where = REST) -> Iterator[Heading]:
    """Yield the heading of a part: the scenario if the run has several, and `place`; nothing if both are empty."""
    title = ": ".join(filter(None, [scenario.title if results.has_several_scenarios else "", place]))
    if title:
        yield Heading(title, where=where)


def describe_pythons(versions: tuple[str, str] | None) -> str:
    """Return the different Python versions of two environments: `Python 3.7 vs 3.9`; empty for None."""
    return f"Python {versions[0]} vs {versions[1]}" if versions else ""


def describe_clock(clock: Clock) -> str:
    """Return a suffix for numbers that aren't wall-clock time; otherwise empty."""
    return " in CPU time" if clock is Clock.CPU else ""


def describe_longer(clock: Clock) -> str:
    """Return the words after a factor in `takes 2× … as`: `as long`, or `as much CPU time`."""
    return "as much CPU time" if clock is Clock.CPU else "as long"


def capitalize(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def name_environments(environments: Sequence[Environment]) -> str:
    """Return the names of a run's environments, or their number if there are many."""
    if len(environments) > SIDE_BY_SIDE:
        return f"{len(environments)} environments, {environments[0].name} to {environments[-1].name}"
    return ", ".join(environment.name for environment in environments)


def describe_overrides(run: Run, environment: Environment) -> str:
    """Describe package overrides: `tf2.0 with NumPy 1.21.6 instead of 1.17.3`; empty without overrides."""
    if not environment.base:
        return ""
    if environment.source:
        return f"{environment.base} with {environment.source}"
    has_pins = environment.base in run.pins
    packages = list_changed_packages(run, environment.name, environment.base) if has_pins else ""
    return f"{environment.base} with {packages or joined(environment.asked.split('+')[1:])}"


def list_changed_packages(run: Run, environment: str, other: str) -> str:
    """Return the package versions that differ between two environments: `NumPy 1.21.6 instead of 1.17.3`."""
    changes = differences(pins(run, environment), pins(run, other))
    remainder = [f"{len(changes) - PACKAGES} more packages"] if len(changes) > PACKAGES else []
    return joined([*changes[:PACKAGES], *remainder])


#: The largest number of functions that explain a change.
LISTED_FUNCTIONS = 3


def format_count(count: float) -> str:
    """Format a count per step. It may be fractional if one call does several steps."""
    return f"{count:,.0f}" if count == round(count) else f"{count:,.1f}"


def describe_change(work: StepWork, other: StepWork) -> str:
    """Return the counts that differ, and the functions with the largest changes; empty if no count differs."""
    parts: list[str] = []
    for name, label in COUNTS.items():
        count, other_count = work.counts[name], other.counts[name]
        if count != other_count:
            unit = label if parts else f"{label} per step"
            factor = f" ({format.factor(count / other_count)})" if count and other_count else ""
            parts.append(f"{format_count(count)} {unit} instead of {format_count(other_count)}{factor}")
    functions = [
        f"{'+' if change > 0 else '−'}{format_count(abs(change))} {'' if calls else 'C '}calls in {function} ({file})"
        for file, function, calls, change in compare_functions(work, other)[:LISTED_FUNCTIONS]
    ]
    text = f"{', '.join(parts)}." if parts else ""
    return f"{text} Largest changes: {', '.join(functions)}." if parts and functions else text

"""The main results as sentences: each comparison of a table's rows, with its verdicts and ratios."""

from collections.abc import Iterable, Mapping, Sequence

from harness.analysis.answers import Answer, Finding
from harness.analysis.cell_set_names import Box, cover_with_boxes
from harness.analysis.quantities import PIECE, is_time
from harness.analysis.statistics import Estimate
from harness.analysis.verdicts import Verdict
from harness.model.environment import Environment
from harness.model.launch import Clock
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, GROWTH, PEAK, PERCENTILES, PRINTED, STEP, TRACES, Cell
from harness.report import format, names
from harness.report.comparisons import NO_VERDICT, explain_withheld
from harness.report.phrases import capitalize, describe_clock, describe_overrides, list_changed_packages

#: The largest number of rows that a sentence names, and of values in a name. More rows are only counted.
NAMES, VALUES = 2, 3


# The order of the clauses of a sentence: readers look for differences first.
_ORDER = (
    *(Verdict.SLOWER, Verdict.MORE, Verdict.FASTER, Verdict.LESS, Verdict.SAME),
    *(Verdict.UNCLEAR, NO_VERDICT, Verdict.DIFFERENT_WORK),
)


def describe_answer(run: Run, answer: Answer, shared_values: str | None = None, cause: str = "") -> str:
    """Return one result as a sentence with at most one interval. The table has the others.

    `shared_values` are the values that all rows share. By default, these are the scenario and the axis values. `cause`
    is the reason why a verdict is unclear.
    """
    parts = [
        (kind, [finding for finding in answer.findings if (finding.verdict or NO_VERDICT) == kind]) for kind in _ORDER
    ]
    (start, _), *others = [_make_clauses(run, answer, kind, findings, cause) for kind, findings in parts if findings]
    suffix = _describe_shared_values(answer) if shared_values is None else shared_values
    return "; ".join([start, *(clause for _, clause in others)]) + (f" ({suffix})." if suffix else ".")


def _make_clauses(run: Run, answer: Answer, kind: str, findings: Sequence[Finding], cause: str) -> tuple[str, str]:
    """Describe the rows with one verdict in two forms: as the start of a sentence, and as a later clause."""
    subject, base = _name_sides(run, answer)
    rows, farthest = _describe_rows(answer, findings), _name_farthest(answer, findings)
    phrase, row_names = _format_predicate(run, answer, kind, findings), rows.strip()
    conjunction = "than" if answer.table.quantity == GROWTH else "as"
    statement = f"{subject} {phrase} {conjunction} {base}{_name_quantity(answer)}{rows}"
    match kind:
        case Verdict.SLOWER | Verdict.MORE | Verdict.FASTER | Verdict.LESS:
            return f"{statement}{farthest}", f"{row_names} it {phrase}"
        case Verdict.SAME:
            margin = _describe_margin(run, answer)
            same = f"{subject} {phrase} as {base}{_name_quantity(answer)} {margin}{rows}"
            return same, f"{row_names} it {phrase} {margin}"
        case Verdict.UNCLEAR:
            because = f": {cause}" if cause else ""
            return f"Can't tell{_format_bounds(answer, findings)}: {statement}{because}", f"can't tell {row_names}"
        case Verdict.DIFFERENT_WORK:
            measure = names.measure(answer.table)
            plural = measure if measure.endswith(("s", "growth", "memory")) else f"{measure}s"
            reason = f"{subject} and {base} aren't known to do the same work{rows}: their {plural} can't be compared"
            return reason, f"different work {row_names}"
    return f"{capitalize(explain_withheld(findings))}: {statement}", explain_withheld(findings, row_names)


def _format_predicate(run: Run, answer: Answer, kind: str, findings: Sequence[Finding]) -> str:
    """Return the verb and the ratios for a result: `takes 2.70× as long`, or `has 3.00× as many traces`."""
    clock, quantity = run.plan.clock, answer.table.quantity
    template = {
        PEAK: "takes {}as much memory",
        TRACES: "has {}as many traces",
        GROWTH: "keeps {}as much memory with each call",
    }.get(quantity, "takes {}as much CPU time" if clock is Clock.CPU else "takes {}as long")
    if quantity.startswith(PRINTED):
        template = "prints {}as much"
    has_interval = len(answer.findings) == 1 and kind != Verdict.UNCLEAR
    if kind == Verdict.SAME:
        return template.format("")
    if quantity == GROWTH:
        return f"keeps {_format_byte_range(findings, has_interval)} with each call"
    if kind == Verdict.FASTER:
        ratios = _format_ratio_range([finding.ratio.inverse for finding in findings], has_interval)
        return f"is {ratios} as fast{describe_clock(clock)}"
    return template.format(f"{_format_ratio_range([finding.ratio for finding in findings], has_interval)} ")


def _name_quantity(answer: Answer) -> str:
    """Return the compared quantity, if the verb doesn't name it: ` at its peak`; otherwise empty."""
    quantity = answer.table.quantity
    if quantity == STEP or not is_time(quantity):
        printed_text = f" for {quantity.removeprefix(PRINTED)}" if quantity.startswith(PRINTED) else ""
        return " at its peak" if quantity == PEAK else printed_text
    return f" at {quantity}" if quantity in PERCENTILES else f" in the phase {quantity}"


def _describe_margin(run: Run, answer: Answer) -> str:
    """Return the margin within which two sides count as the same, as a clause."""
    if answer.table.quantity == GROWTH:
        return f"within {format.bytes_(PIECE)} over the later half of calls"
    return f"within {format.share(run.plan.margin)}"


def _format_byte_range(findings: Sequence[Finding], has_interval: bool) -> str:
    """Return a difference, with its interval, or a range of differences: `12 B to 40 B more`."""
    ratios = sorted((finding.ratio for finding in findings), key=lambda ratio: ratio.value)
    low, high = ratios[0], ratios[-1]
    if low.value < 0.0 < high.value:
        return f"{_format_bytes(low, has_interval)} less to {_format_bytes(high, has_interval)} more"
    sorted_ends = sorted((low, high), key=lambda ratio: ratio.distance)
    ends = dict.fromkeys(_format_bytes(ratio, has_interval) for ratio in sorted_ends)
    return f"{' to '.join(ends)} {'less' if high.value < 0.0 else 'more'}"


def _format_bytes(difference: Estimate, has_interval: bool) -> str:
    """Return the size of a difference in either direction: `1,230 B`, or `1,230 B (1,190 to 1,270)`."""
    size = difference.inverse if difference.value < 0.0 else difference
    interval = size.interval if has_interval else None
    return f"{format.number(size.value)} B" + (f" ({format.format_interval(interval)})" if interval else "")


def _format_ratio_range(ratios: Sequence[Estimate], has_interval: bool) -> str:
    """Return the range of ratios: `1.16× to 3.07×`, or the only ratio with its interval: `3.07× (2.99 to 3.15)`.

    If all ratios are small, they are percentages.
    """
    lowest, highest = (choose(ratios, key=lambda ratio: ratio.value) for choose in (min, max))
    if highest.value < format.SMALL_RATIO:
        interval = highest.interval
        note = f" ({format.format_interval(interval, 100.0)} %)" if has_interval and interval else ""
        ends = dict.fromkeys(f"{format.number(100.0 * ratio.value)} %" for ratio in (lowest, highest))
        return f"{' to '.join(ends)}{note}"
    if has_interval:
        return format.ratio(highest)
    return " to ".join(dict.fromkeys(format.factor(ratio.value) for ratio in (lowest, highest)))


def _format_bounds(answer: Answer, findings: Sequence[Finding]) -> str:
    """Return the interval of an unclear ratio, if it is the only one: ` (0.791 to 1.77×)`."""
    interval = findings[0].ratio.interval
    is_shown = len(answer.findings) == 1 and interval and answer.table.quantity != GROWTH
    return f" ({format.format_interval(interval)}×)" if is_shown else ""


def _name_farthest(answer: Answer, findings: Sequence[Finding]) -> str:
    """Name the row whose ratio is farthest from 1; empty if all ratios are equal."""
    if len({format.number(finding.ratio.value) for finding in findings}) == 1:
        return ""
    farthest = max(findings, key=lambda finding: finding.ratio.distance)
    rows = [finding.row for finding in findings]
    axes = [axis for axis in answer.table.row_axes if len({row.axes[axis] for row in rows}) > 1]
    place = names.place(answer.table, farthest.row, axes)
    return f", most with {place}" if place else ""


def _describe_rows(answer: Answer, findings: Sequence[Finding]) -> str:
    """Return the names of the rows of these findings; empty in a table with one row."""
    count, total = len(findings), len(answer.findings)
    if total == 1:
        return ""
    if count == total > NAMES:
        return f" in all {total} comparisons"
    row_names = _name_rows(answer, findings)
    if row_names:
        return " with " + " and with ".join(row_names)
    return f" in {count} of {total} comparisons"


def _name_rows(answer: Answer, findings: Sequence[Finding]) -> list[str]:
    """Return names for the rows of these findings; empty if there are too many rows.

    A box names several rows at once. If every box contains only one row, each row is named by all axes that vary.
    """
    boxes, unnamed_count = cover_with_boxes(
        _list_compared_cells(answer, findings), _list_compared_cells(answer, answer.findings), limit=NAMES
    )
    if len(findings) == len(answer.findings) or 1 < len(findings) == len(boxes):
        axes = [axis for axis in names.find_varying_axes(answer.table) if axis not in answer.common]
        return [names.place(answer.table, finding.row, axes) for finding in _sort_findings(answer, findings)]
    if unnamed_count or any(len(values) > VALUES for box in boxes for values in box.values.values()):
        return []
    return [_name_box(answer, box) for box in boxes]


def _sort_findings(answer: Answer, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings in the table's order."""
    positions = {id(row): position for position, row in enumerate(answer.table.rows)}
    return sorted(findings, key=lambda finding: positions[id(finding.row)])


def _list_compared_cells(answer: Answer, findings: Iterable[Finding]) -> list[Cell]:
    return [finding.compared.cell for finding in _sort_findings(answer, findings)]


def _name_box(answer: Answer, box: Box) -> str:
    scenario, values = answer.table.scenario, box.values
    axes = [axis for axis in ("device", *answer.table.row_axes) if axis in values]
    return ", ".join(
        "/".join(names.label(scenario, axis, value) if axis in scenario.axes else value for value in values[axis])
        for axis in axes
    )


def _describe_shared_values(answer: Answer) -> str:
    """Return the scenario's name, the values that all rows share, and the name of a `pick` comparison."""
    scenario = answer.table.scenario
    shared_values: Mapping[str, str] = {**answer.context, **answer.common}
    text = ", ".join([scenario.name, *names.list_labels(scenario, shared_values)])
    return f"{text}; {answer.comparison.name}" if answer.comparison.pick else text


def _name_sides(run: Run, answer: Answer) -> tuple[str, str]:
    """Return the names of the compared side and the base, each with the other values in which they differ."""
    scenario, along = answer.table.scenario, answer.comparison.along
    subject, base = (names.label(scenario, along, level) for level in (answer.subject, answer.base))
    values, base_values = list(answer.subject_has), list(answer.base_has)
    if along == ENVIRONMENT:
        by_name = {environment.name: environment for environment in run.environments}
        subject, base = _name_environment_pair(run, by_name.get(answer.subject), by_name.get(answer.base)) or (
            subject,
            base,
        )
        pythons = answer.findings[0].compared.pythons
        if pythons:
            values.append(f"Python {pythons[0]}")
            base_values.append(f"Python {pythons[1]}")
    return _add_values(subject, values), _add_values(base, base_values)


def _add_values(name: str, values: Sequence[str]) -> str:
    return f"{name} ({', '.join(values)})" if values else name


def _name_environment_pair(run: Run, one: Environment | None, other: Environment | None) -> tuple[str, str] | None:
    """Name two environments by their difference: TensorFlow, Keras or packages; None to use their own names."""
    if one is None or other is None or one.source or other.source:
        return None
    if one.base or other.base:
        return describe_overrides(run, one) or one.name, describe_overrides(run, other) or other.name
    for get_title in (
        lambda environment: f"TensorFlow {environment.tensorflow}",
        lambda environment: environment.title,
    ):
        titles = [get_title(environment) for environment in run.environments]
        if all(titles.count(get_title(environment)) == 1 for environment in (one, other)):
            return get_title(one), get_title(other)
    if (one.tensorflow, one.keras) != (other.tensorflow, other.keras):
        return None
    packages = list_changed_packages(run, one.name, other.name)
    return (f"{one.name} ({packages})", other.name) if packages else None

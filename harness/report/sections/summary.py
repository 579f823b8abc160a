"""The first screen: the main results in a few sentences and a table, and the facts that support them."""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.analysis.answers import Answer, Finding
from harness.analysis.cell_index import Lookup
from harness.analysis.cell_set_names import Box, cover_with_boxes
from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.comparisons import RoundsNeeded
from harness.analysis.control import Control
from harness.analysis.quantities import PIECE, is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.analysis.verdicts import POWER, Verdict
from harness.model.defaults import LEVEL
from harness.model.environment import Environment
from harness.model.launch import Clock, Status
from harness.model.run import RULES, Run, StopReason, describe_fallbacks
from harness.model.scenario import ENVIRONMENT, GROWTH, PEAK, PERCENTILES, PRINTED, STEP, TRACES, Cell
from harness.model.texts import counted
from harness.report import format, names
from harness.report.blocks import EVERYWHERE, FILES, REPORT, Block, Bold, Callout, Code, Items, Section, Text
from harness.report.comparisons import (
    NO_VERDICT,
    TOO_CLOSE,
    ComparisonLine,
    explain_withheld,
    format_decided_ratio,
    is_settled,
    list_lines,
    summarize_verdicts,
)
from harness.report.phrases import describe_clock, describe_overrides, list_changed_packages, name_environments
from harness.report.sections import (
    attribution,
    claims,
    expectations,
    headline,
    interleaving,
    machines,
    on_device,
    run_info,
    scenarios,
    scripts,
    settings,
    sweeps,
    timeline,
)

#: The largest number of sentences with main results.
SENTENCES = 3

#: The largest number of rows that a sentence names, and of values in a name. More rows are only counted.
NAMES, VALUES = 2, 3

# The order of the clauses of a sentence: readers look for differences first.
_ORDER = (
    *(Verdict.SLOWER, Verdict.MORE, Verdict.FASTER, Verdict.LESS, Verdict.SAME),
    *(Verdict.UNCLEAR, NO_VERDICT, Verdict.DIFFERENT_WORK),
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the first screen, and then other findings."""
    yield Section(make_title(results), "answer", make_first_screen(results))
    if findings := list(_list_other_findings(results)):
        yield Section("Other findings", "findings", findings)


def make_first_screen(results: Results, *, table: bool = True) -> list[Block]:
    """Return one sentence with the main result, one table, one sentence on the cause, warnings, and the small print.

    Claims of upstream issues come first. Without `table`, the table is omitted. A terminal shows neither the cause nor
    the small print, so that the first screen fits into 24 lines.
    """
    return [
        *claims.make_head(results),
        *(Text([Bold(answer)], where=EVERYWHERE) for answer in _list_answers(results)[:1]),
        *(Text(text, where=EVERYWHERE) for text in scripts.describe_printed(results)),
        *(Text(text, where=EVERYWHERE) for text in sweeps.describe_devices(results)[: sweeps.SENTENCES]),
        *(_make_table(results) if table else ()),
        *(Text(text, where=EVERYWHERE) for text in machines.describe_agreements(results)),
        *(Text(text, where=FILES) for text in attribution.describe_causes(results)),
        *_list_alerts(results),
        Text(" ".join(_list_conditions(results)), is_small=True, where=FILES),
    ]


def _list_answers(results: Results) -> list[str]:
    """Return the main results as sentences. The first sentence omits values that are in the small print."""
    first_sentence, *other_sentences = (
        describe_answers(results) or ([] if results.claims else [explain_no_answer(results)]) or [""]
    )
    if results.answers and not scripts.describe_scripts(results):
        first_sentence = describe_answer(results.run, results.answers[0], _distinguish_rows(results))
    return [text for text in (first_sentence, *other_sentences) if text]


def _distinguish_rows(results: Results) -> str:
    """Return the values that distinguish the rows of the first result from the other rows on the first screen."""
    answer, shared_values = results.answers[0], headline.find_shared(results)
    facts = {axis: value for axis, value in {**answer.context, **answer.common}.items() if axis not in shared_values}
    has_several_tables = len({id(other.table) for other in headline.find_leading(results)}) > 1
    return ", ".join(
        [
            *([answer.table.scenario.name] if has_several_tables else []),
            *names.list_labels(answer.table.scenario, facts),
        ]
    )


def _list_other_findings(results: Results) -> Iterator[Block]:
    on_first_screen = scripts.describe_printed(results)
    sentences = [text for text in _list_answers(results)[1:] if text not in on_first_screen]
    if sentences:
        yield Items(sentences, where=FILES)
    omitted_count = len(results.answers) - SENTENCES
    if omitted_count > 0 and not scripts.describe_scripts(results):
        yield Text(f"{counted(omitted_count, 'more comparison', 'is')} in the tables.", where=FILES)
    for text in [*settings.describe_settings(results), *settings.describe_page_faults(results)]:
        yield Text(text, True, where=FILES)


def _make_table(results: Results) -> Iterator[Block]:
    """Yield the table of the first screen: comparisons or, if nothing is compared, times."""
    if results.answers:
        yield from headline.make_blocks(results)
    elif not results.claims:
        yield from (replace(scenarios.make_times_table(table), where=REPORT) for table in results.tables[:1])


def _list_alerts(results: Results) -> Iterator[Block]:
    """Yield the warnings that a reader must see before believing the main results.

    If a budget ended a run in which all verdicts are clear, the end isn't a warning.
    """
    fallbacks = describe_fallbacks(results.run.plan.stand_ins)
    warnings = [
        *machines.describe_absent(results),
        *([fallbacks] if fallbacks else []),
        *machines.collect_sentences(results, interleaving.list_warnings),
        *on_device.list_warnings(results),
    ]
    end_blocks = list(describe_early_end(results))
    if not command_to_continue(results):
        yield from end_blocks
        end_blocks = []
    blocks = [*end_blocks, *(Text(text, where=REPORT) for text in warnings), *suggest_rounds(results)]
    if blocks:
        yield Callout(blocks, where=REPORT)


def _list_conditions(results: Results) -> list[str]:
    """Return sentences on how the run measured, and on the A/A control."""
    verdicts = [line.compared.verdict for line in _list_judged(results)]
    common = headline.find_shared(results)
    scenario = results.answers[0].table.scenario if common else None
    shared_text = ", ".join([scenario.name, *names.list_labels(scenario, common)]) if scenario else ""
    return [
        *([summarize_verdicts(verdicts)] if verdicts else []),
        *([f"The same in all rows: {shared_text}."] if shared_text else []),
        *machines.collect_sentences(results, lambda machine: [describe_conditions(machine)]),
        *(
            machines.collect_sentences(results, lambda machine: [describe_control(machine)])
            if results.compares or results.claims
            else []
        ),
    ]


def make_title(results: Results) -> str:
    """Return the title: `One training step: TensorFlow 2.0.0 vs 1.14.0`."""
    measured = [scenario for scenario in results.run.scenarios if results.found.cells_of(scenario.name)]
    subject = measured[0].title if len(measured) == 1 else f"{len(measured)} scenarios"
    return ": ".join(filter(None, [subject, _describe_versions(results.run.environments)]))


def _describe_versions(run_environments: Sequence[Environment]) -> str:
    """Return the versions of two TensorFlow releases, newer first, or the names of other environments."""
    versions = [environment.tensorflow for environment in run_environments if not environment.base]
    if len(run_environments) == 2 == len({*versions}):
        return f"TensorFlow {versions[1]} vs {versions[0]}"
    return name_environments(run_environments)


def describe_answers(results: Results, limit: int = SENTENCES) -> list[str]:
    """Return the first results as sentences. A sentence omits shared values that the previous sentence contains.

    For plain scripts, return all sentences about them.
    """
    if script_sentences := scripts.describe_scripts(results):
        return script_sentences
    texts, previous = [], ""
    for answer in results.answers[:limit]:
        shared_values = _describe_shared_values(answer)
        texts.append(describe_answer(results.run, answer, "" if shared_values == previous else shared_values))
        previous = shared_values
    return texts


def describe_answer(run: Run, answer: Answer, shared_values: str | None = None) -> str:
    """Return one result as a sentence.

    `shared_values` are the values that all rows share. By default, these are the scenario and the axis values.
    """
    parts = [
        (kind, [finding for finding in answer.findings if (finding.verdict or NO_VERDICT) == kind]) for kind in _ORDER
    ]
    (start, _), *others = [_make_clauses(run, answer, kind, findings) for kind, findings in parts if findings]
    suffix = _describe_shared_values(answer) if shared_values is None else shared_values
    return "; ".join([start, *(clause for _, clause in others)]) + (f" ({suffix})." if suffix else ".")


def _make_clauses(run: Run, answer: Answer, kind: str, findings: Sequence[Finding]) -> tuple[str, str]:
    """Describe the rows with one verdict in two forms: as the start of a sentence, and as a later clause."""
    subject, base = _name_sides(run, answer)
    rows, farthest = _describe_rows(answer, findings), _name_farthest(answer, findings)
    phrase, row_names = _format_predicate(run, answer, kind, findings), rows.strip()
    statement, measure = (
        f"{subject} {phrase} {_choose_conjunction(answer)} {base}{_name_quantity(answer)}{rows}",
        names.measure(answer.table),
    )
    match kind:
        case Verdict.SLOWER | Verdict.MORE | Verdict.FASTER | Verdict.LESS:
            return f"{statement}{farthest}", f"{row_names} it {phrase}"
        case Verdict.SAME:
            margin = _describe_margin(run, answer)
            return (
                f"{subject} {phrase} as {base}{_name_quantity(answer)} {margin}{rows}",
                f"{row_names} it {phrase} {margin}",
            )
        case Verdict.UNCLEAR:
            return f"No clear difference: {statement}", f"no clear difference {row_names}"
        case Verdict.DIFFERENT_WORK:
            plural = measure if measure.endswith(("s", "growth", "memory")) else f"{measure}s"
            reason = f"{subject} and {base} aren't known to do the same work{rows}: their {plural} can't be compared"
            return reason, f"different work {row_names}"
    return f"{statement}; {explain_withheld(findings)}", explain_withheld(findings, row_names)


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
    if kind == Verdict.SAME:
        return template.format("")
    if quantity == GROWTH:
        return f"keeps {_format_byte_range(findings)} with each call"
    if kind == Verdict.FASTER:
        return f"is {_format_ratio_range(findings, faster=True)} as fast{describe_clock(clock)}"
    return template.format(f"{_format_ratio_range(findings)} ")


def _name_quantity(answer: Answer) -> str:
    """Return the compared quantity, if the verb doesn't name it: ` at its peak`; otherwise empty."""
    quantity = answer.table.quantity
    if quantity == STEP or not is_time(quantity):
        printed_text = f" for {quantity.removeprefix(PRINTED)}" if quantity.startswith(PRINTED) else ""
        return " at its peak" if quantity == PEAK else printed_text
    return f" at {quantity}" if quantity in PERCENTILES else f" in the phase {quantity}"


def _choose_conjunction(answer: Answer) -> str:
    return "than" if answer.table.quantity == GROWTH else "as"


def _describe_margin(run: Run, answer: Answer) -> str:
    """Return the margin within which two sides count as the same, as a clause."""
    if answer.table.quantity == GROWTH:
        return f"within {format.bytes_(PIECE)} over the later half of calls"
    return f"within {format.share(run.plan.margin)}"


def _format_byte_range(findings: Sequence[Finding]) -> str:
    """Return a difference or a range of differences, with intervals: `12 B (9 to 15) to 40 B (36 to 44) more`."""
    ratios = sorted((finding.ratio for finding in findings), key=lambda ratio: ratio.value)
    low, high = ratios[0], ratios[-1]
    if low.value < 0.0 < high.value:
        return f"{_format_bytes(low)} less to {_format_bytes(high)} more"
    ends = dict.fromkeys(map(_format_bytes, sorted((low, high), key=lambda ratio: ratio.distance)))
    return f"{' to '.join(ends)} {'less' if high.value < 0.0 else 'more'}"


def _format_bytes(difference: Estimate) -> str:
    """Return the size of a difference in either direction, with its interval: `1,230 B (1,190 to 1,270)`."""
    size = difference.inverse if difference.value < 0.0 else difference
    return f"{format.number(size.value)} B" + (f" ({format.format_interval(size.interval)})" if size.interval else "")


def _format_ratio_range(findings: Sequence[Finding], *, faster: bool = False) -> str:
    """Return the range of ratios, with intervals: `1.16× (1.12 to 1.20) to 3.07× (2.99 to 3.15)`."""
    ratios = [(finding.ratio, finding.deciding) for finding in findings]
    if faster:
        ratios = [(ratio.inverse, deciding and deciding.inverse) for ratio, deciding in ratios]
    ratios.sort(key=lambda pair: pair[0].value)
    return " to ".join(dict.fromkeys(format_decided_ratio(*pair) for pair in (ratios[0], ratios[-1])))


def _name_farthest(answer: Answer, findings: Sequence[Finding]) -> str:
    """Name the row whose ratio is farthest from 1; empty if all ratios are equal."""
    if len({format.number(finding.ratio.value) for finding in findings}) == 1:
        return ""
    farthest = max(findings, key=lambda finding: finding.distance)
    rows = [finding.row for finding in findings]
    axes = [axis for axis in answer.table.row_axes if len({row.axes[axis] for row in rows}) > 1]
    place = names.place(answer.table, farthest.row, axes)
    return f", especially with {place}" if place else ""


def _describe_rows(answer: Answer, findings: Sequence[Finding]) -> str:
    """Return the names of the rows of these findings; empty in a table with one row."""
    count, total = len(findings), len(answer.findings)
    if total == 1:
        return ""
    if count == total > NAMES:
        return f" in all {total} rows"
    row_names = _name_rows(answer, findings)
    if row_names:
        return " with " + " and with ".join(row_names)
    return f" in {count} of {total} rows"


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


def explain_no_answer(results: Results) -> str:
    """Return the sentence for a run that compares nothing."""
    cells = len(results.found.cells)
    if results.tables:
        measured = len(results.found.series)
        if cells == 1:
            return "Nothing is compared, because there is only one cell."
        text = f"Nothing is compared: {measured} of {cells} cells have a result, but no two of them can be compared."
        advice = " To compare the values of an axis, name it in the scenario's header: [[tool.harness.compare]]."
        return text + advice if 1 < cells == measured else text
    observed_count = len(results.found.observed)
    if not observed_count:
        return "No cell has a result."
    text = f"Nothing was timed: {observed_count} of {cells} cells have observations."
    return f"{text} {expectations.count_results(results.statements)}" if results.statements else text


def suggest_rounds(results: Results) -> Iterator[Block]:
    """Yield how many rounds would give unclear comparisons or claims a verdict, with the duration and the command.

    The command continues only the groups of these comparisons, and the duration is theirs.

    The suggested number is likely to be enough for half of the comparisons for which any number is likely to be enough.
    Remarks in the tables have the number for each comparison. If the groups of these comparisons can't be continued,
    for example because they ended at the run's precision, the text suggests a new run.
    """
    # a claim has a result in each environment
    needs, noun = _list_rounds_needed(results), "result" if results.claims else "comparison"
    open_needs = [(index, cell, rounds_needed) for index, cell, rounds_needed in needs if rounds_needed]
    if not open_needs:
        return
    claims_text = " of claims" if results.claims else ""
    verb = "is" if len(open_needs) == 1 else "are"
    text = f"{len(open_needs)} of {counted(len(needs), noun)}{claims_text} {verb} unclear"
    if not results.claims and len(open_needs) < len(needs):
        text += _name_unclear(results, [line for line in _list_judged(results) if line.compared.settling])
    likely = [
        (index, cell, index.rounds_of(cell) + rounds_needed.rounds)
        for index, cell, rounds_needed in open_needs
        if rounds_needed.is_likely
    ]
    if not likely:
        yield Text(f"{text}: {TOO_CLOSE}.", where=REPORT)
        return
    rounds = _find_rounds(results, needs)
    settled_cells = [
        (index, cell)
        for index, cell, total in likely
        if rounds is None or (total <= rounds and not index.has_ended(cell))
    ]
    settled_count, nouns = len(settled_cells), noun if len(open_needs) == 1 else f"{noun}s"
    which_text = (
        f"{settled_count} of these"
        if settled_count < len(open_needs)
        else "this"
        if settled_count == 1
        else "each of these"
    )
    if rounds is None:
        plan = results.run.plan
        of_claims = " with harness matrix --claim ISSUE --precision 2%" if plan.claims else ""
        suggestion = " with a smaller --precision" if plan.precision else of_claims
        yield Text(
            f"{text}. --resume adds no rounds for {which_text} {nouns}: start a new run{suggestion}.", where=REPORT
        )
        return
    lookup, cell = settled_cells[0]
    further_rounds = rounds - lookup.rounds_of(cell)
    own_groups = [name for name in results.unsettled_groups if lookup.machines.get(name) == lookup.machine(cell)]
    seconds = lookup.seconds_until(own_groups, rounds)
    duration_text = f", about {format.duration(seconds)}" if seconds else ""
    text = (
        f"{text}. With {rounds} rounds in total ({further_rounds} more{duration_text}), the probability of a verdict "
        f"is at least {format.share(POWER)} for {which_text} {nouns}"
    )
    if results.machines:
        # a merged run can't be continued
        yield Text(f"{text}.", where=REPORT)
        return
    yield Text(f"{text}:", where=REPORT)
    folder = results.run.shown_folder
    command = ["harness", "matrix", "--resume", folder, "--rounds", str(rounds), "--unsettled"]
    yield Code(shlex.join(command), where=REPORT)


def _name_unclear(results: Results, unclear_lines: Sequence[ComparisonLine]) -> str:
    """Return a clause if no unclear comparison is in the table of the first screen, and the names of a few of them."""
    compared = [finding.compared for answer in headline.find_leading(results) for finding in answer.findings]
    note = "" if any(line.compared in compared for line in unclear_lines) else ", but not in this table"
    has_several_scenarios = len({line.table.scenario.name for line in unclear_lines}) > 1
    line_names = [
        f"{line.table.scenario.name}: {line.name}" if has_several_scenarios else line.name for line in unclear_lines
    ]
    return note + (f" ({'; '.join(line_names)})" if 0 < len(line_names) <= NAMES else "")


def describe_early_end(results: Results) -> Iterator[Block]:
    """Yield what ended the run before all planned rounds, with the command that continues it if this is useful."""
    sentence, command = run_info.describe_early_end(results.run, results.launches), command_to_continue(results)
    if sentence and command and not find_rounds_to_settle(results):  # otherwise, `suggest_rounds` yields the command
        yield Text(f"{sentence} To continue the run:", where=FILES)
        yield Code(command, where=FILES)
    elif sentence:
        yield Text(sentence, where=FILES)


def command_to_continue(results: Results) -> str:
    """Return the command that continues a run; empty if all verdicts were clear when the budget ended the run."""
    lines = _list_judged(results)
    is_ended_by_budget = {stop.reason for stop in results.run.stops.values()} == {StopReason.BUDGET}
    is_complete = not any(missing.status is Status.INTERRUPTED for missing in results.missing)
    if is_ended_by_budget and is_complete and lines and all(is_settled(line.verdict) for line in lines):
        return ""
    return run_info.command_to_continue(results.run, find_rounds_to_settle(results))


def find_rounds_to_settle(results: Results) -> int | None:
    """Return the total number of rounds that `suggest_rounds` suggests; None if it suggests none."""
    return None if results.machines else _find_rounds(results, _list_rounds_needed(results))


def _find_rounds(results: Results, needs: Sequence[tuple[Lookup, Cell, RoundsNeeded | None]]) -> int | None:
    """Return the number of rounds that `suggest_rounds` suggests; None if no number is likely to be enough.

    Groups that can't be continued are omitted. The number isn't below the number of rounds of any other group that the
    command continues, because `--resume` refuses such a number.
    """
    totals = sorted(
        lookup.rounds_of(cell) + rounds_needed.rounds
        for lookup, cell, rounds_needed in needs
        if rounds_needed and rounds_needed.is_likely and not lookup.has_ended(cell)
    )
    counts = [results.found.rounds[name] for name in results.unsettled_groups]
    return max([totals[(len(totals) - 1) // 2], *counts]) if totals else None


def _list_rounds_needed(results: Results) -> list[tuple[Lookup, Cell, RoundsNeeded | None]]:
    """Return the claims or the comparisons, each with the rounds that it needs for a verdict if it is unclear."""
    if results.claims:
        return _list_claim_rounds(results)
    lines = _list_judged(results)
    return [(results.found_of(line.table.quantity), line.compared.cell, line.compared.settling) for line in lines]


def _list_judged(results: Results) -> list[ComparisonLine]:
    return [line for table in results.all_tables for line in list_lines(table)]


def _list_claim_rounds(results: Results) -> list[tuple[Lookup, Cell, RoundsNeeded | None]]:
    """Return the claims in each measured environment, each with the rounds that it needs if it is unclear."""
    return [
        (
            results.found_of(result.claim.of),
            place.worse,
            place.settling if place.outcome is ClaimOutcome.UNCLEAR else None,
        )
        for result in results.claims
        for place in result.places
        if place.estimate
    ]


_OLDER = " An earlier version of harness made this run; the verdicts follow the current rules."


def describe_conditions(results: Results) -> str:
    """Describe how the run was measured: rounds, cores, the margin, and interference from other processes."""
    run = results.run
    cpu = run.host.get("cpu")
    cores = f"{timeline.describe_pinning(run)}{f', on {cpu}' if cpu else ''}"
    measured = "CPU time, not wall-clock time, was measured" if run.plan.clock is Clock.CPU else "Measured"
    return " ".join(
        [
            f"{measured} in {timeline.format_rounds(results)} of fresh processes, {cores}.",
            f"Differences below {format.share(run.plan.margin)} aren't reported.",
            *_describe_intervals(results),
            f"{timeline.interference_of(results)}{_OLDER if run.rules < RULES else ''}",
        ]
    )


def _describe_intervals(results: Results) -> Iterator[str]:
    """Yield the confidence of the first screen's intervals, and which intervals decide the verdicts."""
    with_interval = [line.compared for line in _list_judged(results) if line.compared.ratio.interval]
    comparable = [compared for compared in with_interval if compared.verdict is not Verdict.DIFFERENT_WORK]
    level = format.level(LEVEL)
    if len(comparable) == 1:
        yield f"The interval of the ratio has {level} confidence."
    elif comparable:
        scope = " of a scenario about one quantity" if len(results.all_tables) > 1 else " of ratios"
        effects = ", and so do all intervals of effects" if attribution.describe_causes(results) else ""
        yield f"All intervals{scope} together have {level} confidence{effects}."
    count = sum(compared.deciding is not None for compared in comparable)
    if count:
        yield (
            f"In {count} of these {len(comparable)} comparisons, the verdict is decided by a narrower interval than "
            "the one shown (Holm's procedure)."
        )


def describe_control(results: Results, margin: float | None = None) -> str:
    """Describe the A/A control: whether two identical cells differ, and the bias that half of such runs would detect.

    `margin` is a share. The default is the margin of the run.
    """
    control, margin = results.control, results.run.plan.margin if margin is None else margin
    if control is None:
        return "No A/A control: no cell was launched twice in a round, so this run's own noise is not known."
    log_margin = math.log1p(margin)
    differed = f"differed by {format.format_self_difference(control.estimate)}"
    text = f"A/A control: {_name_controlled(results, control)} {differed}{describe_clock(results.run.plan.clock)}"
    if control.is_beyond(log_margin):
        return (
            f"{text}. That is more than the margin of {format.share(margin)}, so no verdicts are given. Measure on a "
            "machine with less interference (see harness doctor), and with more rounds."
        )
    if control.estimate.interval is None or not control.is_check(log_margin):
        return f"{text}: too few rounds to check for a bias."
    bias = format.share(float(f"{math.expm1(control.least_bias(log_margin)):.2g}"))
    sensitivity = f"A bias of {bias} would be detected in half of such runs."
    if 1.0 in control.estimate.interval:
        return f"{text}: no difference is shown. {sensitivity}"
    return f"{text}: more than noise, but not certainly more than the margin of {format.share(margin)}. {sensitivity}"


def _name_controlled(results: Results, control: Control) -> str:
    """Name the launches that an A/A control is about: its cell, and its groups if the run has several."""
    groups = len(results.run.plan.groups)
    if control.groups > 1 or not control.cells:
        part = f"{control.groups} of " if control.groups < groups else ""
        return f"two launches of the baseline cell, in each of {part}{counted(groups, 'group')},"
    cell = control.cells[0]
    name = " ".join(names.distinguish_cells(list(results.found.cells), results.run.scenarios)[cell])
    return f"two launches of {name}{f', in 1 of {groups} groups,' if groups > 1 else ''}"

"""Attribution: the effect of each change on its own, and how pairs of changes interact."""

from collections.abc import Iterator, Sequence
from functools import partial

from harness.analysis.attribution import Attribution
from harness.analysis.effects import Effect
from harness.analysis.results import Results
from harness.analysis.statistics import Interval
from harness.analysis.verdicts import describe_too_few
from harness.model.defaults import LEVEL
from harness.model.launch import Clock
from harness.model.run import Plan
from harness.model.scenario import ENVIRONMENT
from harness.model.texts import counted, joined
from harness.report import format, names
from harness.report.blocks import FILES, REST, Block, Column, Entry, Section, Text, join_legends, tabulate
from harness.report.comparisons import count_verdicts, describe_deciding
from harness.report.phrases import (
    capitalize,
    describe_clock,
    describe_longer,
    describe_pythons,
    format_heading,
    join_remarks,
)

#: The largest number of changes in the sentence above the table.
NAMED = 2

#: If an axis has more levels than this, the levels are counted instead of listed.
LEVELS = 6


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with the main effects and interactions of each table, by device."""
    blocks = [block for attribution in results.attributions for block in _list_blocks(results, attribution)]
    if blocks:
        explanation = Text(_make_legend(results.attributions, join_legends(blocks)), True)
        yield Section("Effects of each change", "effects", [*blocks, explanation])


def _list_blocks(results: Results, attribution: Attribution) -> Iterator[Block]:
    # without verdicts, the table isn't part of report.md
    where = FILES | REST if _has_verdicts(attribution) else REST
    scenario_tables = [table for table in results.tables if table.scenario.name == attribution.scenario.name]
    has_several_devices = any(table.several_devices for table in scenario_tables)
    device = ", ".join(filter(None, [attribution.device.value if has_several_devices else "", attribution.machine]))
    yield from format_heading(results, attribution.scenario, device, where)
    yield Text(describe_effects(attribution, results.run.plan), where=where)
    caption = ", ".join(filter(None, ["Effects", attribution.scenario.title, device]))
    yield tabulate(caption, _list_columns(results, attribution), attribution.displayed_effects, noun="effect")
    yield Text(describe_cells(attribution), True)


def describe_cause(results: Results) -> str:
    """Return a sentence on the changes that make a difference; empty without differences, or for several scenarios.

    If the effect of a change depends on another change, the sentence is about these two changes.
    """
    judged_attributions = [
        candidate for candidate in results.attributions if candidate.judged and _has_verdicts(candidate)
    ]
    if len(judged_attributions) != 1 or len(judged_attributions[0].leading) < 2:
        return ""
    (attribution,) = judged_attributions
    clock = results.run.plan.clock
    if attribution.depending:
        return f"{_describe_interaction(attribution, attribution.depending, clock)}."
    factors = ", and ".join(_describe_change(attribution, effect, clock) for effect in attribution.leading[:NAMED])
    return f"Averaged over the other axes, {factors}."


def describe_effects(attribution: Attribution, plan: Plan) -> str:
    """Return the sentence on the changes that make a difference, and on two changes that depend on each other."""
    if not attribution.judged:
        return f"{capitalize(describe_too_few(attribution.rounds))} on these effects."
    if not _has_verdicts(attribution):
        return "There are no verdicts on these effects, because two identical cells differed by more than the margin."
    leading, interaction = attribution.leading, attribution.depending
    factors = ", and ".join(_describe_change(attribution, effect, plan.clock) for effect in leading[:NAMED])
    difference = f"a difference{describe_clock(plan.clock)} of more than {format.share(plan.margin)}"
    match len(leading):
        case 0:
            changes = f"no change is shown to make {difference}"
        case 1:
            changes = f"only one change makes {difference}: {factors}"
        case count if count > NAMED:
            changes = f"{count} changes make {difference}. The largest: {factors}"
        case count:
            changes = f"{count} changes make {difference}: {factors}"
    sentence = f"Averaged over the other axes, {changes}."
    if interaction is None:
        return sentence
    dependence = _describe_dependence(attribution, interaction, plan.clock)
    change, second = interaction.changes
    name = names.name_change(attribution.scenario, change)
    return f"{sentence} The effect of {name} depends on the {second.axis}: {dependence}."


def _has_verdicts(attribution: Attribution) -> bool:
    return any(effect.verdict for effect in attribution.effects)


def _describe_change(attribution: Attribution, effect: Effect, clock: Clock) -> str:
    """Describe a single change: `eager takes 2.03× as long as graph`.

    A small ratio is inverted, because nobody reads 0.0000553×.
    """
    level, base = names.name_ends(attribution.scenario, effect.changes[0])
    ratio = effect.estimate.value
    if ratio < format.SMALL_RATIO:
        level, base, ratio = base, level, 1.0 / ratio
    return f"{level} takes {format.factor(ratio)} {describe_longer(clock)} as {base}"


def _describe_interaction(
    attribution: Attribution, effect: Effect, clock: Clock, *, has_intervals: bool = False
) -> str:
    """Describe an interaction: `with mode=graph, tf2.0 takes 1.06× as long as tf1.14; with eager, 2.96×`."""
    assert effect.parts is not None, "an interaction has parts"
    change, second = effect.changes
    level, base = names.name_ends(attribution.scenario, change)
    second_level, _ = names.name_ends(attribution.scenario, second)
    first_factor, second_factor = (
        _format_part(factor, interval if has_intervals else None)
        for factor, interval in (
            (effect.parts.alone, effect.parts.alone_interval),
            (effect.parts.with_second, effect.parts.with_second_interval),
        )
    )
    return (
        f"with {second.axis}={second.base}, {level} takes {first_factor} {describe_longer(clock)} as {base}"
        f"; with {second_level}, {second_factor}"
    )


def _describe_dependence(attribution: Attribution, effect: Effect, clock: Clock, *, has_intervals: bool = False) -> str:
    """Describe an interaction, and the effect of both changes together."""
    assert effect.parts is not None, "an interaction has parts"
    factor, interval = effect.parts.together, effect.parts.together_interval if has_intervals else None
    factor_of_both = _format_part(factor, interval)
    if factor < format.SMALL_RATIO:
        inverse = Interval(1.0 / interval.high, 1.0 / interval.low) if interval else None
        factor_of_both = f"{_format_part(1.0 / factor, inverse)} as fast"
    interaction = _describe_interaction(attribution, effect, clock, has_intervals=has_intervals)
    return f"{interaction}. Both changes together: {factor_of_both}"


def _format_part(factor: float, interval: Interval | None) -> str:
    return f"{format.factor(factor)} ({format.format_interval(interval)})" if interval else format.factor(factor)


def _list_columns(results: Results, attribution: Attribution) -> list[Column[Effect]]:
    margin = format.share(results.run.plan.margin)
    return [
        Column("change", partial(_name_effect, attribution), is_label=True),
        Column(
            f"{results.run.plan.clock.time} ratio",
            _make_ratio_entry,
            legend="The ratio of a change, such as “eager vs graph”, is the geometric mean over all combinations of "
            "the other axes. Above 1, the value before “vs” takes longer. The additional factor of two changes (their "
            "interaction) shows how much the second change modifies the ratio of the first one. It is 1 if both "
            "changes together have the product of their ratios.",
            is_number=True,
        ),
        Column(
            "verdict",
            lambda effect: effect.verdict or "",
            legend=f"Verdicts: slower if the ratio exceeds 1 by more than {margin}, faster if it is smaller by "
            "more than this, the same if it is within this margin, unclear if none of these is certain.",
            is_verdict=True,
            is_optional=True,
        ),
        Column("remarks", partial(_make_remark, results, attribution), is_optional=True),
    ]


def _make_ratio_entry(effect: Effect) -> Entry:
    # an additional factor isn't a time
    verdict = None if effect.parts else effect.verdict
    return Entry(format.ratio_and_inverse(effect.estimate, verdict), order=effect.estimate.value)


def _name_effect(attribution: Attribution, effect: Effect) -> str:
    return names.name_effect(attribution.scenario, effect) + (": additional factor" if effect.parts else "")


def _make_remark(results: Results, attribution: Attribution, effect: Effect) -> str:
    change = effect.changes[0]
    versions = results.found.pythons(change.level, change.base) if change.axis == ENVIRONMENT else None
    text = (
        _describe_dependence(attribution, effect, results.run.plan.clock, has_intervals=True)
        if effect.parts
        else describe_pythons(versions)
    )
    return join_remarks([describe_deciding(effect.deciding), text])


def describe_cells(attribution: Attribution) -> str:
    """Return sentences on the cells from which the effects are calculated."""
    omitted_count, hidden = attribution.of - attribution.cells, attribution.left
    axes = joined([f"{axis} ({_format_levels(levels)})" for axis, levels in attribution.axes.items()])
    held_labels = ", ".join(names.list_labels(attribution.scenario, attribution.held))
    subject = (
        "The other cell with a result is"
        if omitted_count == 1
        else f"The other {omitted_count} cells with a result are"
    )
    rounds = counted(attribution.rounds, "round") + (" that all of these cells have" if attribution.rounds > 1 else "")
    sentences = [
        f"The effects are calculated from {counted(attribution.cells, 'cell')}: every combination of "
        f"{', with '.join(filter(None, [axes, held_labels]))}, in {rounds}.",
        f"{subject} left out, so that no combination is missing." if omitted_count else "",
        f"{counted(len(hidden), 'interaction', 'is')} not shown: {count_verdicts(effect.verdict for effect in hidden)}."
        if hidden
        else "",
        "Not all of these cells could be checked for doing the same work." if attribution.unchecked else "",
    ]
    return " ".join(filter(None, sentences))


def _format_levels(levels: Sequence[str]) -> str:
    return f"{len(levels)}, {levels[0]} to {levels[-1]}" if len(levels) > LEVELS else ", ".join(levels)


def _make_legend(attributions: Sequence[Attribution], legend: str) -> str:
    """Explain the tables, once for all of them. `legend` explains their columns."""
    has_environments = any(ENVIRONMENT in attribution.axes for attribution in attributions)
    sentences = [
        legend,
        f"All intervals of one table together have {format.level(LEVEL)} confidence, and so do its verdicts, and the "
        "intervals in its remarks."
        if any(attribution.rounds > 1 for attribution in attributions)
        else "",
        "Another environment is a change of all its contents: release, Python, packages and CUDA."
        if has_environments
        else "",
    ]
    return " ".join(filter(None, sentences))

"""Attribution: the effect of each change on its own, and how pairs of changes interact."""

from collections.abc import Iterator, Sequence

from harness.analysis.attribution import Attribution
from harness.analysis.effects import Effect
from harness.analysis.results import Results
from harness.analysis.verdicts import too_few
from harness.model.defaults import LEVEL
from harness.model.run import Plan
from harness.model.scenario import ENVIRONMENT
from harness.model.texts import counted, joined
from harness.report import format, names
from harness.report.blocks import FILES, REST, Block, Column, Entry, Figure, Section, Text, tabulate
from harness.report.charts import forest
from harness.report.comparisons import tally
from harness.report.phrases import capital, headed, in_clock, pythons, remarks

#: How many changes the sentence over the table names.
NAMED = 3

#: An axis with more levels has them counted.
LEVELS = 6

Line = tuple[Attribution, Effect]


def sections(results: Results) -> Iterator[Section]:
    """Return the main effects and interactions of each table, by device."""
    blocks = [block for attribution in results.attributions for block in _blocks(results, attribution)]
    if blocks:
        explanation = Text(legend(results, results.attributions), True)
        yield Section("Effects of each change", "effects", [*blocks, explanation])


def _blocks(results: Results, attribution: Attribution) -> Iterator[Block]:
    # without verdicts there is nothing to paste
    where = FILES | REST if _has_verdicts(attribution) else REST
    several = any(table.several_devices for table in results.tables if table.scenario.name == attribution.scenario.name)
    device = ", ".join(filter(None, [attribution.device.value if several else "", attribution.machine]))
    yield from headed(results, attribution.scenario, device, where)
    yield Text(sentence(attribution, results.run.plan), where=where)
    yield from map(Figure, forest.effects(results, attribution))
    caption = ", ".join(filter(None, ["Effects", attribution.scenario.title, device]))
    yield tabulate(caption, columns(results), [(attribution, effect) for effect in attribution.told], noun="effect")
    yield Text(cells(attribution), True)


def causes(results: Results) -> list[str]:
    """Return one sentence on the changes that make a difference; none if there is none, or no single scenario.

    If the effect of a change depends on another, the sentence is about these two.
    """
    every = [candidate for candidate in results.attributions if candidate.judged and _has_verdicts(candidate)]
    if len(every) != 1 or len(every[0].leading) < 2:
        return []
    (attribution,) = every
    if attribution.depending is None:
        return [sentence(attribution, results.run.plan)]
    parts = attribution.depending.parts
    assert parts is not None, "an interaction has parts"
    first, second = attribution.depending.changes
    base, level = (names.label(attribution.scenario, second.axis, value) for value in (second.base, second.level))
    return [
        f"The effect of {names.change(attribution.scenario, first)} depends on another change. Averaged over "
        f"{counted(attribution.cells, 'cell')}, it is {format.factor(parts.alone)} with {base}, and "
        f"{format.factor(parts.with_second)} with {level}."
    ]


def sentence(attribution: Attribution, plan: Plan) -> str:
    """Return the sentence on changes that make a difference, and on two that depend on each other."""
    if not attribution.judged:
        return f"{capital(too_few(attribution.rounds))} on these effects."
    if not _has_verdicts(attribution):
        return "No verdicts on these effects: two identical cells differed by more than the margin."
    leading, on = attribution.leading, attribution.depending
    factors = [
        f"{names.effect(attribution.scenario, effect)} {format.factor(effect.estimate.value)}"
        for effect in leading[:NAMED]
    ]
    factors += [counted(len(leading) - NAMED, "more change")] if len(leading) > NAMED else []
    beyond = f"a difference{in_clock(plan.clock)} of more than {format.share(plan.margin)}"
    match len(leading):
        case 0:
            changes = f"no change is shown to make {beyond}"
        case 1:
            changes = f"one change makes {beyond}: {factors[0]}"
        case count:
            changes = f"{count} changes make {beyond}, largest first: {joined(factors)}"
    first = f"Averaged over the other axes, {changes}."
    return f"{first} {capital(_dependence(attribution, on))}" if on else first


def _dependence(attribution: Attribution, effect: Effect) -> str:
    return f"two changes depend on each other: {_depends(attribution, effect)}."


def _has_verdicts(attribution: Attribution) -> bool:
    return any(effect.verdict for effect in attribution.effects)


def _depends(attribution: Attribution, effect: Effect) -> str:
    """`tf2.0 vs tf1.14 is 1.06× with graph and 2.96× with eager; both changes together are 3.06×`."""
    assert effect.parts is not None, "an interaction has parts"
    first, second = effect.changes
    base, level = (names.label(attribution.scenario, second.axis, value) for value in (second.base, second.level))
    return (
        f"{names.change(attribution.scenario, first)} is {format.factor(effect.parts.alone)} with {base} and "
        f"{format.factor(effect.parts.with_second)} with {level}; "
        f"both changes together are {format.factor(effect.parts.together)}"
    )


def columns(results: Results) -> list[Column[Line]]:
    """Return the columns of a table of effects."""
    margin = format.share(results.run.plan.margin)
    return [
        Column("change", _name, is_label=True),
        Column(
            f"{results.run.plan.clock.time} ratio",
            lambda line: Entry(format.ratio(line[1].estimate), order=line[1].estimate.value),
            legend="The ratio of one change is the geometric mean over all combinations of the other axes: above 1, "
            "the first of the two takes longer. The additional factor of two changes (their interaction) is the ratio "
            "of the first change with the second one, divided by its ratio without the second one. It is 1 if the two "
            "ratios multiply.",
            is_number=True,
        ),
        Column(
            "verdict",
            lambda line: line[1].verdict or "",
            legend=f"Verdicts: slower if the ratio exceeds 1 by more than {margin}, faster if it is smaller by "
            "more than this, the same if it is within this margin, unclear if nothing is shown.",
            is_verdict=True,
            is_optional=True,
        ),
        Column("remarks", lambda line: _remark(results, *line), is_optional=True),
    ]


def _name(line: Line) -> str:
    attribution, effect = line
    return names.effect(attribution.scenario, effect) + (": additional factor" if effect.parts else "")


def _remark(results: Results, attribution: Attribution, effect: Effect) -> str:
    change = effect.changes[0]
    versions = results.found.pythons(change.level, change.base) if change.axis == ENVIRONMENT else None
    text = _depends(attribution, effect) if effect.parts else pythons(versions)
    return remarks([text])


def cells(attribution: Attribution) -> str:
    """Return the sentences on the cells of the effects, and on all effects."""
    left, untold = attribution.of - attribution.cells, attribution.left
    axes = joined([f"{axis} ({_levels(levels)})" for axis, levels in attribution.axes.items()])
    held = ", ".join(names.labels(attribution.scenario, attribution.held))
    subject = "The other cell with a number is" if left == 1 else f"The other {left} cells with a number are"
    rounds = counted(attribution.rounds, "round") + (" that all cells share" if attribution.rounds > 1 else "")
    sentences = [
        f"The effects are of {counted(attribution.cells, 'cell')}: every combination of "
        f"{', with '.join(filter(None, [axes, held]))}, in {rounds}.",
        f"{subject} left out, so that no combination is missing." if left else "",
        f"{counted(len(untold), 'interaction', 'is')} not shown: {tally(effect.verdict for effect in untold)}."
        if untold
        else "",
        "Not all of these cells could be checked for doing the same work." if attribution.unchecked else "",
        f"The {len(attribution.effects)} effects are judged together at {format.level(LEVEL)} (Holm); each interval is "
        f"at {format.level(attribution.effects[0].level)}. Variances are moderated with the variance of the cells "
        "(Smyth 2004)."
        if attribution.judged
        else f"Each interval is at {format.level(attribution.effects[0].level)}."
        if attribution.rounds > 1
        else "",
    ]
    return " ".join(filter(None, sentences))


def _levels(levels: Sequence[str]) -> str:
    return f"{len(levels)}, {levels[0]} to {levels[-1]}" if len(levels) > LEVELS else ", ".join(levels)


def legend(results: Results, attributions: Sequence[Attribution]) -> str:
    """Explain the columns, once for all tables."""
    text = tabulate(
        "", columns(results), [(attribution, effect) for attribution in attributions for effect in attribution.told]
    ).legend
    varies = any(ENVIRONMENT in attribution.axes for attribution in attributions)
    held = "Another environment is a change of all its contents: release, Python, packages and CUDA."
    return f"{text} {held}" if varies else text

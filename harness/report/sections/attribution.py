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
    blocks = [block for made in results.attributions for block in _blocks(results, made)]
    if blocks:
        told = Text(legend(results, results.attributions), True)
        yield Section("Effects of each change", "effects", [*blocks, told])


def _blocks(results: Results, made: Attribution) -> Iterator[Block]:
    # without verdicts there is nothing to paste
    where = FILES | REST if _has_verdicts(made) else REST
    several = any(table.several_devices for table in results.tables if table.scenario.name == made.scenario.name)
    device = ", ".join(filter(None, [made.device.value if several else "", made.machine]))
    yield from headed(results, made.scenario, device, where)
    yield Text(sentence(made, results.run.plan), where=where)
    yield from map(Figure, forest.effects(results, made))
    caption = ", ".join(filter(None, ["Effects", made.scenario.title, device]))
    yield tabulate(caption, columns(results), [(made, effect) for effect in made.told], noun="effect")
    yield Text(cells(made), True)


def causes(results: Results) -> list[str]:
    """Return one sentence on the changes that make a difference; none if there is none, or no single scenario.

    If the effect of a change depends on another, the sentence is about these two.
    """
    every = [made for made in results.attributions if made.judged and _has_verdicts(made)]
    if len(every) != 1 or len(every[0].leading) < 2:
        return []
    (made,) = every
    if made.depending is None:
        return [sentence(made, results.run.plan)]
    parts = made.depending.parts
    assert parts is not None, "an interaction has parts"
    first, second = made.depending.changes
    base, level = (names.label(made.scenario, second.axis, value) for value in (second.base, second.level))
    return [
        f"The effect of {names.change(made.scenario, first)} depends on another change. Averaged over "
        f"{counted(made.cells, 'cell')}, it is {format.factor(parts.alone)} with {base}, and "
        f"{format.factor(parts.with_second)} with {level}."
    ]


def sentence(made: Attribution, plan: Plan) -> str:
    """Return the sentence on changes that make a difference, and on two that depend on each other."""
    if not made.judged:
        return f"{capital(too_few(made.rounds))} on these effects."
    if not _has_verdicts(made):
        return "No verdicts on these effects: two identical cells differed by more than the margin."
    leading, on = made.leading, made.depending
    told = [f"{names.effect(made.scenario, each)} {format.factor(each.estimate.value)}" for each in leading[:NAMED]]
    told += [counted(len(leading) - NAMED, "more change")] if len(leading) > NAMED else []
    beyond = f"a difference{in_clock(plan.clock)} of more than {format.share(plan.margin)}"
    match len(leading):
        case 0:
            changes = f"no change is shown to make {beyond}"
        case 1:
            changes = f"one change makes {beyond}: {told[0]}"
        case count:
            changes = f"{count} changes make {beyond}, largest first: {joined(told)}"
    first = f"Averaged over the other axes, {changes}."
    return f"{first} {capital(_dependence(made, on))}" if on else first


def _dependence(made: Attribution, of: Effect) -> str:
    return f"two changes depend on each other: {_depends(made, of)}."


def _has_verdicts(made: Attribution) -> bool:
    return any(effect.verdict for effect in made.effects)


def _depends(made: Attribution, of: Effect) -> str:
    """`tf2.0 vs tf1.14 is 1.06× with graph and 2.96× with eager; both changes together are 3.06×`."""
    assert of.parts is not None, "an interaction has parts"
    first, second = of.changes
    base, level = (names.label(made.scenario, second.axis, value) for value in (second.base, second.level))
    return (
        f"{names.change(made.scenario, first)} is {format.factor(of.parts.alone)} with {base} and "
        f"{format.factor(of.parts.with_second)} with {level}; "
        f"both changes together are {format.factor(of.parts.together)}"
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
    made, effect = line
    return names.effect(made.scenario, effect) + (": additional factor" if effect.parts else "")


def _remark(results: Results, made: Attribution, effect: Effect) -> str:
    change = effect.changes[0]
    versions = results.found.pythons(change.level, change.base) if change.axis == ENVIRONMENT else None
    told = _depends(made, effect) if effect.parts else pythons(versions)
    return remarks([told])


def cells(made: Attribution) -> str:
    """Return the sentences on the cells of the effects, and on all effects."""
    left, untold = made.of - made.cells, made.left
    axes = joined([f"{axis} ({_levels(levels)})" for axis, levels in made.axes.items()])
    held = ", ".join(names.labels(made.scenario, made.held))
    others = "The other cell with a number is" if left == 1 else f"The other {left} cells with a number are"
    rounds = counted(made.rounds, "round") + (" that all cells share" if made.rounds > 1 else "")
    told = [
        f"The effects are of {counted(made.cells, 'cell')}: every combination of "
        f"{', with '.join(filter(None, [axes, held]))}, in {rounds}.",
        f"{others} left out, so that no combination is missing." if left else "",
        f"{counted(len(untold), 'interaction', 'is')} not shown: {tally(each.verdict for each in untold)}."
        if untold
        else "",
        "Not all of these cells could be checked for doing the same work." if made.unchecked else "",
        f"The {len(made.effects)} effects are judged together at {format.level(LEVEL)} (Holm); each interval is at "
        f"{format.level(made.effects[0].level)}. Variances are moderated with the variance of the cells (Smyth 2004)."
        if made.judged
        else f"Each interval is at {format.level(made.effects[0].level)}."
        if made.rounds > 1
        else "",
    ]
    return " ".join(filter(None, told))


def _levels(levels: Sequence[str]) -> str:
    return f"{len(levels)}, {levels[0]} to {levels[-1]}" if len(levels) > LEVELS else ", ".join(levels)


def legend(results: Results, made: Sequence[Attribution]) -> str:
    """Explain the columns, once for all tables."""
    told = tabulate("", columns(results), [(each, effect) for each in made for effect in each.told]).legend
    varies = any(ENVIRONMENT in each.axes for each in made)
    held = "Another environment is a change of all its contents: release, Python, packages and CUDA."
    return f"{told} {held}" if varies else told

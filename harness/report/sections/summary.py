"""The first screen: the main results in a few sentences and a table, and the facts that support them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.analysis.control import Control
from harness.analysis.results import Results
from harness.model.defaults import LEVEL
from harness.model.environment import Environment
from harness.model.launch import Clock
from harness.model.run import RULES, describe_fallbacks
from harness.model.texts import counted
from harness.report import format, names
from harness.report.blocks import EVERYWHERE, FILES, REPORT, Block, Bold, Items, Section, Text
from harness.report.comparisons import list_all_lines, summarize_verdicts
from harness.report.phrases import describe_clock, name_environments
from harness.report.sections import (
    attribution,
    claims,
    continuation,
    expectations,
    headline,
    interleaving,
    machines,
    main_results,
    measurement,
    on_device,
    scripts,
    settings,
    sweeps,
    timeline,
    times,
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the first screen, and then other findings."""
    yield Section(make_title(results), "answer", make_first_screen(results))
    if findings := list(_list_other_findings(results)):
        yield Section("Other findings", "findings", findings)


def make_first_screen(results: Results, *, table: bool = True) -> list[Block]:
    """Return one sentence with the main result, one table, one sentence on the cause, warnings, and the small print.

    Claims of upstream issues come first. Without `table`, the table and the command of the run are omitted. A terminal
    shows neither the cause nor the small print, so that the first screen fits into 24 lines.
    """
    main_result = describe_main_result(results)
    return [
        *claims.make_head(results),
        *([Text([Bold(main_result)], where=EVERYWHERE)] if main_result else []),
        *measurement.make_blocks(results, has_command=table),
        *(Text(text, where=EVERYWHERE) for text in scripts.describe_printed(results)),
        *(Text(text, where=EVERYWHERE) for text in sweeps.describe_devices(results)[: sweeps.SENTENCES]),
        *(_make_table(results) if table else ()),
        *(block for split in results.by_setting if table for block in headline.make_blocks(split)),
        *(Text(text, where=EVERYWHERE) for text in machines.describe_agreements(results)),
        *(Text(text, where=FILES) for text in attribution.describe_causes(results)),
        *_list_alerts(results),
        Text(" ".join(_list_conditions(results)), is_small=True, where=FILES),
    ]


def describe_main_result(results: Results) -> str:
    """Return the main result as a sentence without the values that are in the small print; empty if claims replace it.

    For a run of plain scripts, this is the most important sentence about them.
    """
    if script_sentences := scripts.describe_scripts(results):
        return script_sentences[0]
    if results.answers:
        return main_results.describe_answer(results.run, results.answers[0], _distinguish_rows(results))
    return "" if results.claims else explain_no_answer(results)


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
    sentences = [text for text in scripts.describe_scripts(results)[1:] if text not in on_first_screen]
    if sentences:
        yield Items(sentences, where=FILES)
    for text in [*settings.describe_settings(results), *settings.describe_page_faults(results)]:
        yield Text(text, True, where=FILES)


def _make_table(results: Results) -> Iterator[Block]:
    """Yield the table of the first screen: comparisons or, if nothing is compared, times."""
    if results.answers:
        yield from headline.make_blocks(results)
    elif not results.claims:
        yield from (replace(times.make_times_table(table), where=REPORT) for table in results.tables[:1])


def _list_alerts(results: Results) -> Iterator[Block]:
    """Yield what a reader must know about the main results, and how to get clear verdicts.

    If a budget ended a run in which all verdicts are clear, the end isn't a warning.
    """
    fallbacks = describe_fallbacks(results.run.plan.stand_ins)
    warnings = [
        *machines.describe_absent(results),
        *([fallbacks] if fallbacks else []),
        *machines.collect_sentences(results, interleaving.list_warnings),
        *on_device.list_warnings(results),
    ]
    end_blocks = list(continuation.list_early_end(results))
    if not continuation.command_to_continue(results):
        yield from end_blocks
        end_blocks = []
    yield from end_blocks
    yield from (Text(text, where=REPORT) for text in warnings)
    yield from continuation.make_suggestion(results)


def _list_conditions(results: Results) -> list[str]:
    """Return sentences on how the run measured, and on the A/A control."""
    verdicts = [line.compared.verdict for line in list_all_lines(results)]
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


_OLDER = " An earlier version of harness made this run; the verdicts follow the current rules."


def describe_conditions(results: Results) -> str:
    """Describe how the run was measured: rounds, cores, the margin, and interference from other processes."""
    run = results.run
    cpu = run.host.get("cpu")
    cores = f"{timeline.describe_pinning(run)}{f', on {cpu}' if cpu else ''}"
    measured = "CPU time, not wall-clock time, was measured" if run.plan.clock is Clock.CPU else "Measured"
    sentences = (
        f"{measured} in {timeline.format_rounds(results)} of fresh processes, {cores}.",
        f"Differences below {format.share(run.plan.margin)} aren't reported.",
        f"All intervals of one table together have at least {format.level(LEVEL)} confidence, and so do its verdicts."
        if any(line.compared.ratio.interval for line in list_all_lines(results))
        else "",
        f"{timeline.interference_of(results)}{_OLDER if run.rules < RULES else ''}",
    )
    return " ".join(filter(None, sentences))


def describe_control(results: Results, margin: float | None = None) -> str:
    """Describe the A/A control: whether two identical cells differ.

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
    if 1.0 in control.estimate.interval:
        return f"{text}: no difference is shown."
    return f"{text}: more than noise, but not certainly more than the margin of {format.share(margin)}."


def _name_controlled(results: Results, control: Control) -> str:
    """Name the launches that an A/A control is about: its cell, and its groups if the run has several."""
    groups = len(results.run.plan.groups)
    if control.groups > 1 or not control.cells:
        part = f"{control.groups} of " if control.groups < groups else ""
        return f"two launches of the baseline cell, in each of {part}{counted(groups, 'group')},"
    cell = control.cells[0]
    name = " ".join(names.distinguish_cells(list(results.found.cells), results.run.scenarios)[cell])
    return f"two launches of {name}{f', in 1 of {groups} groups,' if groups > 1 else ''}"

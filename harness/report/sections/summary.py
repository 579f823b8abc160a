"""The first screen: the answer in a sentence, how reliable it is, a chart and a table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.analysis.results import Results
from harness.model.environment import Environment
from harness.model.run import describe_fallbacks
from harness.model.texts import counted
from harness.report import names
from harness.report.blocks import EVERYWHERE, FILES, REPORT, Block, Bold, Figure, Section, Table, Text
from harness.report.comparisons import count_verdicts, list_all_lines
from harness.report.phrases import name_environments
from harness.report.sections import (
    attribution,
    claims,
    continuation,
    headline,
    interleaving,
    machines,
    main_results,
    measurement,
    observations,
    release_changes,
    scripts,
    settings,
    sweeps,
    times,
    untimed,
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the first screen."""
    yield Section(make_title(results), "answer", make_first_screen(results))


def make_first_screen(results: Results, *, is_report: bool = True) -> list[Block]:
    """Return the answer, the quality of the measurement, a chart, a table, the cause, notes, and at most one advice.

    Statements of sources come first, and then claims of upstream issues. Unless `is_report`, the chart and the command
    of the run are omitted, because a job summary has no files beside it.
    """
    answer, *others = [*filter(None, [observations.describe(results), describe_main_result(results)])] or [""]
    script_sentences, cause = scripts.describe_scripts(results), attribution.describe_cause(results)
    # a run that also has other scenarios than scripts has only sentences on printed numbers
    sentences = [*others, *(script_sentences[1:] if script_sentences else scripts.describe_printed(results))]
    return [
        *([Text([Bold(answer)], where=EVERYWHERE)] if answer else []),
        *claims.make_head(results),
        *measurement.make_blocks(results, has_command=is_report),
        *(Text(text, where=EVERYWHERE) for text in sentences),
        *(Text(text, where=EVERYWHERE) for text in sweeps.describe_devices(results)[: sweeps.SENTENCES]),
        *(block for block in _make_table(results) if is_report or not isinstance(block, Figure)),
        *(block for split in results.by_setting for block in headline.make_blocks(split) if isinstance(block, Table)),
        *(Text(text, where=EVERYWHERE) for text in machines.describe_agreements(results)),
        *([Text([Bold("Why:"), f" {cause}"], where=EVERYWHERE)] if cause else []),
        *(Text(text, where=FILES) for text in _list_notes(results)),
        *continuation.make_advice(results),
    ]


def describe_main_result(results: Results) -> str:
    """Return the main result as a sentence without the values that all rows share; empty if claims replace it.

    For a run of plain scripts, this is the most important sentence about them.
    """
    if script_sentences := scripts.describe_scripts(results):
        return script_sentences[0]
    if results.claims or (results.statements and not results.answers):
        return ""
    if not results.answers:
        return explain_no_answer(results)
    if results.has_several_scenarios:
        verdicts = [line.compared.verdict for line in list_all_lines(results)]
        experiments = len({table.scenario.name for table in results.all_tables})
        return (
            f"{counted(experiments, 'experiment')}, {counted(len(verdicts), 'comparison')}: {count_verdicts(verdicts)}."
        )
    answer = results.answers[0]
    cause = measurement.explain_unclear(results, answer.findings[0].compared)
    return release_changes.describe(results) or main_results.describe_answer(
        results.run, answer, _distinguish_rows(results), cause
    )


def _distinguish_rows(results: Results) -> str:
    """Return the values that distinguish the rows of the first result from the other rows on the first screen."""
    answer, shared_values = results.answers[0], headline.find_shared(results)
    facts = {axis: value for axis, value in {**answer.context, **answer.common}.items() if axis not in shared_values}
    return ", ".join(names.list_labels(answer.table.scenario, facts))


def _make_table(results: Results) -> Iterator[Block]:
    """Yield the table of the first screen: comparisons or, if nothing is compared, times."""
    if results.answers:
        yield from headline.make_blocks(results)
        if shared := headline.find_shared(results):
            labels = names.list_labels(results.answers[0].table.scenario, shared)
            yield Text(f"The same in all rows: {', '.join(labels)}.", is_small=True, where=FILES)
    elif not results.claims:
        yield from (replace(times.make_times_table(table), where=REPORT) for table in results.tables[:1])


def _list_notes(results: Results) -> Iterator[str]:
    """Yield what else a reader must know about the main results."""
    yield from machines.describe_absent(results)
    yield from filter(None, [describe_fallbacks(results.run.plan.stand_ins)])
    yield from machines.collect_sentences(results, interleaving.list_warnings)
    yield from untimed.list_warnings(results)
    yield from settings.describe_settings(results)


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
    return f"Nothing was timed: {observed_count} of {cells} cells have observations."

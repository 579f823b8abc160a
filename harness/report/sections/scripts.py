"""The main results of plain scripts: their times and printed numbers. script_ends.py has their failures and outputs."""

from collections.abc import Iterator, Mapping, Sequence

from harness.analysis import printed
from harness.analysis.answers import Answer
from harness.analysis.cells import Missing
from harness.analysis.printed import OutputComparison, compare_outputs
from harness.analysis.printed_settings import find_growth
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, combine
from harness.analysis.verdicts import Verdict, Withheld
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Clock, Status
from harness.model.scenario import CPUS, ENVIRONMENT, OWN, PEAK, PRINTED, STEP, WHOLE, Scenario
from harness.model.settings import find_thread_setting
from harness.model.texts import counted, joined, trim_zeros
from harness.report import format, names
from harness.report.comparisons import explain_withheld
from harness.report.phrases import describe_longer
from harness.report.sections import measurement, script_ends
from harness.report.sections.main_results import describe_answer
from harness.report.sections.script_ends import quote

IMPORT, FIRST_CALL = "import", "first call"

#: The most settings of a printed number whose values are in a sentence.
SETTINGS = 6


def describe_scripts(results: Results) -> list[str]:
    """Return sentences about a run of plain scripts, the most important first; empty if it has any other scenario."""
    scenarios = results.run.scenarios
    if not all(scenario.script for scenario in scenarios):
        return []
    return [
        *(sentence for scenario in scenarios for sentence in _describe_script(results, scenario)),
        *describe_printed(results),
    ]


def explain_all_missing(results: Results, reasons: Sequence[Missing]) -> bool:
    """Return whether the sentences of `describe_scripts` explain all missing results."""
    scripts = [scenario for scenario in results.run.scenarios if scenario.script]
    return len(scripts) == len(results.run.scenarios) and all(
        missing.status in script_ends.STATUS_PHRASES for missing in reasons
    )


def _describe_script(results: Results, scenario: Scenario) -> Iterator[str]:
    yield from script_ends.describe_failures(results, scenario)
    if scenario.axes:  # programs of a file, or the values of --scan or of a setting
        own_answers = [answer for answer in results.answers if answer.table.scenario is scenario]
        yield from (describe_answer(results.run, answer) for answer in own_answers[:SETTINGS])
        return
    by_subject: dict[str, dict[str, Answer]] = {}
    for answer in results.answers:
        if answer.table.scenario is scenario and answer.comparison.along == ENVIRONMENT:
            by_subject.setdefault(answer.subject, {})[answer.table.quantity] = answer
    by_environment = {
        output.cell.environment: output
        for output in compare_outputs(results.found, results.run.reference, [scenario.name])
    }
    for subject, by_quantity in by_subject.items():
        yield from _describe_compared(results, scenario, by_quantity, by_environment.get(subject))
    if not by_subject:
        yield from _describe_uncompared(results, scenario)


def describe_printed(results: Results) -> list[str]:
    """Return sentences about the numbers that plain scripts print: ratios of two numbers, and comparisons."""
    scenarios = [scenario for scenario in results.run.scenarios if scenario.script and not scenario.axes]
    return (
        describe_pinned_threads(results)
        + [
            sentence
            for scenario in scenarios
            for quantity in scenario.quantities
            if quantity.startswith(PRINTED)
            for sentence in _describe_number(results, scenario, quantity)
        ]
        + [sentence for split in results.by_setting for sentence in _describe_settings(split)]
    )


def describe_pinned_threads(results: Results) -> list[str]:
    """Return why a script with a setting for its number of threads doesn't show the effect of this setting.

    The result is empty if launches have several cores, or if there is no such setting.
    """
    if not results.run.scripts or len(results.run.plan.limits.cpus or (0, 0)) != 1:
        return []

    setting = next(filter(None, map(find_thread_setting, results.run.scripts.values())), "")
    if not setting or CPUS in results.run.scenarios[0].axes:
        return []
    return [
        f"Each launch was pinned to 1 core, so {quote(setting)} can't have the effect that it has on several cores. "
        "To measure this effect, pass --cpus all."
    ]


def _describe_settings(split: Results) -> Iterator[str]:
    """Yield sentences about a printed number that has several settings: its values, and the largest ratio."""
    (scenario,), tables = split.run.scenarios, split.all_tables
    if not tables:
        return
    (axis, labels), unit = list(scenario.axes.items())[-1], format.unit_of(tables[0])
    amounts: dict[str, list[str]] = {}
    for cell, value in tables[0].cells().items():
        if value.estimate:
            text = f"{_format_printed(value.estimate, unit)} ({cell.axes[axis]})"
            amounts.setdefault(cell.environment, []).append(text)
    reason = "at several places" if axis == "place" else "for several settings"
    subject = f"The script prints {quote(scenario.name.partition(' ')[2])} {reason}"
    if len(scenario.axes) == 1 and sum(map(len, amounts.values())) <= SETTINGS:
        yield f"{subject}: {'; '.join(f'{joined(texts)} in {name}' for name, texts in amounts.items())}."
    else:
        yield f"{subject}: {len(labels)} values of {axis}."
    for environment in amounts if len(scenario.axes) == 1 and not describe_pinned_threads(split) else ():
        answers = [answer for answer in split.answers if answer.context.get(ENVIRONMENT) == environment]
        if answer := max(answers, key=lambda candidate: candidate.findings[0].ratio.distance, default=None):
            finding, sides = answer.findings[0], [answer.subject, answer.base]
            # read the ratio in the direction in which it is above 1
            ratio, (larger, smaller) = (
                (finding.ratio, sides) if finding.ratio.value >= 1.0 else (finding.ratio.inverse, reversed(sides))
            )
            smaller_name, larger_name = (names.label(scenario, axis, label) for label in (smaller, larger))
            yield (
                f"In {environment}, {larger_name} prints {format.ratio(ratio)} as much as {smaller_name}"
                f"{_explain_undecided(split, answer)}."
            )


def _describe_number(results: Results, scenario: Scenario, quantity: str) -> Iterator[str]:
    name, lookup = quantity.removeprefix(PRINTED), results.found_of(quantity)
    launches = [
        launch for cell in results.found.cells_of(scenario.name) for launch in results.found.numbers.get(cell, ())
    ]
    unit, ratio = printed.unit_of(quantity, launches), printed.find_ratio_numbers(quantity, scenario)
    if unit is None:
        yield (
            f"The printed {quote(name)} isn't compared: only some launches print it with a unit of time. Match the "
            "unit in all launches, or in no launch."
        )
        return
    estimates = {
        cell: combine(list(series.values()))
        for cell in lookup.cells_of(scenario.name)
        if (series := lookup.series.get(cell))
    }
    if not ratio:
        yield from _describe_growth(results, scenario, quantity, unit)
    if ratio and not describe_pinned_threads(results):
        first_name, second_name = map(quote, ratio)
        ratios = [(format.ratio(estimate), cell.environment) for cell, estimate in estimates.items()]
        if ratios:
            (first, environment), *others = ratios
            others_text = "".join(f", and {value} in {name}" for value, name in others)
            yield f"The printed {first_name} is {first} as large as {second_name} in {environment}{others_text}."
    answers = [
        answer
        for answer in results.answers
        if answer.table.scenario is scenario
        and answer.table.quantity == quantity
        and answer.comparison.along == ENVIRONMENT
    ]
    if not answers and not ratio:
        amounts = [f"{_format_estimate(estimate, unit)} in {cell.environment}" for cell, estimate in estimates.items()]
        if amounts:
            yield f"The printed {quote(name)} is {joined(amounts)}."
    for answer in answers:
        sides = [answer.findings[0].compared.cell, answer.findings[0].compared.other]
        amounts = [_format_amount(estimates[cell].value, unit) for cell in sides if cell in estimates]
        amounts_note = f": {amounts[0]} and {amounts[1]}" if len(amounts) == 2 and not ratio else ""
        subject = f"The ratio {quote(name)}" if ratio else f"The printed {quote(name)}"
        yield f"{subject} is {_format_ratio(answer)} as large in {answer.subject} as in {answer.base}{amounts_note}."


def _describe_growth(results: Results, scenario: Scenario, quantity: str, unit: str) -> Iterator[str]:
    """Yield a sentence for each environment in which a printed number rises within each launch."""
    for cell in results.found.cells_of(scenario.name):
        launches = [launch for launch in results.launches if launch.cell == cell and launch.status is Status.OK]
        growth = find_growth(quantity, launches)
        if not growth:
            continue
        first, last = (_format_amount(amount, unit) for amount in (growth.first, growth.last))
        verb, end = "grows within a launch", ""
        if not growth.is_certain:
            verb, end = "rises", ", too few to be certain that it grows"
        yield (
            f"The printed {quote(quantity.removeprefix(PRINTED))} {verb} in {cell.environment}: from {first} to "
            f"{last} ({format.factor(growth.last / growth.first)}), over {growth.count} values in "
            f"{counted(growth.launches, 'launch')}{end}."
        )


def _format_estimate(estimate: Estimate, unit: str) -> str:
    """Return a printed number with its unit and its interval: `33.0 ± 0.4 ms`."""
    time_unit = format.unit([estimate.value], Clock.WALL) if unit == printed.SECONDS else format.ONE
    return _format_printed(estimate, time_unit)


def _format_printed(estimate: Estimate, unit: format.Unit) -> str:
    """Return a printed number in a unit. Only a count that doesn't vary has all of its digits."""
    is_count = unit is format.ONE and estimate.value.is_integer()
    text = format.time(estimate, unit) if is_count or estimate.interval else format.number(estimate.value * unit.factor)
    return f"{text} {unit.symbol}".rstrip()


def _format_amount(value: float, unit: str) -> str:
    """Return a printed number with its unit: `33.0 ms`."""
    if unit != printed.SECONDS:
        return trim_zeros(format.number(value))
    time_unit = format.unit([value], Clock.WALL)
    return f"{format.number(value * time_unit.factor)} {time_unit.symbol}"


def _describe_compared(
    results: Results, scenario: Scenario, answers: Mapping[str, Answer], output: OutputComparison | None
) -> Iterator[str]:
    """Yield sentences that compare one environment with the reference: time, output, memory and printed numbers.

    The own work comes before the whole script, which includes the import of TensorFlow.
    """
    has_steps = WHOLE in scenario.quantities
    whole_script, own_work = answers.get(WHOLE if has_steps else STEP), answers.get(OWN)
    comparison = describe_longer(results.run.plan.clock)
    if has_steps and (step := answers.get(STEP)):
        first_call = answers.get(FIRST_CALL)
        details = f"; its first call takes {_format_factor(first_call)} {comparison}" if first_call else ""
        yield _describe_first_row(results, f"A step of {scenario.script}", step, details)
    if whole_script:
        compared = whole_script.findings[0].compared
        environments = (compared.cell.environment, compared.other.environment)
        has_import = any(
            launch.phases.get(IMPORT, 0.0) > 0.0
            for cell in results.found.cells_of(scenario.name)
            for launch in results.found.numbers.get(cell, ())
            if cell.environment in environments
        )
        pythons = _describe_pythons(whole_script)
        if own_work and has_import:
            whole = f"; with it, {_format_factor(whole_script)}{pythons}"
            yield _describe_first_row(results, f"{scenario.script}, without the import of TensorFlow,", own_work, whole)
        else:
            yield _describe_first_row(results, scenario.script, whole_script, pythons)
    if output:
        yield script_ends.describe_output(output)
    if memory := answers.get(PEAK):
        yield f"The peak memory is {_format_ratio(memory)} as large in {memory.subject} as in {memory.base}."


def _describe_first_row(results: Results, name: str, answer: Answer, details: str) -> str:
    """Return a sentence on the first row: `mine.py takes 2.10× (2.0 to 2.2) as long in tf2.13 as in tf2.12; ….`."""
    finding = answer.findings[0]
    comparison = describe_longer(results.run.plan.clock)
    sides = f"in {answer.subject} as in {answer.base}"
    if finding.verdict is Verdict.SAME:
        margin = format.share(results.run.plan.margin)
        return f"{name} takes {comparison} {sides}, within {margin}{details}."
    if finding.verdict is Verdict.UNCLEAR and finding.ratio.interval:
        interval = format.format_interval(finding.ratio.interval)
        cause = measurement.explain_unclear(results, finding.compared)
        ratio = format.factor(finding.ratio.value)
        return f"Can't tell ({interval}×): {name} takes {ratio} {comparison} {sides}{details}; {cause}."
    if finding.verdict is Verdict.FASTER:
        return f"{name} is {format.ratio(finding.ratio.inverse)} as fast {sides}{details}."
    undecided = _explain_undecided(results, answer)
    return f"{name} takes {format.ratio(finding.ratio)} {comparison} {sides}{details}{undecided}."


def _explain_undecided(results: Results, answer: Answer) -> str:
    """Return why the verdict is missing, and how to get a verdict."""
    finding = answer.findings[0]
    if finding.verdict is not None:
        return ""
    control = results.found_of(answer.table.quantity).control_of(finding.compared.cell)
    if finding.compared.withheld is Withheld.CONTROL and control:
        difference = f"two launches of the same cell differed by {format.format_self_difference(control.estimate)}"
        remedy = f"run the script again without other work on the machine, and with --rounds {2 * finding.ratio.rounds}"
        return f"; no verdict, because {difference}: {remedy}"
    has_few_rounds = finding.ratio.rounds < FEWEST_ROUNDS
    return f"; {explain_withheld([finding])}{f': pass --rounds {FEWEST_ROUNDS} or more' if has_few_rounds else ''}"


def _format_factor(answer: Answer) -> str:
    """Return a ratio without its interval: `1.02×`, or `1.02× (unclear)`."""
    finding = answer.findings[0]
    note = " (unclear)" if finding.verdict is Verdict.UNCLEAR else ""
    return f"{format.factor(finding.ratio.value)}{note}"


def _format_ratio(answer: Answer) -> str:
    """Return a ratio with its interval: `1.02× (0.99 to 1.05)`, or `1.02× (0.95 to 1.09, unclear)`."""
    finding = answer.findings[0]
    interval = finding.ratio.interval
    if interval and finding.verdict is Verdict.UNCLEAR:
        return f"{format.factor(finding.ratio.value)} ({format.format_interval(interval)}, unclear)"
    return format.ratio(finding.ratio)


def _describe_pythons(answer: Answer) -> str:
    """Return the Python versions if they differ, because the Python version also affects the time."""
    pythons = answer.findings[0].compared.pythons
    return f" (Python {pythons[0]} and {pythons[1]})" if pythons else ""


def _describe_uncompared(results: Results, scenario: Scenario) -> Iterator[str]:
    """Yield the time of a script in each environment, for a run that compares nothing."""
    for table in results.all_tables:
        if table.scenario is not scenario or table.quantity != (WHOLE if WHOLE in scenario.quantities else STEP):
            continue
        unit = format.unit_of(table)
        for row, column, value in table.times():
            if value.estimate:
                environment = table.cell(row, column.side).environment
                time = format.time(value.estimate, unit)
                yield f"{scenario.script} takes {time} {unit.symbol} in {environment}."

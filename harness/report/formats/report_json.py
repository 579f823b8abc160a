"""The report as JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis.answers import Answer, answers
from harness.analysis.attribution import Attribution, attributions
from harness.analysis.columns import pins
from harness.analysis.disturbance import disturbed
from harness.analysis.effects import Effect
from harness.analysis.expectations import statements
from harness.analysis.observations import observations
from harness.analysis.phases import used
from harness.analysis.statistics import Interval, percent
from harness.analysis.sweeps import Race
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT
from harness.report import course, names, sweeps
from harness.report.answers import sentences
from harness.report.attribution import view
from harness.report.course import Resolution
from harness.report.escape import plain
from harness.report.formats import schema
from harness.report.formats.content import CellResult, ComparisonResult, Content, gather
from harness.report.formats.strings import dumps
from harness.report.sweeps import RaceView, SweepView
from harness.report.templates import environment


def render(run: Run, launches: Sequence[Launch]) -> str:
    """The report as docs/schema/report.v1.schema.json describes it."""
    return dumps(asdict(build(run, launches)))


def build(run: Run, launches: Sequence[Launch]) -> schema.Report:
    """The report as data; its strings are as they were stored."""
    content = gather(run, launches)
    say: Any = environment(plain).get_template("sentences.j2").module
    resolution = course.resolution(run, content.found)
    return schema.Report(
        run=_run(run),
        answers=[_answer(run, each, say) for table in content.tables for each in answers(table)],
        control=_control(content, resolution),
        environments=[
            schema.EnvironmentFacts(
                name=known.name,
                title=known.title,
                tensorflow=known.tensorflow,
                keras=known.keras,
                python=known.python,
                image=run.images.get(known.name, ""),
                pins=pins(run, known.name),
            )
            for known in run.environments
        ],
        scenarios=[schema.ScenarioFacts(known.name, known.title, known.source, known.axes) for known in run.scenarios],
        cells=[_cell(result, content) for result in content.cells],
        comparisons=[_comparison(result, resolution, say) for result in content.comparisons],
        attributions=[_attribution(run, each, content, say) for each in _attributions(run, content)],
        sweeps=[
            _sweep(race, swept, told)
            for table in content.tables
            for swept in sweeps.views(table, content.found, math.log1p(run.plan.margin))
            for race, told in zip(swept.sweep.races, swept.races, strict=False)
        ],
        statements=[
            schema.StatementFacts(
                scenario=each.scenario.name,
                observation=each.expectation.observation,
                stated=each.expectation.value,
                cell=names.full_name(check.cell),
                standing=check.standing.value,
                observed=check.observed.values if check.observed else [],
            )
            for each in statements(run, content.found)
            for check in each.checks
        ],
        missing=[
            schema.MissingFacts(
                status=entry.status.value,
                reason=entry.reason,
                advice=entry.advice,
                stderr=entry.stderr,
                partial=entry.partial,
                cells=[names.full_name(cell) for cell in entry.cells],
            )
            for entry in content.missing
        ],
        disturbed=[
            schema.DisturbedFacts(each.group, each.round, each.reason, each.repeated)
            for each in course.disturbance(run, launches).disturbed
        ],
    )


def _run(run: Run) -> schema.RunFacts:
    plan = run.plan
    return schema.RunFacts(
        id=run.id,
        folder=run.folder,
        started=run.started,
        command=run.command,
        harness=run.harness,
        commit=run.commit,
        suite=run.suite,
        reference=run.reference,
        rounds=plan.rounds,
        seed=plan.seed,
        margin=plan.margin,
        precision=plan.precision,
        budget_seconds=plan.budget_seconds,
        cpus=plan.limits.cpus,
        host=run.host,
        backend=run.backend,
        stops={group: stop.reason.value for group, stop in run.stops.items()},
    )


def _answer(run: Run, answer: Answer, say: Any) -> schema.AnswerFacts:
    (sentence,) = sentences(run, [answer])
    findings = []
    for finding in answer.findings:
        sides = finding.compared.cell, finding.compared.other
        # along the environments the sentence is about the first of the two, else about the second
        subject, base = sides if answer.comparison.along == ENVIRONMENT else reversed(sides)
        findings.append(
            schema.FindingFacts(
                subject=names.full_name(subject),
                base=names.full_name(base),
                ratio=finding.ratio.value,
                interval=finding.ratio.interval,
                verdict=finding.verdict,
            )
        )
    return schema.AnswerFacts(
        text=str(say.answer(sentence)),
        scenario=answer.table.scenario.name,
        comparison=answer.comparison.name,
        along=answer.comparison.along,
        findings=findings,
    )


def _attributions(run: Run, content: Content) -> list[Attribution]:
    return [each for table in content.tables for each in attributions(run, table, content.found)]


def _attribution(run: Run, made: Attribution, content: Content, say: Any) -> schema.AttributionFacts:
    return schema.AttributionFacts(
        text=str(say.attribution(view(made, content.found), run.plan.margin)),
        scenario=made.scenario.name,
        device=made.device.value,
        axes=made.axes,
        held=made.held,
        cells=made.cells,
        of=made.of,
        rounds=made.rounds,
        unchecked=made.unchecked,
        effects=[_effect(effect) for effect in made.effects],
    )


def _effect(effect: Effect) -> schema.EffectFacts:
    parts = effect.parts
    return schema.EffectFacts(
        changes=[schema.ChangeFacts(each.axis, each.level, each.base) for each in effect.changes],
        factor=effect.estimate.value,
        interval=effect.estimate.interval,
        level=effect.level,
        verdict=effect.verdict,
        withheld=effect.withheld,
        alone=parts.alone if parts else None,
        beside=parts.beside if parts else None,
        together=parts.together if parts else None,
    )


def _control(content: Content, resolution: Resolution | None) -> schema.ControlFacts | None:
    control = content.found.control
    if control is None or resolution is None:
        return None
    return schema.ControlFacts(
        ratio=control.estimate.value,
        interval=control.estimate.interval,
        percent=percent(control.estimate.value),
        groups=control.groups,
        lost=resolution.lost,
        beyond=resolution.beyond,
    )


def _sweep(race: Race, swept: SweepView, told: RaceView) -> schema.SweepFacts:
    sweep, lead = swept.sweep, race.lead
    return schema.SweepFacts(
        scenario=sweep.scenario.name,
        axis=sweep.axis,
        unit=sweep.unit,
        device=sweep.device.value,
        axes=sweep.shared,
        comparison=race.column.comparison.name if race.column.comparison else "",
        what=told.what,
        subject=told.subject,
        base=told.base,
        sizes=race.sizes,
        rounds=race.rounds,
        crossings=[
            schema.CrossingFacts(each.at, each.interval, each.opens_low, each.opens_high, words.after)
            for each, words in zip(lead.crossings if lead else (), told.crossings, strict=True)
        ],
        subject_ahead=lead.above if lead else [],
        base_ahead=lead.below if lead else [],
        unclear=lead.unclear if lead else [],
        work_reason=race.different,
    )


def _cell(result: CellResult, content: Content) -> schema.CellFacts:
    cell, estimate, spreads = result.cell, result.estimate, used(result.launches)
    return schema.CellFacts(
        name=result.name,
        scenario=cell.scenario,
        environment=cell.environment,
        device=cell.device.value,
        axes=cell.axes,
        group=content.found.groups.get(cell, ""),
        status=result.status.value,
        seconds_per_step=estimate.value if estimate else None,
        interval=estimate.interval if estimate else None,
        rounds=estimate.rounds if estimate else 0,
        launches=[_launch(launch) for launch in result.launches],
        shape=result.shape,
        phases=spreads.phases,
        to_first_step=spreads.cold,
        cores=spreads.cores,
        cpu_seconds=spreads.cpu,
        max_rss_bytes=spreads.memory,
        undone=result.undone,
        observations={name: seen.values for name, seen in observations(cell, content.found).items()},
    )


def _launch(launch: Launch) -> schema.LaunchFacts:
    return schema.LaunchFacts(
        round=launch.round,
        attempt=launch.attempt,
        order=launch.order,
        role=launch.role.value,
        started=launch.started,
        seconds_per_step=launch.centre,
        steps=launch.steps,
        samples=len(launch.samples),
        disturbed=disturbed(launch),
    )


def _comparison(result: ComparisonResult, resolution: Resolution | None, say: Any) -> schema.ComparisonFacts:
    compared = result.compared
    ratio, more = compared.estimate, compared.settling
    ends = ratio.interval
    return schema.ComparisonFacts(
        comparison=result.entry.name,
        along=result.entry.along,
        what=result.what,
        cell=names.full_name(compared.cell),
        other=names.full_name(compared.other),
        rounds=ratio.rounds,
        ratio=ratio.value,
        interval=ends,
        level=compared.level,
        percent=percent(ratio.value),
        percent_interval=Interval(percent(ends.low), percent(ends.high)) if ends else None,
        verdict=compared.verdict,
        withheld=compared.withheld,
        settling=schema.SettlingFacts(more.rounds, more.seconds) if more else None,
        work=compared.work.work,
        work_reason=compared.work.reason,
        pythons=compared.pythons,
        remarks=str(say.remarks(compared, resolution)),
    )

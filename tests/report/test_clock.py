"""A run that measured CPU time says so wherever a number of it stands."""

import csv
import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from harness.analysis.results import Results
from harness.model.launch import Clock, Launch, Sample, Status
from harness.model.run import Run
from harness.report import changes, markdown, sections
from harness.report.blocks import Section
from harness.report.formats import list_formats, render
from harness.report.html import data
from tests import swept, two_runs
from tests.factories import cells, launch, rounds, run
from tests.report.formats.examples import example

#: What a number is called where it is not said to be of CPU time, and what only time by the clock takes.
TIMES = re.compile(
    r"(?<!CPU )\b(?:time (?:ratio|per step|of the (?:first|second)|/ mean)|times? in [AB]|ms|µs)\b"
    r"|, time\b|less time\b|as long as \w",
    re.IGNORECASE,
)
#: These numbers are of time by the clock in every run: what a launch goes through before its first step.
BY_THE_CLOCK = re.compile(r"first step|container start|interpreter start|launch was requested|build, |import, ")


def by_cpu(stored: tuple[Run, list[Launch]]) -> tuple[Run, list[Launch]]:
    """The run by CPU time: a launch that others disturb takes ten times as long by the clock."""
    planned, launches = stored

    def use_cpu(launch: Launch) -> Launch:
        return replace(launch, samples=[Sample(10 * s.seconds, s.steps, cpu_seconds=s.seconds) for s in launch.samples])

    return replace(planned, plan=replace(planned.plan, clock=Clock.CPU)), list(map(use_cpu, launches))


def offending(text: str) -> list[str]:
    return [line for line in text.splitlines() if TIMES.search(line) and not BY_THE_CLOCK.search(line)]


def swept_example() -> tuple[Run, list[Launch]]:
    return swept.swept_run(swept.seconds(swept.CROSSING))


@pytest.mark.parametrize("stored", [example, swept_example])
def test_every_format_report_page_and_chart_says_cpu_and_has_its_numbers(stored):
    results = Results(*by_cpu(stored()))
    for format in list_formats():
        text = render(format, results)
        assert "CPU time" in text or "cpu_seconds_per_step" in text, format
        assert format in {"json", "html"} or offending(text) == [], format
    contents = data.build(results, sections.build(results))
    assert contents.unit.startswith("CPU ")
    assert all(scenario.unit.startswith("CPU ") for scenario in contents.scenarios)
    titles = [text for chart in contents.charts.values() for text in _titles(chart)]
    assert {"CPU time", "CPU time ratio"} & set(titles)
    assert [text for text in titles if offending(text) or text in {"time", "time ratio"}] == []


def test_names_and_units_of_other_tools_are_not_those_of_time():
    results = Results(*by_cpu(example()))
    suites = ElementTree.fromstring(render("junit", results))
    assert all(str(case.get("name")).endswith(", CPU time") for case in suites.iter("testcase"))
    assert {entry.get("value") for entry in suites.iter("property") if entry.get("name") == "clock"} == {"cpu"}
    rows = list(csv.DictReader(io.StringIO(render("csv", results))))
    assert "seconds_per_step" not in rows[0]
    assert {row["taken"] for row in rows if row["status"] == "ok"} == {"0.0"}
    assert json.loads(render("json", results))["run"]["plan"]["clock"] == "cpu"


def _titles(part: object) -> list[str]:
    """The titles of axes, legends and tooltips, however deep they are."""
    if isinstance(part, dict):
        title = part.get("title") or ()
        titles = [title] if isinstance(title, str) else [line for line in title if isinstance(line, str)]
        return [*titles, *(text for value in part.values() for text in _titles(value))]
    return [text for entry in part for text in _titles(entry)] if isinstance(part, list | tuple) else []


def test_the_answer_says_cpu_time(golden):
    assert markdown.render_full(sections.build(Results(*by_cpu(example())))[:1]) == golden


def test_steps_that_use_no_cpu_time_have_no_number_and_a_sentence(snapshot):
    awake, asleep, untold = cells()[:3]
    planned = run([awake, asleep, untold], asked={"clock": Clock.CPU})
    others = [
        *(launch(asleep, number=number, samples=[Sample(0.5, 10, cpu_seconds=0.0)]) for number in range(6)),
        *(launch(untold, number=number, observations={"loop": "fit"}) for number in range(6)),
    ]
    _, timed = by_cpu((run([awake]), rounds({awake: 0.01})))
    results = Results(planned, [*timed, *others])
    assert [cell.status for cell in results.cells] == [Status.OK, Status.FAILED, Status.FAILED]
    reasons = {missing.reason: missing.advice for missing in results.missing}
    assert reasons == snapshot
    assert all(render(format, results) for format in list_formats())
    assert render("csv", Results(planned, others))
    assert next(iter(reasons)) in markdown.render_full(sections.build(Results(planned, others)))


def test_two_runs_are_compared_in_cpu_time_and_time_by_the_clock_is_not_called_so():
    pair = two_runs.pair(by_cpu(two_runs.first()), by_cpu(two_runs.second()))
    text = markdown.render_full([Section("B vs A", "compare", changes.make_sections(pair)[0].blocks)])
    assert "A, CPU ms" in text
    assert offending(text) == []
    assert changes.make_document(pair)["first"]["clock"] == "cpu"
    for format in list_formats():
        assert "CPU time" not in re.sub(r"CPU time of the|CPU seconds", "", render(format, Results(*example())))

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
from harness.report.markdown import render_full
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
    asked, launches = stored

    def clocked(each: Launch) -> Launch:
        return replace(each, samples=[Sample(10 * s.seconds, s.steps, cpu_seconds=s.seconds) for s in each.samples])

    return replace(asked, plan=replace(asked.plan, clock=Clock.CPU)), [clocked(entry) for entry in launches]


def offending(text: str) -> list[str]:
    return [line for line in text.splitlines() if TIMES.search(line) and not BY_THE_CLOCK.search(line)]


def swept_example() -> tuple[Run, list[Launch]]:
    return swept.swept_run(swept.seconds(swept.CROSSING))


@pytest.mark.parametrize("format", [name for name in list_formats() if name != "html"])
@pytest.mark.parametrize("stored", [example, swept_example])
def test_every_format_says_cpu_and_has_its_numbers(format, stored) -> None:
    asked, launches = stored()
    told = render(format, Results(*by_cpu((asked, launches))))
    assert "CPU time" in told or "cpu_seconds_per_step" in told
    if format != "json":
        assert offending(told) == []


def test_names_and_units_of_other_tools_are_not_those_of_time() -> None:
    results, timed = Results(*by_cpu(example())), Results(*example())
    entries = json.loads(render("benchmark-action", results))
    assert {entry["unit"] for entry in entries} == {"CPU ms/step"}
    assert all(entry["name"].endswith(", CPU time") for entry in entries)
    benchmarks = json.loads(render("pyperf", results))
    assert all(benchmark["metadata"]["name"].endswith(", CPU time") for benchmark in benchmarks["benchmarks"])
    assert benchmarks["metadata"]["harness_clock"] == "cpu"
    assert "harness_clock" not in json.loads(render("pyperf", timed))["metadata"]
    suites = ElementTree.fromstring(render("junit", results))
    assert all(str(case.get("name")).endswith(", CPU time") for case in suites.iter("testcase"))
    assert {entry.get("value") for entry in suites.iter("property") if entry.get("name") == "clock"} == {"cpu"}
    rows = list(csv.DictReader(io.StringIO(render("csv", results))))
    assert "seconds_per_step" not in rows[0]
    assert [row["taken"] for row in rows if row["status"] == "ok"] == ["0.0"] * sum(r["status"] == "ok" for r in rows)
    assert json.loads(render("json", results))["run"]["plan"]["clock"] == "cpu"


@pytest.mark.parametrize("stored", [example, swept_example])
def test_report_and_page_say_cpu_at_each_heading_sentence_and_chart(stored) -> None:
    results = Results(*by_cpu(stored()))
    made = sections.build(results)
    assert offending(render_full(made)) == []
    told = data.build(results, made)
    assert told.unit.startswith("CPU ")
    assert all(scenario.unit.startswith("CPU ") for scenario in told.scenarios)
    titles = [text for name, each in told.charts.items() if not name.startswith("phases") for text in _titles(each)]
    assert {"CPU time", "CPU time ratio"} & set(titles)
    assert [text for text in titles if offending(text) or text in {"time", "time ratio"}] == []
    assert "CPU time" in render("html", results)


def _titles(part: object) -> list[str]:
    """The titles of axes, legends and tooltips, however deep they are."""
    if isinstance(part, dict):
        title = part.get("title") or ()
        own = [title] if isinstance(title, str) else [entry for entry in title if isinstance(entry, str)]
        return [*own, *(text for value in part.values() for text in _titles(value))]
    return [text for entry in part for text in _titles(entry)] if isinstance(part, list | tuple) else []


def test_a_run_by_cpu_time_has_the_numbers_of_its_cpu_seconds() -> None:
    timed, cpu = Results(*example()), Results(*by_cpu(example()))
    for one, other in zip(timed.cells, cpu.cells, strict=True):
        assert one.estimate == other.estimate
        assert one.shape == other.shape
    assert [finding.ratio for answer in timed.answers for finding in answer.findings] == [
        finding.ratio for answer in cpu.answers for finding in answer.findings
    ]


def test_the_first_sentence_and_what_stands_beside_it_say_cpu_time() -> None:
    answer = sections.build(Results(*by_cpu(example())))[0]
    shown = " ".join(markdown.render_full([answer]).split())
    assert re.search(r"TensorFlow 2\.0\.0 takes \S+ \(\S+ to \S+\) as much CPU time as TensorFlow 1\.14\.0", shown)
    assert "CPU time, not wall-clock time, was measured in 5 rounds of fresh processes" in shown
    assert re.search(r"two identical cells differed by .* in CPU time, over", shown)
    assert "subtracted" not in shown


def test_steps_that_use_no_cpu_time_have_no_number_and_a_sentence() -> None:
    awake, asleep, untold = cells()[:3]
    launches = [
        *rounds({awake: 0.01}),
        *(launch(asleep, number=n, samples=[Sample(0.5, 10, cpu_seconds=0.0)]) for n in range(6)),
        *(launch(untold, number=n, observations={"loop": "fit"}) for n in range(6)),
    ]
    asked, known = by_cpu((run([awake]), launches[:6]))
    asked = replace(run([awake, asleep, untold]), plan=replace(run([awake, asleep, untold]).plan, clock=Clock.CPU))
    results = Results(asked, [*known, *launches[6:]])
    assert [cell.status for cell in results.cells] == [Status.OK, Status.FAILED, Status.FAILED]
    reasons = {entry.reason: entry.advice for entry in results.missing}
    assert list(reasons) == [
        "The steps of the launch used no CPU time.",
        "The launch did not record the CPU time of its samples.",
    ]
    assert set(reasons.values()) == {"Measure wall-clock time: omit --clock cpu."}
    for format in list_formats():
        assert render(format, results)
    assert render("csv", Results(asked, launches[6:]))
    assert "used no CPU time" in render_full(sections.build(Results(asked, launches[6:])))


def test_two_runs_by_cpu_time_are_compared_in_it() -> None:
    pair = two_runs.pair(*(by_cpu(value()) for value in (two_runs.first, two_runs.second)))
    told = render_full([Section("B vs A", "compare", changes.make_sections(pair)[0].blocks)])
    assert "A, CPU ms" in told
    assert "CPU time per step in CPU ms. A ratio is the CPU time in B divided by the CPU time in A" in told
    assert offending(told) == []
    assert changes.make_document(pair)["first"]["clock"] == "cpu"


def test_time_by_the_clock_is_not_called_cpu_time() -> None:
    for format in list_formats():
        assert "CPU time" not in re.sub(r"CPU time of the|CPU seconds", "", render(format, Results(*example())))

"""The job summary."""

import re
from dataclasses import replace

from harness.analysis.results import Results
from harness.model.launch import Role, Status
from harness.report.formats.summary import ABSENCES, render
from harness.report.sections.headline import LINES
from tests.factories import broken, cells, rounds, run, scenario
from tests.quantified import quantified, quantified_run
from tests.report.formats.examples import example


def read_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_the_answer_comes_first_and_the_way_to_the_report_last(golden):
    assert render(Results(*example())) == golden


def test_many_comparisons_and_reasons_are_cut():
    def summarize(count: int) -> str:
        names = [f"call{at}" for at in range(count)]
        times = {member: 0.01 if member.axes["mode"] == "graph" else 0.02 for member in cells(calls=names)}
        lost = [member for member in times if member.environment == "tf2.0"]
        launches = rounds({member: seconds for member, seconds in times.items() if member not in lost}, spread=0.0)
        launches += [broken(member, Status.FAILED, error=f"reason {member.axes['call']}") for member in lost]
        return render(Results(run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]), launches))

    text = summarize(LINES + 10)
    assert len(read_rows(text)) == LINES
    assert text.count("- **failed**") == ABSENCES
    assert f"- and {LINES + 10 - ABSENCES} more reasons " in text
    assert len(text.splitlines()) < 60
    assert "more reason" not in summarize(ABSENCES)


def test_a_control_of_one_quantity_does_not_withhold_the_verdicts_on_another(snapshot):
    launches = [
        replace(launch, samples=[replace(sample, seconds=1.2 * sample.seconds) for sample in launch.samples])
        if launch.role is Role.CONTROL
        else launch
        for launch in quantified()
    ]
    text = render(Results(quantified_run("step", "peak memory"), launches))
    assert [row[-1] for row in read_rows(text)] == snapshot

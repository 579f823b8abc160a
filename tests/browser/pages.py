"""The pages that the tests open, each made once."""

from functools import cache

from harness.analysis.results import Results
from harness.history import page as history
from harness.model.history import Note
from harness.model.launch import Launch
from harness.model.run import Run
from harness.report import sections
from harness.report.blocks import remove_pictures
from harness.report.html import page
from tests.factories import cells, rounds, run, scenario
from tests.history.nights import entries, judge_series, key, noise, series
from tests.report.formats.examples import HOSTILE, example, hostile, nothing
from tests.report.handmade import everything


def render(of: Run, launches: list[Launch], text: str = "") -> str:
    results = Results(of, launches)
    return page.render(results, [*sections.build(results), *everything(list(of.plan.cells), text=text)[1:]]).decode()


@cache
def small() -> str:
    return render(*example())


def uncharted() -> str:
    results = Results(*example())
    return page.render(results, remove_pictures(sections.build(results), "No charts.")).decode()


@cache
def strange() -> str:
    return render(*hostile(), HOSTILE)


@cache
def empty() -> str:
    return render(*nothing())


def many() -> tuple[Run, list[Launch]]:
    calls = [f"call {number}" for number in range(75)]
    members = cells(calls=calls)
    named = scenario(axes={"call": calls, "dtype": ["float32"], "mode": ["graph", "eager"]})
    seconds = {member: 0.001 * (place + 1) for place, member in enumerate(members)}
    return run(members, scenarios=[named]), rounds(seconds, 1)


@cache
def large() -> str:
    return render(*many())


@cache
def hostile_history() -> str:
    text = "</script><script>document.title = 'broken'</script>"
    of = series(key(text, text, call=text), noise(3))
    return history.render([judge_series(of)], entries(3), [Note("2026-08-02", text)], 0.03)

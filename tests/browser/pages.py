"""The pages that the tests open, each made once."""

from functools import cache

from harness.model.launch import Launch
from harness.model.run import Run
from harness.report.html.page import render
from tests.factories import cells, rounds, run, scenario
from tests.report.formats.examples import example, hostile, nothing


@cache
def small() -> str:
    """A run with something of everything."""
    return render(*example())


@cache
def strange() -> str:
    """A run whose strings are hostile."""
    return render(*hostile())


@cache
def empty() -> str:
    """A run in which no cell gave a number."""
    return render(*nothing())


def many() -> tuple[Run, list[Launch]]:
    """Three hundred cells."""
    calls = [f"call {number}" for number in range(75)]
    members = cells(calls=calls)
    named = scenario(axes={"call": calls, "dtype": ["float32"], "mode": ["graph", "eager"]})
    seconds = {member: 0.001 * (place + 1) for place, member in enumerate(members)}
    return run(members, scenarios=[named]), rounds(seconds, 1)


@cache
def large() -> str:
    """Its page."""
    return render(*many())

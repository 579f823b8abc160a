"""What the numbers answer."""

import pytest

from harness.analysis.answers import answers
from harness.analysis.cell_index import lookup
from harness.analysis.tables import tables
from harness.analysis.verdicts import Verdict
from tests.factories import COMPARE, cell, cells, launch, rounds, run, scenario

TIMES = {
    cell(environment, call=call, mode=mode): seconds * (2 if call == "fit" else 1)
    for (environment, mode), seconds in {
        ("tf1.14", "graph"): 0.010,
        ("tf1.14", "eager"): 0.020,
        ("tf2.0", "graph"): 0.011,
        ("tf2.0", "eager"): 0.027,
    }.items()
    for call in ("fit", "train_on_batch")
}


def answered(times=TIMES, **changes):
    planned = run(list(times), **changes)
    return answers(tables(planned, lookup(planned, rounds(times, spread=0.001)))[0])


@pytest.mark.slow
def test_a_pick_has_what_differs_beside_the_environments():
    answer = answered()[-1]
    assert (answer.subject, answer.base) == ("tf2.0", "tf1.14")
    assert (answer.subject_has, answer.base_has) == (["eager"], ["graph"])
    assert [finding.ratio.value for finding in answer.findings] == pytest.approx([2.7, 2.7], rel=0.01)
    assert [finding.verdict for finding in answer.findings] == [Verdict.SLOWER] * 2
    assert answer.common == {}


def test_with_one_environment_the_axis_answers_about_the_other_value():
    (answer,) = answered({member: time for member, time in TIMES.items() if member.environment == "tf1.14"})
    assert (answer.subject, answer.base, answer.context) == ("eager", "graph", {"environment": "tf1.14"})
    assert answer.findings[0].ratio.value == pytest.approx(2.0, rel=0.01)
    assert (answer.findings[0].verdict, answer.findings[0].compared.verdict) == (Verdict.SLOWER, Verdict.FASTER)
    # what the rows share is told once, and a table that compares nothing has no answer
    assert answered({member: time for member, time in TIMES.items() if member.axes["call"] == "fit"})[0].common == {
        "call": "fit"
    }
    assert answered({cell(): 0.01}) == []
    # one round has no verdict
    planned = run(cells(modes=["graph"]), scenarios=[scenario(compare=COMPARE[:1])])
    (table,) = tables(planned, lookup(planned, [launch(member) for member in cells(modes=["graph"])]))
    (finding,) = answers(table)[0].findings
    assert (finding.verdict, finding.ratio.interval) == (None, None)

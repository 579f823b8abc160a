"""What accounts for the differences, in sentences and in a table."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.scenario import Cell
from harness.report.sections import attribution
from tests.factories import ENVIRONMENTS, cell, cells, rounds, run, scenario
from tests.report.sections import reading

#: Means in ms of a step where neither change does much alone.
TIMES = dict(zip(cells(), [0.00708, 0.00733, 0.00751, 0.0217], strict=True))


def make_section(times=TIMES, planned=None, **changes):
    launches = rounds(times, **{"spread": 0.001, **changes})
    return reading.make(attribution.make_sections, planned or run(times), launches)


def run_calls(times, count):
    calls = [f"call{at}" for at in range(count)]
    return run(times, scenarios=[scenario(axes={**scenario().axes, "call": calls})])


def test_sentences_tables_and_notes(snapshot):
    one_change, crossed = (
        dict(zip(cells(), times, strict=True)) for times in ((0.01, 0.02) * 2, (0.01, 0.02, 0.02, 0.01))
    )
    left_out = dict.fromkeys(cells(calls=("fit", "train_on_batch")), 0.01)
    del left_out[cell(call="fit", mode="eager")]
    one_left_out = {member: at for member, at in left_out.items() if member.axes != cell().axes}
    ten = {member: 0.01 * 1.1**at for at in range(10) for member in cells(calls=[f"call{at}"])}
    tiny = dict(zip(cells(), (0.01, 0.01, 1e-7, 1e-7), strict=True))
    two_calls = dict.fromkeys(cells(["tf1.14"], calls=("fit", "train_on_batch")), 0.01)
    newer = [ENVIRONMENTS[0], replace(ENVIRONMENTS[1], python="3.11")]
    devices = [replace(member, device=device) for device in Device for member in cells()]
    both = {**TIMES, **{Cell("other", member.environment, member.device, member.axes): 0.01 for member in cells()}}
    numeric = dict(zip(cells(modes=["1", "4"]), TIMES.values(), strict=True))
    biased = rounds(TIMES, spread=0.008, controls={cell(): 0.015})
    sections = {
        "two changes that depend on each other": make_section(),
        "two changes of which one is a number": make_section(
            numeric, run(numeric, scenarios=[scenario(axes={**scenario().axes, "mode": ["1", "4"]}, compare=[])])
        ),
        "one change": make_section(one_change),
        "changes that cancel on average": make_section(crossed),
        "a tiny ratio": make_section(tiny),
        "ten calls": make_section(ten, run_calls(ten, 10)),
        "checked work": make_section(dict.fromkeys(cells(), 0.01), fingerprint={"parameters": 1}),
        "two rounds": make_section(count=2),
        "one round": make_section(count=1),
        "cells left out": make_section(left_out, run(left_out)),
        "one cell left out": make_section(one_left_out, run(one_left_out)),
        "one environment": make_section(two_calls),
        "another Python": make_section(planned=run(environments=newer)),
        "two devices": make_section(dict.fromkeys(devices, 0.01), run(devices)),
        "two scenarios": make_section(both, run(both, scenarios=[scenario(), scenario("other", title="Another")])),
        "a control beyond the margin": reading.make(attribution.make_sections, run(controlled=True), biased),
    }
    assert {name: reading.render(section) for name, section in sections.items()} == snapshot
    # a run in which one axis varies has no such section
    times = dict.fromkeys(cells(modes=["graph"]), 0.01)
    assert list(attribution.make_sections(Results(run(times), rounds(times)))) == []


def test_interactions_beyond_the_margin_are_shown_first():
    times = dict.fromkeys(cells(calls=[f"call{at}" for at in range(20)], modes=["graph"]), 0.01)
    times[cell("tf2.0", call="call19")] = 0.02
    (table,) = reading.tables(make_section(times, run_calls(times, 20)))
    rows = reading.rows(table)
    slower = [row[0] for row in rows if "×" in row[0] and row[2] == "slower"]
    assert slower == ["tf2.0 × call19: additional factor"] == [rows[-1][0]]

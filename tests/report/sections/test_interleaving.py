"""How the report describes interleaving and its side effects."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.model.launch import Interleave
from harness.report.blocks import Callout, Items, Where
from harness.report.comparisons import list_lines
from harness.report.sections import interleaving, run_info, scenarios, summary, timeline
from tests.factories import cell, cells, in_turns, launch, rounds, run, scenario
from tests.report.sections.reading import shown, text

MEMBERS = cells()
OLD, OLD_EAGER, NEW, NEW_EAGER = MEMBERS
TIMES = dict(zip(MEMBERS, [0.01, 0.02, 0.03, 0.05], strict=True))
RUN = run(MEMBERS, controlled=True)


def results(**planted):
    return Results(RUN, in_turns(TIMES, within=0.01, **planted))


def test_which_way_it_was_stands_with_the_rounds():
    assert timeline.describe_rounds(results(turns=12)).endswith(
        ". The launches of a round are interleaved on the same core: 12 turns each, with up to 5 launches taking turns"
    )
    assert timeline.describe_rounds(Results(RUN, rounds(TIMES))).endswith(". Launches run one after the other")
    planned = run(MEMBERS, asked={"interleave": Interleave.TURNS})
    assert (
        interleaving.describe_interleaving(Results(planned, []))
        == "the launches of a round are interleaved on the same core"
    )
    assert interleaving.describe_interleaving(Results(planned, rounds(TIMES))) == "launches run one after the other"


def test_several_numbers_of_turns_blocks_and_launches_without_turns_are_told():
    made = in_turns(TIMES, 1, turns=12)
    short = replace(made[0], samples=made[0].samples[:9], places=made[0].places[:9])
    other = [replace(turn, block=1) for turn in in_turns({OLD: 0.01}, 1, turns=12)[1:]]
    assert interleaving.describe_interleaving(Results(RUN, [short, *made[1:], *other, launch(NEW, number=2)])) == (
        "the launches of a round are interleaved on the same core: 9 to 12 turns each, with up to 5 launches taking "
        "turns. A round has up to 2 blocks of such launches, and each block includes the control cell. 1 launch "
        "ran one after the other"
    )


def test_how_launches_sampled_in_turns():
    assert timeline.describe_sampling(results()) == (
        "warm up for 0.5 s, then take a sample of at least 0.05 s in each turn, and a few samples without "
        "interleaving at the end"
    )


def test_without_turns_there_are_no_checks():
    plain = Results(RUN, rounds(TIMES))
    assert interleaving.describe_checks(plain) == ""
    assert list(interleaving.list_warnings(plain)) == []


def test_where_nothing_was_found_it_is_said_with_how_much_it_may_be():
    made = results(resources={"between_seconds": 10.0, "between_cpu_seconds": 0.005})
    assert interleaving.describe_checks(made) == (
        "effects on a ratio of more than 1.1 % are ruled out; waiting cells use at most 0.05 % of the core"
    )
    assert list(interleaving.list_warnings(made)) == []
    assert {interleaving.make_remark(line.compared.bias) for line in list_lines(made.tables[0])} == {""}


def test_a_bias_alone_is_said_in_the_checks_above_all_and_in_the_comparisons_it_concerns():
    made = results(alone={NEW: 1.1})
    (warning,) = interleaving.list_warnings(made)
    assert warning.startswith("Interleaving affects the results: without interleaving, the ratio is ")
    assert "), and 1 more ratio changes too." in warning
    assert "The intervals of these ratios are wider to include this effect." in warning
    assert warning.endswith("--interleave launches.")
    assert "; other effects on a ratio of more than" in interleaving.describe_checks(made)
    said = {line.name: scenarios.make_remark(made, line.compared) for line in list_lines(made.tables[0])}
    assert "without interleaving, the ratio is 1.10× as large" in said["tf2.0 vs tf1.14, graph"]
    assert "without interleaving" not in said["tf2.0 vs tf1.14, eager"]


def test_the_ratio_alone_reads_as_the_ratio_of_the_table():
    assert interleaving.make_remark(Estimate(2.0, 4)) == "without interleaving, the ratio is 2.00× as large"
    assert interleaving.make_remark(None) == ""


def test_the_warning_is_on_the_first_screen_and_the_checks_with_what_was_measured():
    made = results(alone={NEW: 1.1})
    (alert,) = [block for block in next(summary.make_sections(made)).blocks if isinstance(block, Callout)]
    assert alert.blocks[0].words == next(iter(interleaving.list_warnings(made)))
    (section,) = run_info.make_sections(made)
    (items,) = [block for block in shown(section, Where.PASTE) if isinstance(block, Items)]
    assert any(text(item).startswith("Interleaving checks: without interleaving, the ratio is") for item in items.items)


def test_a_bias_below_a_third_of_the_margin_widens_its_interval_and_is_no_warning():
    made = Results(RUN, in_turns(TIMES, within=0.0005, between=0.0001, alone={NEW: 1.005}))
    assert any(line.compared.bias for line in list_lines(made.tables[0]))
    assert list(interleaving.list_warnings(made)) == []
    assert interleaving.describe_checks(made).startswith("without interleaving, the ratio is")


def test_work_between_turns_is_a_warning():
    (warning,) = interleaving.list_warnings(results(resources={"between_seconds": 10.0, "between_cpu_seconds": 0.4}))
    assert "step tf1.14 fit float32 graph used 4 % of the core while other cells were timed." in warning


def test_in_a_run_of_several_scenarios_the_comparison_is_named_with_its_own():
    other = cell(of="other", mode="graph")
    both = run([*MEMBERS, other], scenarios=[scenario(), scenario("other", title="Another")], controlled=True)
    made = Results(both, [*in_turns(TIMES, within=0.01, alone={NEW: 1.1}), launch(other)])
    assert " as large (One training step: " in interleaving.describe_checks(made)


def test_what_leaves_more_than_a_tenth_open_is_no_check():
    made = Results(RUN, in_turns(TIMES, 2, within=0.2, turns=6))
    assert interleaving.describe_checks(made).endswith("% are possible")


@pytest.mark.parametrize("count", [1])
def test_one_round_of_few_turns_tells_nothing(count):
    assert (
        interleaving.describe_checks(results(count=count, turns=3))
        == "there were too few turns to show whether interleaving changes ratios"
    )

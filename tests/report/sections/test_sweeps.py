"""Crossings in sentences and in a table."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.model.scenario import Sweep
from harness.report.blocks import Where
from harness.report.format import size
from harness.report.formats import md
from harness.report.sections import sweeps
from tests.factories import cells, rounds, run, scenario
from tests.report.sections import reading
from tests.swept import CROSSING, SIZES, devices_run, seconds, swept, swept_run


def section(ratios=CROSSING, environments=("tf1.14",), **changes):
    return reading.made(sweeps.make_sections, *swept_run(seconds(ratios, environments), **changes))


def sentence(made):
    (only,) = reading.told(made, Where.PASTE)
    return only


def remark(made):
    (table,) = reading.tables(made)
    assert reading.heads(table)[-1] == "remarks"
    (row,) = reading.rows(table)
    return row[-1]


def test_a_crossing_says_who_takes_less_time_from_where_on():
    told = sentence(section(spread=0.001))
    assert told.startswith("From about 9,3")
    assert " values (9," in told
    assert told.endswith(" on, compiled takes less time than numpy (tf1.14).")


def test_without_a_unit_the_axis_stands_before_the_size():
    assert sentence(section(of=swept(sweeps={"size": Sweep()}), spread=0.001)).startswith("From about size 9,3")


def test_a_unit_that_is_called_as_its_axis_stands_behind_the_size_all_the_same():
    told = sentence(section(of=swept(sweeps={"size": Sweep("size")}), spread=0.001))
    assert told.startswith("From about 9,3")
    assert " size (9,2" in told


def test_one_round_has_no_interval():
    made = section(count=1)
    assert " values (one round, so no interval) on, compiled takes" in sentence(made)
    assert remark(made) == "one round: no interval"


def test_a_crossing_that_may_lie_beyond_the_sweep_says_from_where():
    made = section(dict(zip(SIZES, (0.05, 0.2, 0.5, 1.02), strict=True)), spread=0.1)
    assert "(at least " in sentence(made)
    (row,) = reading.rows(reading.tables(made)[0])
    assert row[1] == "numpy"
    assert row[3].startswith("at least ")
    assert "compiled" not in row


@pytest.mark.parametrize(("ratio", "winner", "loser"), [(2.0, "compiled", "numpy"), (0.5, "numpy", "compiled")])
def test_where_nothing_crosses_it_is_said_who_is_ahead(ratio, winner, loser):
    made = section(dict.fromkeys(SIZES, ratio))
    assert sentence(made) == f"{winner} takes less time than {loser} at every size from 1 to 32,768 values (tf1.14)."
    assert remark(made) == "no crossing from 1 to 32,768"


def test_what_is_unclear_everywhere_is_said_to_be():
    made = section(dict.fromkeys(SIZES, 1.0), spread=0.1)
    assert sentence(made) == "No clear difference between compiled and numpy from 1 to 32,768 values (tf1.14)."
    assert remark(made) == "unclear from 1 to 32,768"


def test_what_is_unclear_at_some_sizes_says_who_is_ahead_elsewhere():
    made = section(dict(zip(SIZES, (3.0, 2.0, 1.5, 1.005), strict=True)), spread=0.02)
    told = sentence(made)
    assert told.startswith("No clear difference between compiled and numpy from ")
    assert told.endswith(" to 32,768 values; elsewhere compiled takes less time (tf1.14).")
    assert remark(made).startswith("unclear from ")


def test_different_work_has_no_crossing():
    asked, launches = swept_run(seconds(CROSSING))
    launches = [replace(launch, fingerprint={"sum": len(launch.cell.axes["variant"])}) for launch in launches]
    made = reading.made(sweeps.make_sections, asked, launches)
    assert sentence(made).startswith("compiled and numpy did different work (sum")
    assert sentence(made).endswith("), so no crossing is computed (tf1.14).")
    assert remark(made).startswith("different work: sum")


def test_comparisons_of_which_the_same_is_told_share_a_sentence():
    told = reading.told(section(dict.fromkeys(SIZES, 2.0), ("tf1.14", "tf2.0")), Where.PASTE)
    assert told[0] == ("compiled takes less time than numpy at every size from 1 to 32,768 values (tf1.14; tf2.0).")


def test_what_crosses_is_told_first_and_what_has_no_room_is_counted():
    made = section(environments=("tf1.14", "tf2.0", "tf2.1"), spread=0.001)
    told, every = (reading.told(made, where) for where in (Where.PASTE, Where.TERMINAL))
    assert [entry.startswith("From about 9,") for entry in told[:4]] == [True, True, True, False]
    assert told[: sweeps.SENTENCES] == every[: sweeps.SENTENCES]
    assert told[sweeps.SENTENCES :] == [f"{7 - sweeps.SENTENCES} more comparisons along size are in the table."]
    assert len(reading.rows(reading.tables(made)[0])) == 7
    # two of them are told in one sentence
    assert len(every) == 6
    assert every[-1].endswith(" (numpy; compiled).")


def test_the_other_row_axes_name_each_sweep():
    axes = {"variant": ["numpy", "compiled"], "size": list(SIZES), "dtype": ["float32", "float64"]}
    times = {**seconds(CROSSING, dtype="float32"), **seconds(CROSSING, dtype="float64")}
    made = reading.made(sweeps.make_sections, *swept_run(times, of=swept(axes=axes), spread=0.001))
    assert reading.headings(made, Where.PASTE) == ["float32", "float64"]
    assert [table.caption for table in reading.tables(made)] == [
        "Crossings along size, A sigmoid, float32",
        "Crossings along size, A sigmoid, float64",
    ]


def test_sizes_have_three_digits_and_no_needless_decimals():
    ((_, of),) = Results(*swept_run(seconds(CROSSING))).sweeps
    assert [size(value, of) for value in (1.0, 3.271, 70.34, 2098765.0, 32768.0)] == [
        "1",
        "3.27",
        "70",
        "2,100,000",
        "32,768",
    ]


def test_the_table_has_a_line_for_each_crossing_and_is_not_in_what_is_pasted():
    made = section(environments=("tf1.14", "tf2.0"), spread=0.001)
    (table,) = reading.tables(made)
    assert reading.heads(table)[:5] == [
        "comparison",
        "less time before",
        "crossing, values",
        "interval",
        "less time after",
    ]
    (row,) = [row for row in reading.rows(table) if row[0] == "compiled vs numpy, tf2.0"]
    assert row[1] == "numpy"
    assert row[2].startswith("9,")
    assert row[4] == "compiled"
    assert reading.tables(made, Where.PASTE) == reading.tables(made, Where.TERMINAL) == []
    (legend,) = [entry for entry in reading.told(made, Where.DETAILS, notes=True) if "Fieller 1954" in entry]
    assert "The margin doesn't apply" in legend


def test_a_run_whose_control_lies_beyond_the_margin_tells_no_crossing():
    times = seconds(CROSSING)
    asked, _ = swept_run(times, controlled=True)
    first = {group.control: times[group.control] for group in asked.plan.groups}
    launches = rounds(times, 5, 0.001, controls={of: 2.0 * each for of, each in first.items()})
    made = reading.made(sweeps.make_sections, asked, launches)
    assert sentence(made) == "No crossings are shown, because two identical cells differed by more than the margin."
    assert reading.tables(made) == []


def test_scenarios_are_told_apart():
    times = {**seconds(CROSSING), **dict.fromkeys(cells(), 0.01)}
    made = reading.made(sweeps.make_sections, run(times, scenarios=[swept(), scenario()]), rounds(times))
    assert reading.headings(made, Where.PASTE) == ["A sigmoid"]


def test_a_scenario_without_a_sweep_has_no_section():
    assert list(sweeps.make_sections(Results(*swept_run(seconds(CROSSING), of=swept(sweeps={}))))) == []


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ((2.0, 3.0, 4.0), "The GPU is faster than the CPU for every batch from 16 to 256"),
        ((0.2, 0.3, 0.4), "The GPU is slower than the CPU for every batch from 16 to 256"),
        (
            (0.5, 2.0, 4.0),
            "From batch 64 on, the GPU is faster than the CPU. The crossover is between batch 16 (slower) and batch 64",
        ),
        (
            (0.5, 1.0, 4.0),
            "From batch 256 on, the GPU is faster than the CPU. The crossover is between batch 16 (slower) "
            "and batch 256; same at batch 64",
        ),
        ((1.0, 1.0, 4.0), "From batch 256 on, the GPU is faster than the CPU (same at batch 16 and 64)"),
        (
            (4.0, 0.5, 0.5),
            "From batch 64 on, the GPU is slower than the CPU. The crossover is between batch 16 (faster)",
        ),
        (
            (4.0, 0.5, 4.0),
            "The GPU compared with the CPU: faster at batch 16, slower at batch 64, faster at batch 256",
        ),
        ((0.5, 0.5, 1.0), "The GPU compared with the CPU: slower at batch 16 and 64, same at batch 256"),
    ],
)
def test_devices_have_the_tried_size_from_which_on_one_is_faster_by_verdicts(
    ratios: Sequence[float], words: str
) -> None:
    made, launches = devices_run(dict(zip(("16", "64", "256"), ratios, strict=True)), spread=0.002)
    (sentence,) = sweeps.describe_devices(Results(made, launches))
    assert sentence.startswith(words)
    assert sentence.endswith(" (tf2.15).")
    assert sentence in md.render(Results(made, launches))


def test_a_point_estimate_alone_gives_no_size() -> None:
    ratios = {"16": 0.9, "64": 1.1, "256": 1.2}
    assert sweeps.describe_devices(Results(*devices_run(ratios, spread=0.5))) == []
    assert sweeps.describe_devices(Results(*devices_run(ratios, count=2))) == []


def test_a_unit_follows_the_sizes() -> None:
    (text,) = sweeps.describe_devices(Results(*devices_run({"16": 0.5, "64": 2.0}, unit="images", spread=0.002)))
    assert "From 64 images on, the GPU" in text
    assert "between 16 images (slower) and 64 images" in text


def test_other_comparisons_along_a_sweep_have_no_such_sentence() -> None:
    assert sweeps.describe_devices(Results(*swept_run(seconds(CROSSING)))) == []

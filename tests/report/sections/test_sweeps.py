"""Crossings in sentences."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.scenario import Sweep
from harness.report.blocks import Where
from harness.report.format import size
from harness.report.formats import md
from harness.report.sections import sweeps
from tests.factories import cells, rounds, run, scenario
from tests.report.sections import reading
from tests.swept import CROSSING, SIZES, devices_run, seconds, swept, swept_run


def make_section(ratios=CROSSING, environments=("tf1.14",), **changes):
    return reading.make(sweeps.make_sections, *swept_run(seconds(ratios, environments), **changes))


def test_sentences_of_a_sweep(snapshot):
    different, launches = swept_run(seconds(CROSSING))
    launches = [replace(launch, fingerprint={"sum": len(launch.cell.axes["variant"])}) for launch in launches]
    times = seconds(CROSSING)
    controlled, _ = swept_run(times, controlled=True)
    first = {group.control: 2.0 * times[group.control] for group in controlled.plan.groups}
    biased = rounds(times, 5, 0.001, controls=first)
    beyond, near_the_end = ((0.05, 0.2, 0.5, 1.02), (3.0, 2.0, 1.5, 1.005))
    sections = {
        "a crossing": make_section(spread=0.001),
        "without a unit": make_section(of=swept(sweeps={"size": Sweep()}), spread=0.001),
        "a unit like its axis": make_section(of=swept(sweeps={"size": Sweep("size")}), spread=0.001),
        "one round": make_section(count=1),
        "one round, one ahead": make_section(dict.fromkeys(SIZES, 2.0), count=1),
        "a crossing that may lie beyond the sweep": make_section(dict(zip(SIZES, beyond, strict=True)), spread=0.1),
        "one ahead": make_section(dict.fromkeys(SIZES, 2.0)),
        "the other ahead": make_section(dict.fromkeys(SIZES, 0.5)),
        "one ahead in two releases": make_section(dict.fromkeys(SIZES, 2.0), ("tf1.14", "tf2.0")),
        "unclear": make_section(dict.fromkeys(SIZES, 1.0), spread=0.1),
        "unclear at some sizes": make_section(dict(zip(SIZES, near_the_end, strict=True))),
        "different work": reading.make(sweeps.make_sections, different, launches),
        "a control beyond the margin": reading.make(sweeps.make_sections, controlled, biased),
    }
    assert {name: reading.texts(section, Where.PASTE) for name, section in sections.items()} == snapshot


def test_what_crosses_is_told_first_and_what_has_no_room_is_counted():
    section = make_section(environments=("tf1.14", "tf2.0", "tf2.1"), spread=0.001)
    pasted, printed = (reading.texts(section, where) for where in (Where.PASTE, Where.TERMINAL))
    assert [text.startswith("From about 9,") for text in pasted[:4]] == [True, True, True, False]
    assert pasted[: sweeps.SENTENCES] == printed[: sweeps.SENTENCES]
    (rest,) = pasted[sweeps.SENTENCES :]
    # two of them are told in one sentence
    assert rest.startswith(f"{7 - (sweeps.SENTENCES + 1)} more ")
    assert len(printed) == 5
    assert printed[-1].endswith(" (numpy; compiled).")


def test_each_sweep_is_named_by_its_axes_and_sizes_have_three_digits():
    axes = {"variant": ["numpy", "compiled"], "size": list(SIZES), "dtype": ["float32", "float64"]}
    times = {**seconds(CROSSING, dtype="float32"), **seconds(CROSSING, dtype="float64")}
    section = reading.make(sweeps.make_sections, *swept_run(times, of=swept(axes=axes), spread=0.001))
    assert reading.headings(section, Where.PASTE) == ["float32", "float64"]
    both = {**seconds(CROSSING), **dict.fromkeys(cells(), 0.01)}
    section = reading.make(sweeps.make_sections, run(both, scenarios=[swept(), scenario()]), rounds(both))
    assert reading.headings(section, Where.PASTE) == ["A sigmoid"]
    ((_, sweep),) = Results(*swept_run(seconds(CROSSING))).sweeps
    texts = [size(value, sweep) for value in (1.0, 3.271, 70.34, 2098765.0, 32768.0)]
    assert texts == ["1", "3.27", "70", "2,100,000", "32,768"]


def test_devices_have_the_size_from_which_on_one_is_faster_by_verdicts(snapshot):
    def describe(*ratios, spread=0.002, **changes):
        sizes = ("16", "64", "256")[: len(ratios)]
        results = Results(*devices_run(dict(zip(sizes, ratios, strict=True)), spread=spread, **changes))
        sentences = sweeps.describe_devices(results)
        assert all(sentence in md.render(results) for sentence in sentences)
        return sentences

    assert {
        "all faster": describe(2.0, 3.0, 4.0),
        "all slower": describe(0.2, 0.3, 0.4),
        "slower, then faster": describe(0.5, 2.0, 4.0),
        "slower, the same, faster": describe(0.5, 1.0, 4.0),
        "the same, then faster": describe(1.0, 1.0, 4.0),
        "faster, then slower": describe(4.0, 0.5, 0.5),
        "faster, slower, faster": describe(4.0, 0.5, 4.0),
        "slower, then the same": describe(0.5, 0.5, 1.0),
        "a unit": describe(0.5, 2.0, unit="images"),
        "no verdicts": describe(0.9, 1.1, 1.2, spread=0.5),
        "two rounds": describe(0.9, 1.1, 1.2, count=2),
    } == snapshot
    assert sweeps.describe_devices(Results(*swept_run(seconds(CROSSING)))) == []
    assert list(sweeps.make_sections(Results(*swept_run(seconds(CROSSING), of=swept(sweeps={}))))) == []

"""In which releases the time changed."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.scenario import Comparison
from harness.report.blocks import Table
from harness.report.sections import release_changes, summary
from harness.report.sections.headline import LINES
from tests.factories import ENVIRONMENTS, cell, rounds, run, scenario


def measure(calls=("fit",), **factors):
    """Return a run in which the release `tf2_0` takes these multiples of the time of tf1.14, one for each call."""
    names = ["tf1.14", *(name.replace("_", ".") for name in factors)]
    environments = [
        replace(ENVIRONMENTS[0], name=name, tensorflow=f"{name.removeprefix('tf')}.0", base="") for name in names
    ]
    times = {
        cell(name, call=call): 0.01 * factor
        for name, factor in zip(names, [1.0, *factors.values()], strict=True)
        for call in calls
    }
    compared = scenario(
        axes={**scenario().axes, "call": list(calls)}, compare=[Comparison("releases", along="environment")]
    )
    planned = run(times, environments=environments, scenarios=[compared], reference="tf1.14")
    return Results(planned, rounds(times, spread=0.001))


def test_the_sentence_names_the_releases_between_which_something_changed(snapshot):
    assert {
        "up and back": release_changes.describe(
            measure(tf1_15=1.0, tf2_0=2.5, tf2_1=1.0, tf2_2=14.0, tf2_3=14.1, tf2_4=1.0)
        ),
        "faster": release_changes.describe(measure(tf1_15=0.5, tf2_0=0.25)),
        "never": release_changes.describe(measure(tf1_15=1.0, tf2_0=1.0)),
        "two calls": release_changes.describe(measure(("fit", "predict"), tf1_15=1.0, tf2_0=2.0)),
        "more lines than the sentence or the chart": [
            release_changes.describe(measure([f"call{at}" for at in range(count)], tf1_15=1.0, tf2_0=2.0))[-30:]
            for count in (3, 4, 10)
        ],
        "two releases": release_changes.describe(measure(tf2_0=2.0)),
    } == snapshot


def test_a_long_table_has_the_releases_in_which_something_changed_in_their_order():
    def list_releases(slower):
        results = measure(**{f"tf2_{minor}": 3.0 if minor == slower else 1.0 for minor in range(12)})
        (table,) = [block for block in next(summary.make_sections(results)).blocks if isinstance(block, Table)]
        return [line.entries[0].text.split()[0] for line in table.lines]

    assert list_releases(5) == ["tf2.5", "tf2.6"]
    # if nothing changed, it has the largest ratios
    assert len(set(list_releases(None))) == LINES

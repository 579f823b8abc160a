"""What somebody who ran a plain script reads first."""

import math
from dataclasses import replace

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import Role, Status
from harness.model.scenario import OWN, PEAK, PRINTED, STEP, WHOLE, Cell, Comparison
from harness.report.sections import scripts, summary
from tests.factories import broken, launch, run, scenario
from tests.report.sections.reading import texts

OLD, NEW = (Cell("mine", name, Device.CPU, {}) for name in ("tf1.14", "tf2.0"))
OUTPUT = {"lines": ["loss 1"], "count": 1, "sha256": "0"}


def make_scenario(*quantities: str):
    compare = [Comparison(quantity, along="environment", of=quantity) for quantity in (STEP, *quantities)]
    return scenario("mine", title="mine.py", axes={}, default={}, compare=compare, script="mine.py")


def make_results(launches, script=None, cells=(OLD, NEW)):
    return Results(run(cells, scenarios=[script or make_scenario()], reference="tf1.14"), launches)


def measure(script, new=0.2, *, outputs=(OUTPUT, OUTPUT), count=5, **phases):
    """Return rounds in which the script takes 0.1 s in the old release, and these seconds in the new one."""
    launches = [
        launch(
            cell,
            seconds * (1 + number / 1e4),
            number,
            phases={name: both[side] for name, both in phases.items()},
            observations={"output": outputs[side], PRINTED + "n": 3.0 * (side + 1)},
            resources={"max_rss_bytes": 1e9},
        )
        for number in range(1, count + 1)
        for side, (cell, seconds) in enumerate(((OLD, 0.1), (NEW, new)))
    ]
    return make_results(launches, script)


def measure_noisy(*logs, control=()):
    """Return rounds with these log ratios between the releases, and a control's launches."""
    launches = []
    for number, log in enumerate(logs, 1):
        launches += [launch(OLD, (0.1,), round=number), launch(NEW, (0.1 * math.exp(log),), round=number)]
    for number, log in enumerate(control, 1):
        launches.append(launch(OLD, (0.1 * math.exp(log),), round=number, role=Role.CONTROL))
    return make_results(launches)


def test_sentences(snapshot):
    def differ(old, new):
        return measure(make_scenario(), outputs=[{**OUTPUT, "lines": [line], "sha256": line} for line in (old, new)])

    old_end, new_end = ("1/1 [" + "=" * 90 + f"] - \b\b\b{end}s" for end in (1, 2))
    steps = {WHOLE: (1.0, 1.0), OWN: (1.0, 1.0), "first call": (0.1, 0.3), "import": (0.0, 0.0)}
    imports = {"import": (0.05, 0.15), OWN: (0.05, 0.05)}
    used = {"max_rss_bytes": 512 * 1024**2, "wall_seconds": 3.21}
    growing = {"resident memory": [[second, 2**20 * (100 + 8 * second)] for second in range(20)]}
    failed = broken(OLD, Status.FAILED, error="it ended with exit status 2: no", resources=used)
    late = broken(NEW, Status.TIMEOUT, error="it still ran after 20 s", resources=used, observations=growing)
    idle = "its own code did nothing: 3 of 2,500 ms, and imports took the rest"
    runs = {
        "with and without the import": measure(make_scenario(OWN), **imports),
        "without TensorFlow": measure(make_scenario(OWN), **{"import": (0.0, 0.0), OWN: (0.1, 0.2)}),
        "the output differs": differ("loss 1", "loss 2"),
        "the output differs in a long line": differ(old_end, new_end),
        "memory and numbers": measure(make_scenario(PEAK, PRINTED + "n")),
        "steps": measure(make_scenario("first call", WHOLE, OWN), **steps),
        "faster": measure(make_scenario(), 0.05),
        "ended early": make_results([failed, late]),
        "ended early without a reason": make_results([broken(OLD, Status.FAILED), broken(NEW, Status.TIMEOUT)]),
        "ended early in both": make_results(
            [broken(cell, Status.FAILED, error="ValueError: no") for cell in (OLD, NEW)]
        ),
        "did nothing": make_results([broken(cell, Status.NOT_AVAILABLE, error=idle) for cell in (OLD, NEW)]),
        "one release": make_results([launch(OLD, (0.1,), round=number) for number in range(1, 6)], cells=[OLD]),
        "one round": measure(make_scenario(OWN), count=1, **imports),
        "unclear": measure_noisy(0.25, -0.05, 0.20, -0.02, 0.12),
        "unclear after 200 rounds": measure_noisy(0.30, -0.25, 0.31, -0.24, 0.03),
        "a biased control": measure_noisy(0.20, 0.21, 0.19, control=(0.12, 0.13, 0.125)),
        "a scenario": measure(replace(make_scenario(), script="")),
    }
    assert {name: scripts.describe_scripts(results) for name, results in runs.items()} == snapshot


def measure_printed(numbers, *, units=(), labels=None):
    """Three rounds in which the script prints these numbers in both releases, by name: two lists of values."""
    launches = []
    for number in range(1, 4):
        for side, cell in enumerate((OLD, NEW)):
            values = {PRINTED + name: both[side] for name, both in numbers.items()}
            means = {name: sum(series) / len(series) for name, series in values.items()}
            if len(numbers) == 2:
                means[PRINTED + "half/single"] = means[PRINTED + "half"] / means[PRINTED + "single"]
            kinds = {PRINTED + name: "s" if (name, side) in units else "" for name in numbers}
            observations = {**means, "printed": values, "printed units": kinds}
            if labels:
                observations["printed labels"] = dict.fromkeys(values, labels)
            launches.append(launch(cell, (0.1,), round=number, observations=observations))
    ratios = ["half/single"] if len(numbers) == 2 else []
    return make_results(launches, make_scenario(*(PRINTED + name for name in [*numbers, *ratios])))


def test_sentences_about_printed_numbers(snapshot):
    two = measure_printed({"half": ([6.0, 10.0], [2.0]), "single": ([2.0], [1.0])})
    rising, steady = [number / 100 for number in range(3, 11)], [0.03] * 8
    seconds = measure_printed({"saved": ([0.03], [0.04])}, units=[("saved", 0)])
    old_launches = [launch for launch in seconds.launches if launch.cell == OLD]
    in_seconds = [("saved", 0), ("saved", 1)]
    by_place = measure_printed({"saved": ([0.004, 0.004, 0.178, 0.188],) * 2}, units=in_seconds)
    counts = ["calls", ["None", "1", "2", "8"], False]
    runs = {
        "two settings": by_place,
        "several settings": measure_printed({"saved": ([3.0, 2.0, 1.5, 1.0], [3.0, 2.0, 1.0, 0.5])}, labels=counts),
        "two numbers": two,
        "one release": make_results(old_launches, seconds.run.scenarios[0], [OLD]),
        "seconds in both releases": measure_printed({"saved": (rising, steady)}, units=[("saved", 0), ("saved", 1)]),
        "a unit in one release": measure_printed({"saved": ([3.0], [0.003])}, units=[("saved", 1)]),
    }
    assert {name: scripts.describe_printed(results) for name, results in runs.items()} == snapshot
    (section, *_) = summary.make_sections(two)
    assert scripts.describe_printed(two)[0] in texts(section)


def test_threads_that_had_one_core_have_no_ratio():
    settings = measure_printed({"saved": ([1.0, 9.0],) * 2}, units=[("saved", 0), ("saved", 1)])
    pinned = Results(replace(settings.run, scripts={"mine": "set_intra_op_parallelism_threads(1)"}), settings.launches)
    first, *others = scripts.describe_printed(pinned)
    assert "pinned to 1 core" in first
    assert not any(" as much as " in sentence for sentence in others)
    assert any(" as much as " in sentence for sentence in scripts.describe_printed(settings))

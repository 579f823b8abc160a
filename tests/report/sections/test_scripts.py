"""What somebody who ran a plain script is told first."""

import math
import re
from dataclasses import replace

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import Role, Status
from harness.model.scenario import OWN, PEAK, PRINTED, STEP, WHOLE, Cell, Comparison
from harness.report.blocks import Where
from harness.report.sections import no_results, scripts, summary
from tests.factories import broken, launch, run, scenario
from tests.report.sections.reading import all_tables, texts

OLD, NEW = (Cell("mine", name, Device.CPU, {}) for name in ("tf1.14", "tf2.0"))
OUTPUT = {"lines": ["loss 1"], "count": 1, "sha256": "0"}


def made(*quantities: str):
    compare = [Comparison(of, along="environment", of=of) for of in (STEP, *quantities)]
    return scenario("mine", title="mine.py", axes={}, default={}, compare=compare, script="mine.py")


def results(of, new=0.2, *, output=OUTPUT, **phases):
    """Five rounds in which the script takes 0.1 s in the old release, and so long in the new one."""
    launches = []
    for number in range(1, 6):
        for cell, seconds in ((OLD, 0.1), (NEW, new)):
            told = OUTPUT if cell is OLD else output
            one = launch(cell, (seconds * (1 + number / 1e4),), round=number, observations={"output": told})
            known = {name: each[cell is NEW] for name, each in phases.items()}
            observed = {**one.observations, PRINTED + "n": 3.0 if cell is OLD else 6.0}
            launches.append(replace(one, phases=known, observations=observed, resources={"max_rss_bytes": 1e9}))
    return Results(run([OLD, NEW], scenarios=[of], reference="tf1.14"), launches)


def test_how_long_it_takes_with_the_import_and_without_it_is_said_first():
    found = results(made(OWN), **{"import": (0.05, 0.15), OWN: (0.05, 0.05)})
    first, second = scripts.describe_scripts(found)
    assert first.startswith("mine.py takes 2.00× (2.00 to 2.00) as long in tf2.0 as in tf1.14")
    assert ", and 1.00× (1.00 to 1.00) without the import of TensorFlow" in first
    assert second == "Exit status and output are the same in tf2.0 and tf1.14."
    section, rest = summary.make_sections(found)
    assert section.blocks[0].words[0].text == first
    assert not any("in the tables" in text for value in (section, rest) for text in texts(value))


def test_of_a_script_that_imports_no_tensorflow_nothing_is_said_of_the_import():
    first, *_ = scripts.describe_scripts(results(made(OWN), **{"import": (0.0, 0.0), OWN: (0.1, 0.2)}))
    assert "import" not in first


def test_the_output_s_first_line_that_differs_is_quoted():
    told = scripts.describe_scripts(results(made(), output={**OUTPUT, "lines": ["loss 2"], "sha256": "1"}))
    assert told[1] == "The output differs at line 1: `loss 2` in tf2.0, `loss 1` in tf1.14."


def test_memory_and_numbers_that_it_prints_follow():
    of = made(PEAK, PRINTED + "n")
    told = scripts.describe_scripts(results(of))
    assert told[2] == "The peak memory is 1.00× (1.00 to 1.00) as large in tf2.0 as in tf1.14."
    assert told[3] == "The printed `n` is 2.00× (2.00 to 2.00) as large in tf2.0 as in tf1.14: 6 and 3."


def printing(numbers, *, units=(), seconds=(0.1, 0.1)):
    """Three rounds in which the script prints these numbers in both releases, by name: two lists of values."""
    launches = []
    for round_ in range(1, 4):
        for index, cell in enumerate((OLD, NEW)):
            values = {PRINTED + name: both[index] for name, both in numbers.items()}
            observed = {name: sum(each) / len(each) for name, each in values.items()}
            kinds = {PRINTED + name: "s" if (name, index) in units else "" for name in numbers}
            observed |= {"printed": values, "printed units": kinds}
            if len(numbers) == 2:
                one, other = observed[PRINTED + "half"], observed[PRINTED + "single"]
                observed[PRINTED + "half/single"] = one / other
            launches.append(launch(cell, (seconds[index],), round=round_, observations=observed))
    ratios = ["half/single"] if len(numbers) == 2 else []
    of = made(*(PRINTED + name for name in [*numbers, *ratios]))
    return Results(run([OLD, NEW], scenarios=[of], reference="tf1.14"), launches)


def test_two_printed_numbers_are_compared_in_each_release():
    found = printing({"half": ([6.0, 10.0], [2.0]), "single": ([2.0], [1.0])})
    told = scripts.describe_printed(found)
    assert told[-2:] == [
        "The printed `half` is 4.00× (4.00 to 4.00) as large as `single` in tf1.14, and 2.00× (2.00 to 2.00) in tf2.0.",
        "The ratio `half/single` is 0.500× (0.500 to 0.500) as large in tf2.0 as in tf1.14.",
    ]
    (section, *_) = summary.make_sections(found)
    assert told[0] in texts(section)


def test_the_number_of_a_single_release_is_told():
    found = printing({"saved": ([0.03], [0.04])}, units=[("saved", 0)])
    alone = Results(run([OLD], scenarios=found.run.scenarios), [one for one in found.launches if one.cell == OLD])
    assert scripts.describe_printed(alone) == ["The printed `saved` is 30.0 ± 0.1 ms in tf1.14."]


def test_a_number_that_grows_within_launches_is_told_with_its_unit():
    rising, steady = [number / 100 for number in range(3, 11)], [0.03] * 8
    told = scripts.describe_printed(printing({"saved": (rising, steady)}, units=[("saved", 0), ("saved", 1)]))
    assert told[-1] == (
        "The printed `saved` grows within a launch in tf1.14: from 35.0 ms to 95.0 ms over 8 values (2.71×; means of "
        "the first and last quarter, without an interval, because the values of a launch depend on each other)."
    )


def test_a_number_with_a_unit_in_one_release_only_is_not_compared():
    (told,) = scripts.describe_printed(printing({"saved": ([3.0], [0.003])}, units=[("saved", 1)]))
    assert told.startswith("The printed `saved` isn't compared: only some launches print it with a unit of time.")


def test_where_steps_of_it_are_timed_these_come_first():
    phases = {WHOLE: (1.0, 1.0), OWN: (1.0, 1.0), "first call": (0.1, 0.3), "import": (0.0, 0.0)}
    step, whole, _ = scripts.describe_scripts(results(made("first call", WHOLE, OWN), **phases))
    assert step.startswith("A step of mine.py takes 2.00× (2.00 to 2.00) as long in tf2.0 as in tf1.14")
    assert step.endswith("; its first call takes 3.00× (3.00 to 3.00) as long.")
    assert whole == "mine.py takes as long in tf2.0 as in tf1.14, within 3 %."


def test_an_error_is_told_once_in_the_answer():
    error = "ValueError: no (mine.py, line 3)"
    launches = [broken(cell, Status.FAILED, error=error, stderr="Traceback") for cell in (OLD, NEW)]
    found = Results(run([OLD, NEW], scenarios=[made()], reference="tf1.14"), launches)
    assert scripts.describe_scripts(found) == [f"mine.py fails in tf1.14 and tf2.0: {error}."]
    (section,) = no_results.make_sections(found)
    (table,) = all_tables(section)
    assert Where.TERMINAL not in table.where


def test_a_launch_that_ended_early_keeps_its_seconds_and_its_memory():
    used = {"max_rss_bytes": 512 * 1024**2, "wall_seconds": 3.21}
    growing = {"resident memory": [[second, 2**20 * (100 + 8 * second)] for second in range(20)]}
    failed = replace(broken(OLD, Status.FAILED, error="it ended with exit status 2: no"), resources=used)
    late = replace(
        broken(NEW, Status.TIMEOUT, error="it was still running after 20 s"), resources=used, observations=growing
    )
    told = scripts.describe_scripts(Results(run([OLD, NEW], scenarios=[made()], reference="tf1.14"), [failed, late]))
    assert told[0] == (
        "mine.py fails in tf1.14: it ended with exit status 2: no (after 3.2 s, peak memory until then: 512 MiB)."
    )
    assert "after 20 s (peak memory until then: 512 MiB, growing by 8.00 MiB per second)." in told[1]


def test_a_script_that_did_nothing_has_no_ratio_but_a_sentence():
    reason = "its own code did nothing: 3 of 2,500 ms, and imports took the rest. The script only imports modules"
    launches = [broken(cell, Status.NOT_AVAILABLE, error=reason) for cell in (OLD, NEW)]
    found = Results(run([OLD, NEW], scenarios=[made()], reference="tf1.14"), launches)
    assert scripts.describe_scripts(found) == [f"mine.py has no result in tf1.14 and tf2.0: {reason}."]


def test_where_nothing_is_compared_the_time_is_said():
    launches = [launch(OLD, (0.1,), round=number) for number in range(1, 6)]
    found = Results(run([OLD], scenarios=[made()], reference="tf1.14"), launches)
    (told,) = scripts.describe_scripts(found)
    assert told.startswith("mine.py takes 100")
    assert told.endswith(" ms in tf1.14.")


def test_other_scenarios_are_answered_as_ever():
    assert scripts.describe_scripts(results(replace(made(), script=""))) == []


def test_of_long_lines_what_stands_around_the_first_difference_is_quoted():
    old, new = ("1/1 [" + "=" * 90 + f"] - \b\b\b{end}s" for end in (1, 2))
    of = results(made(), output={**OUTPUT, "lines": [new], "sha256": "1"})
    launches = [
        replace(entry, observations={**entry.observations, "output": {**OUTPUT, "lines": [old]}})
        if entry.cell == OLD
        else entry
        for entry in of.launches
    ]
    told = scripts.describe_scripts(Results(of.run, launches))[1]
    assert told == (
        "The output differs at line 1: `…" + "=" * 16 + "] - 2s` in tf2.0, `…" + "=" * 16 + "] - 1s` in tf1.14."
    )


def test_too_few_rounds_are_said_last_with_what_gives_a_verdict():
    of = results(made(OWN), **{"import": (0.05, 0.15), OWN: (0.05, 0.05)})
    first, *_ = scripts.describe_scripts(Results(of.run, [entry for entry in of.launches if entry.round == 1]))
    assert first == (
        "mine.py takes 2.00× as long in tf2.0 as in tf1.14, and 1.00× without the import of TensorFlow; "
        "too few rounds (1 of 3) for a verdict: pass --rounds 3 or more."
    )


def noisy(*logs, control=()):
    """Rounds in which the script takes so much longer in the new release (logs), and a control's launches."""
    launches = []
    for number, log in enumerate(logs, 1):
        launches += [launch(OLD, (0.1,), round=number), launch(NEW, (0.1 * math.exp(log),), round=number)]
    for number, log in enumerate(control, 1):
        launches.append(launch(OLD, (0.1 * math.exp(log),), round=number, role=Role.CONTROL))
    (told, *_) = scripts.describe_scripts(Results(run([OLD, NEW], scenarios=[made()], reference="tf1.14"), launches))
    return told


def test_of_what_is_not_clear_the_rounds_that_would_settle_it_are_said():
    told = noisy(0.25, -0.05, 0.20, -0.02, 0.12)
    assert told.startswith("No clear difference: mine.py takes 1.1")
    assert re.search(r"; \d+ rounds in total would probably give a verdict\.$", told)
    assert noisy(0.30, -0.25, 0.31, -0.24, 0.03).endswith(
        "; 200 rounds would give a verdict with a probability of 60 %."
    )


def test_a_control_that_differs_from_itself_is_said_with_its_number_and_what_to_do():
    told = noisy(0.20, 0.21, 0.19, control=(0.12, 0.13, 0.125))
    assert "; no verdict, because two launches of the same cell differed by 13 ± 2 %: " in told
    assert told.endswith("run the script again without other work on the machine, and with --rounds 6.")

"""How to reproduce a run."""

import shlex

from harness.analysis.results import Results
from harness.model.launch import Status
from harness.report.sections import continuation
from tests.factories import broken, cell, cells, rounds, run
from tests.report.sections.reading import code

SECONDS = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 9], strict=True))
RESULTS = Results(run(SECONDS), rounds(SECONDS))


def list_commands(results):
    (section,) = continuation.make_sections(results)
    (block,) = code(section)
    return [line for line in block.splitlines() if not line.startswith("#")]


def test_the_command_is_that_of_the_run_with_the_seed():
    assert {
        command: continuation.repeat_run(run(SECONDS, command=["harness", "matrix", *shlex.split(command)]))
        for command in ("", "--seed 7", "--seed=7", "-a 'mode=op by op; rm'")
    } == {
        "": "harness matrix --seed 7",
        "--seed 7": "harness matrix --seed 7",
        "--seed=7": "harness matrix --seed=7",
        "-a 'mode=op by op; rm'": "harness matrix -a 'mode=op by op; rm' --seed 7",
    }


def test_a_run_is_reproduced_with_harness_and_without_it():
    assert list_commands(RESULTS) == [
        "harness matrix -s step --seed 7",
        "harness report results/2026-11-21T04-10-00Z-3f2a",
        "harness bundle results/2026-11-21T04-10-00Z-3f2a",
    ]
    # without a result there is no comparison to run
    failed = Results(run([cell()]), [broken(cell(), Status.FAILED)])
    assert not any("bundle" in command for command in list_commands(failed))
    # the folder is one word
    (_, report, *_) = list_commands(Results(run(SECONDS, folder="/tmp/my runs/x"), []))
    assert shlex.split(report) == ["harness", "report", "/tmp/my runs/x"]

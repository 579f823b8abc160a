"""What is wrong with a command line: its exit code, and what the user reads."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from tests.cli.conftest import NOWHERE, SCENARIO, Harness, stored
from tests.report.formats.examples import example

#: A command line each; LONG is a name that is longer than file systems allow.
COMMANDS = {
    "names": """
        matrx
        scenarios lst
        scenarios run
        xyzzy
        matrix ways
        profile -e old new
        report one two
        list
        help run
        --verison
        matrix --dry
        history show --format csv
        bisect --dry-run
    """,
    "values": """
        matrix --rounds 0
        matrix --rounds x
        matrix --rounds 9999999999999999999
        matrix --memory 300x
        matrix --seed=-1
        matrix --measure soon
        matrix --backend podman
        profile --calls 1.5
        images build --jobs 0
        images build --device tpu
        completion ksh
        history confirm --rounds 1
        doctor --seconds soon
        doctor --cpus 0
        doctor -e tf9.9
    """,
    "long names": """
        matrix --dry-run -s LONG
        matrix --dry-run --backend local -s ways -e LONG
        matrix --dry-run --backend local -s ways --reference LONG
        matrix --dry-run --backend local -s ways --results LONG
        report LONG
        bundle LONG
        merge LONG
        repro LONG
        scenarios new LONG
        scenarios show LONG
        scenarios check LONG
    """,
    "matrix": """
        matrix -s ways -e odl
        matrix -s way
        matrix -s ways -a sped=fast
        matrix -s ways -a way=fin
        matrix -s ways -a way
        matrix --suite nightly
        matrix --suite few -a way=raises
        matrix -s ways --cpus 512
        matrix -s ways --reference middle
        matrix -s none.py
        matrix -s ways --backend docker
        matrix -s ways --gpus 0,x
        matrix -s ways --gpu-via luck
        matrix -s ways --gpu-via cdi --backend local
        matrix -s broken
        matrix --resume results/none
        matrix --resume results/none --margin 9%
        matrix --resume results/none --gpu
        matrix --resume results/none -e old -s ways -a way=fine
        matrix -s ways -a way=signals
        matrix -s ways -e new+mine@/nowhere --backend local
        matrix -s ways -e mine@mine --backend local
        matrix -s ways -e none+mine@mine --backend local
        matrix -s ways -e new+mine@/nowhere/x.whl --backend local
        matrix -s ways -e new+mine@file:///nowhere@main --backend local
        matrix -s ways -e new+mine@main --repository nowhere --backend local
        matrix -s ways -e new+mine@pr/1 --backend local
        matrix -s ways -e new --package mine --backend local
    """,
    "run": """
        run mine.py --rounds 1
        run absent.py -e old
        run wrong.py -e old
        run mine.py -e old -a n=1
        run mine.py -e old --grep (
        run mine.py -e old --function f
        run issue.md -e old --backend local
        run issue.md -e old
        run own.py -e old -- x
        run mine.py -e old -e new --epochs 2
        run mine.py 2.12 tf2.15
        run empty.py -e old
        run unclosed.py -e old
    """,
    "bisect": """
        bisect
        bisect seven
        bisect -s ways -a way=a,b
        bisect -s ways --budget 5
        bisect absent.py
        bisect absent.py -s ways
        bisect -s ways --with data
        bisect -s ways --good tf9 --bad new
        bisect -s ways --good new --bad new
        bisect -s ways --bad old
        bisect -s ways --good new
        bisect -s ways --bad new --find-fix
        bisect -s ways --good new --package numpy
        bisect --resume elsewhere
        bisect T#7 --resume elsewhere
        bisect --resume elsewhere --json
    """,
    "scenarios": """
        scenarios new
        scenarios new ways
        scenarios new 2fast
        scenarios new my-issue
        scenarios new "My Issue.py"
        scenarios new scenarios
        scenarios new images/mine.py
        scenarios new 'my images/mine.py'
        scenarios new class
        scenarios new _hidden
        scenarios new numpy
        scenarios new random
        scenarios new mine --directory none
        scenarios check wasy
        scenarios show wasy
        scenarios show broken
    """,
    "reports": """
        report
        report results/none
        report results/dead
        report RUN --full --format md
        report RUN --output report.json
        report RUN --format json --output docker-bake.hcl/report.json
        report RUN --format json --output images
        report RUN --format json --output none/report.json
        report RUN --format json --output .
        report RUN --format json --output ""
        compare
        compare RUN
        compare RUN RUN
        compare RUN RUN RUN
        compare tf2.12 tf2.15
        bundle .
        repro T#40261 --suite few
        matrix --base HEAD -s own.py
        matrix -s ways -a way=fine -e new --backend local --trust --exit-verdict
    """,
    "images": """
        images build old --device gpu
        images lock old --device gpu
        images build --push
        images build
        images verify tf3
    """,
}


@pytest.fixture
def project(harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """Return a project with a suite, a user's scenario, plain scripts, a broken scenario, and runs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    harness.environ |= {**NOWHERE, "REGISTRY": "", "GIT_CEILING_DIRECTORIES": "/"}
    texts = {
        "scenarios/suites.toml": '[few]\n[[few.select]]\nscenario = "ways"\nway = ["fine"]\n',
        "scenarios/broken.py": SCENARIO.replace("title =", "titel =").replace('way = "signals"', 'way = "sings"'),
        "own.py": SCENARIO,
        "mine.py": "x = 1\n",
        "issue.md": "```python\nx = 1\n```\n",
        "wrong.py": "x = = 1\n",
        "empty.py": "# nothing\n",
        "unclosed.py": '# /// script\n# dependencies = [\n#\n# [tool.harness]\n# title = "x"\n# ///\n',
        "results/dead/launches.jsonl": "",
    }
    for name, text in texts.items():
        path = harness.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stored(tmp_path / "runs", *example())
    return harness


@pytest.mark.parametrize("part", COMMANDS)
def test_a_wrong_command_line_gets_a_sentence_and_its_exit_code(project, tmp_path, part, snapshot):
    places = {"LONG": "a" * 300, "RUN": str(next((tmp_path / "runs").iterdir()))}
    before = {path for path in project.root.rglob("*") if "__pycache__" not in path.parts}
    errors = {}
    for line in COMMANDS[part].strip().splitlines():
        words = [places.get(word, word) for word in shlex.split(line)]
        process = project.call(*words)
        text = process.stdout + process.stderr
        for name, place in {**places, "PROJECT": str(project.root), "OUTSIDE": str(tmp_path)}.items():
            text = text.replace(place, name)
        errors[line.strip()] = f"{process.returncode} {re.sub('a{30,}', 'LONG', text).strip()}"
    after = {path for path in project.root.rglob("*") if "__pycache__" not in path.parts}
    assert after - before == set()
    assert errors == snapshot


@pytest.mark.slow
def test_a_process_ends_with_the_exit_code_of_its_command(project):
    """The other codes, and the other commands, have processes in the files of their commands."""
    codes = {
        "history list": 0,
        "fleet name office": 0,
        "images list": 0,
        "scenarios check ways": 0,
        "completion bash": 0,
        "bisect": 2,
        "merge results/none": 2,
        "matrix --suite few -a way=raises": 3,
        "images build": 4,
    }
    assert {line: project(*line.split()).returncode for line in codes} == codes


def test_a_current_folder_that_was_removed_is_an_error_of_the_user(tmp_path, monkeypatch, capfd):
    folder = tmp_path / "removed"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    monkeypatch.setattr("sys.argv", ["harness", "images", "list"])
    with pytest.raises(SystemExit) as ending:
        main()
    assert (ending.value.code, "current folder" in capfd.readouterr().err) == (2, True)


@pytest.mark.slow
def test_a_closed_standard_stream_changes_no_exit_code_and_gets_a_sentence(tmp_path):
    for options, closed, code in (
        ("--version", ">&-", 0),
        ("--help", "<&- >&-", 0),
        ("scenarios list", ">&-", 0),
        ("report none", "<&- >&- 2>&-", 2),
        ("--version", "2>&-", 0),
    ):
        command = f"{shlex.quote(sys.executable)} -m harness {options} {closed}"
        process = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert process.returncode == code, process.stderr
        has_sentence = process.stderr.startswith("harness: Standard output is closed")
        assert has_sentence == (closed.endswith(" >&-") or closed == ">&-"), process.stderr
        assert process.stderr.count("\n") == has_sentence

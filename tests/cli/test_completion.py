"""What the shells complete; in bash, fish and zsh themselves, too."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import COMMANDS, app
from harness.cli.completion import VARIABLE, Shell
from harness.cli.completion_server import complete_line
from harness.environments.catalog import load_environments
from harness.model.settings import SETTINGS, values
from harness.project import Project
from harness.store.folder import RunFolder
from tests.cli.conftest import Harness
from tests.lacking import ALL, lacking
from tests.runs import run

#: Sets what readline sets: its words end at spaces and at `=`.
BASH = """
source /dev/stdin <<<"$SCRIPT"
compopt() { :; }
COMP_LINE=$1 COMP_POINT=${#1}
mapfile -t COMP_WORDS < <(sed -E 's/=/\\n=\\n/g; s/ +/\\n/g' <<<"$1")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_harness_completion harness
printf '%s\\n' "${COMPREPLY[@]}"
"""

FISH = "echo $SCRIPT | source; complete -C $argv[1]"

#: Types the line and TAB into a shell of its own, and prints what stands on its line then. A quoted marker is not one.
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'autoload -Uz compinit; compinit -u -D; eval "$SCRIPT"'
zpty -w shell 'finish() { print -r -- $BUFFER >$OUT; print do""ne; }; zle -N finish; bindkey "^Y" finish; print re""ady'
zpty -r -m shell seen '*ready*'
zpty -w -n shell "$1"$'\\t\\C-y'
zpty -r -m shell seen '*done*'
zpty -d shell
cat $OUT
"""


@pytest.fixture
def here(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """A project with a suite and two runs, in which this process stands."""
    monkeypatch.chdir(harness.root)
    (harness.root / "scenarios" / "suites.toml").write_text(
        '[fast]\ntitle = "The fast ones"\nselect = [{ scenario = "ways", speed = ["fast"] }]\n'
    )
    for name in ("2026-11-21", "2026-11-22"):
        RunFolder.create(Path("results"), name).write_run(run())
    return harness


def test_a_word_becomes_what_there_is(here):
    words = {
        "harness mat": ["matrix"],
        "harness images bui": ["build"],
        "harness none ": [],
        "harness matrix --fail": ["--fail-on"],
        "harness matrix --backend d": ["docker"],
        "harness matrix --backend=d": ["--backend=docker"],
        "harness matrix -e ": ["old", "new"],
        "harness matrix --reference n": ["new"],
        "harness images build old ": ["old", "new"],
        "harness doctor -e o": ["old"],
        "harness profile -s w": ["ways"],
        "harness matrix -s ./scenarios/": ["./scenarios/kit/", "./scenarios/ways.py"],
        "harness scenarios show ": ["ways"],
        "harness matrix --suite ": ["fast"],
        "harness matrix -a ": [*(f"{name}=" for name in SETTINGS), "way=", "speed="],
        "harness matrix -s none -a w": [],
        "harness matrix -a xla=": [f"xla={value}" for value in values("xla")],
        "harness matrix -a xla=on,": ["xla=on,off", "xla=on,default"],
        "harness matrix -s 'w*' -a sp": ["speed="],
        "harness matrix --suite fast -a speed=": ["speed=fast", "speed=slow"],
        "harness matrix -a way=fine,ex": ["way=fine,exits"],
        "harness matrix -a speed=slow,": ["speed=slow,fast"],
        "harness matrix -e old,": ["old,new"],
        "harness doctor -e old,n": ["old,new"],
        "harness matrix -s other,": ["other,ways"],
        "harness matrix -s other,scenarios/w": ["other,scenarios/ways.py"],
        "harness matrix -s ways,other -a sp": ["speed="],
        "harness matrix -a 'way=gar": ["way=garbage"],
        "harness report ": ["results/2026-11-22", "results/2026-11-21"],
        "harness compare results/2026-11-21 results/": ["results/2026-11-22", "results/2026-11-21"],
        "harness compare a b ": [],
        "harness report --format j": ["json", "junit"],
        "harness history report --format ": ["html", "md"],
        "harness matrix --results elsewhere --resume ": [],
        "harness report ./res": ["./results/"],
        "": [name for names in COMMANDS.values() for name in names],
    }
    completed = {line: [entry.split("\t")[0] for entry in complete_line(app, line).splitlines()] for line in words}
    assert completed == words


def test_a_word_has_its_help_and_what_cannot_be_read_completes_to_nothing(here):
    assert complete_line(app, "harness matrix -e o") == "old\tTensorFlow 1.0.0"
    assert complete_line(app, "harness matrix -a s") == "speed=\tfast, slow"
    (here.root / "docker-bake.hcl").write_text("variable {")
    (here.root / "scenarios" / "suites.toml").write_text("[")
    (here.root / "scenarios" / "ways.py").write_text("")
    for option in ("-e ", "--suite ", "-a w"):
        assert complete_line(app, f"harness matrix {option}") == ""


@pytest.mark.slow
@pytest.mark.parametrize("shell", list(Shell))
def test_a_shell_completes(here, shell):
    if shutil.which(shell) is None:
        lacking(f"there is no {shell}", ALL)
    script = {Shell.BASH: BASH, Shell.FISH: FISH, Shell.ZSH: ZSH}[shell]
    plain = {Shell.BASH: ["--norc"], Shell.FISH: ["--no-config"], Shell.ZSH: ["-f"]}[shell]
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SCRIPT": here.call("completion", shell).stdout,
        "OUT": str(here.root / "line"),
    }
    for line, completed in (
        ("harness matrix -s ways -a speed=s", "speed=slow"),
        ("harness matrix -a way=fine,ex", "way=fine,exits"),
        ("harness matrix -e old,", "old,new"),
    ):
        # bash passes the line as $1, the others too, after a name for $0
        command = [shell, *plain, "-c", script, *([] if shell is Shell.FISH else [shell]), line]
        process = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        word = line.rpartition(" ")[2]
        # what bash replaces begins after the last `=`
        expected = {
            Shell.BASH: completed.removeprefix(word[: word.rfind("=") + 1]),
            Shell.FISH: completed,
            Shell.ZSH: line.removesuffix(word) + completed,
        }[shell]
        assert process.stdout.split("\t")[0].strip() == expected, process.stderr


def test_a_reader_that_leaves_early_is_no_error(here):
    command = f"{sys.executable} -m harness | :"
    environ = {**os.environ, VARIABLE: "harness "}
    process = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, text=True, check=True)
    assert process.stderr == ""


def test_nothing_heavy_is_imported(here):
    heavy = "{'pydantic', 'scipy', 'numpy', 'docker', 'jinja2', 'rich', 'altair', 'hcl2', 'requests', 'packaging'}"
    lines = ("harness ", "harness matrix -e ", "harness matrix -a ", "harness matrix --suite ", "harness report ")
    code = f"""
import os, sys
from harness.cli import main
for line in {lines}:
    os.environ["{VARIABLE}"] = line
    main()
print(*{heavy} & sys.modules.keys())
"""
    load_environments(Project.find())
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == ""

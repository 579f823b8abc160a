"""`harness run`."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from harness import session
from harness.cli import options
from harness.cli.dryrun import show_plan
from harness.cli.messages import confirm_on_terminal, say
from harness.model.defaults import MOST_ROUNDS, ROUNDS, SCRIPT_BUDGET
from harness.model.errors import UsageError
from harness.model.texts import counted, joined
from harness.session.options import Option, OutputOption, format_length
from harness.session.request import SLOTS, Request

#: A release that was probably meant as an environment.
_RELEASE = re.compile(r"(tf)?\d\.\d+(\.\d+)?|latest|tf-nightly(-cpu)?")

#: Help texts of options that mean less in this command than in `harness matrix`.
_TEXTS = {
    "environments": "Environments or globs, such as tf1.14,tf2.*, or a file such as requirements.txt. To list them: "
    "`harness images list`. The first one is the baseline.",
    "rounds": f"The number of launches in each environment. Default: at most {MOST_ROUNDS} with --precision or "
    f"--budget, otherwise {ROUNDS}, or fewer that take about {format_length(SCRIPT_BUDGET)} and are enough for a "
    "verdict.",
    "budget": "End after about this time, such as 10m, but measure at least one round.",
    "axes": "Values of an environment variable, such as TF_ENABLE_ONEDNN_OPTS=0,1, or of a setting, such as "
    "xla=on,off. The axis cpus sets the number of cores: cpus=1,2.",
    "slots": SLOTS,
}


ScriptArgument = Annotated[
    Path,
    typer.Argument(
        help="A Python file, a notebook, a saved issue, or a link to an issue, a gist or a file on GitHub.",
        show_default=False,
    ),
]
Grep = Annotated[
    list[str] | None,
    Option(
        "Compare the printed numbers that the groups in this regular expression match. Example: 'took (\\S+) ms'.",
        metavar="REGEX",
    ),
]
Compare = Annotated[
    list[str] | None,
    Option(
        "Compare two printed numbers in each environment. Pass their names in --grep. Example: half/single.",
        metavar="ONE/OTHER",
    ),
]
Function = Annotated[list[str] | None, Option("Time each call of this function as a step.", metavar="NAME")]
Scan = Annotated[
    list[str] | None,
    Option("Run the script with each value of one of its own options. Example: epochs=1,3", metavar="OPTION=VALUE,..."),
]
With = Annotated[
    list[Path] | None,
    Option(
        "Copy this file or folder to the launches, at the same path relative to the script. A launch can't read other "
        "files.",
        ("--with",),
        metavar="PATH",
    ),
]
Stdin = Annotated[Path | None, Option("The file to use as standard input. Default: no input.", metavar="FILE")]
CompatV1 = Annotated[
    bool,
    Option(
        "Run a script for TensorFlow 1 in every release: through tensorflow.compat.v1, with the behavior of version 2 "
        "off."
    ),
]
FailOn = Annotated[
    options.FailOn | None,
    OutputOption("Exit with 5 if the script is slower than in the baseline, and with 1 if the script failed."),
]


@options.of(Request, without=(*options.PRESET_FIELDS, "warmup", "measure"), texts=_TEXTS, configured=True)
def run(
    request: Request,
    *,
    script: ScriptArgument,
    arguments: options.ScriptArguments = None,
    grep: Grep = None,
    compare: Compare = None,
    function: Function = None,
    scan: Scan = None,
    with_: With = None,
    stdin: Stdin = None,
    compat_v1: CompatV1 = False,
    fail_on: FailOn = None,
    exit_verdict: options.ExitVerdict = False,
    wait: options.Wait = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
) -> None:
    """Measure a plain script or notebook in several environments.

    It compares the time, the memory, the output and the exit status.
    """
    from harness.scenarios.scripts import Script  # noqa: PLC0415 - not needed for --help

    _refuse_releases(script, arguments or (), request.environments)
    plain_script = Script(
        path=script,
        arguments=arguments or (),
        grep=grep or (),
        compare=compare or (),
        functions=function or (),
        scan=session.scripts.read_scan(scan or ()),
        files=with_ or (),
        stdin=stdin,
        compat_v1=compat_v1,
    )
    script_request, sentences = session.scripts.make_request(plain_script, request)
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not compat_v1 and is_terminal and (names := session.scripts.find_v1_names(script_request)):
        say(f"{names}. `tensorflow.compat.v1` has them.")
        if confirm_on_terminal("Run the script through tensorflow.compat.v1 in all environments?", default=True):
            plain_script = replace(plain_script, compat_v1=True)
            script_request, sentences = session.scripts.make_request(plain_script, request)
    for sentence in sentences:
        say(sentence)
    if dry_run:
        raise typer.Exit(show_plan(script_request, json=json))
    from harness.cli import running  # noqa: PLC0415 - as in `matrix`

    raise typer.Exit(running.run(script_request, wait=wait, json=json, fail_on=fail_on, exit_verdict=exit_verdict))


def _refuse_releases(script: Path, arguments: Sequence[str], environments: Sequence[str]) -> None:
    """Raise UsageError for releases that were probably meant as environments."""
    if arguments and not environments and all(map(_RELEASE.fullmatch, arguments)):
        raise UsageError(
            f"No environment is specified: {joined(arguments)} would be {counted(len(arguments), 'argument')} of the "
            "script.",
            f"Use -e: harness run {script} -e {','.join(arguments)}",
        )

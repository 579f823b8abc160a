"""What is pasted upstream of a run: an issue's text in the order of the form, and files that need nothing of this."""

import getpass
import json
import platform
import re
import shlex
import tokenize
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from harness import shipped
from harness.analysis.claims import Outcome
from harness.analysis.environments import pins
from harness.analysis.results import Results
from harness.catalog.project import Project
from harness.files import write_atomically
from harness.model.environment import TENSORFLOW, Environment, installed
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.run import Run
from harness.model.scenario import PEAK, PRINTED, STEP
from harness.report import format
from harness.report.escape import fenced
from harness.session import read
from harness.store import codec
from harness.upstream.standalone import standalone
from harness.upstream.subject import Side, Subject, moved, nightlies, subject

#: The most characters that an issue takes, with some left for what is written above it.
MOST = 60_000

#: Whose forms are known.
TRACKERS = ("tensorflow", "keras")

_NONE = "none"

#: Names of users and machines that name nobody.
_NOBODY = {"", "root", "user", "ubuntu", "debian", "runner", "admin", "localhost"}


def write(folder: Path, tracker: str) -> list[Path]:
    """Write the bundle of a run into its folder, as files and as one zip; returns the issue's text and the zip.

    Raises UsageError for a tracker that there is not, a folder that is no run's, and a run of which nothing can be
    told; NothingSelectedError where it has no number; CannotRunHereError where the files cannot be written.
    """
    if tracker not in TRACKERS:
        raise UsageError(f"There is no form for {tracker!r}.", f"--for takes {' and '.join(TRACKERS)}.")
    results = read(folder)
    if results.run.plan.profile_calls:
        raise UsageError(f"{folder} holds profiles, and no times to tell.", "Name a run of harness matrix.")
    made = files(results, tracker, folder)
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in made.items():
            # one time for all: the same run makes the same file
            archive.writestr(zipfile.ZipInfo(f"bundle/{name}", (1980, 1, 1, 0, 0, 0)), text)
    try:
        (folder / "bundle").mkdir(exist_ok=True)
        for name, text in made.items():
            write_atomically(folder / "bundle" / name, text)
        write_atomically(folder / "bundle.zip", packed.getvalue())
    except OSError as error:
        raise CannotRunHereError(f"{folder}/bundle cannot be written: {error.strerror}.") from None
    return [folder / "bundle" / "issue.md", folder / "bundle.zip"]


def files(results: Results, tracker: str, folder: Path) -> dict[str, str]:
    """The files of a bundle, by name, with nothing in them that names this machine or its user."""
    about, run = subject(results), results.run
    hide = _hiding(folder)
    code = _code(run, about)
    code = hide(code, _words(code))
    required = {f"requirements-{each.name}.txt": _requirements(run, each) for each in about.environments}
    made = {
        "repro.py": code,
        "repro.ipynb": _notebook(about, code, required),
        **required,
        "run.json": json.dumps(_plain(json.loads(codec.dump(run)), hide), indent=2) + "\n",
    }
    fields = {key: hide(text) for key, text in _fields(results, about).items()}
    return {"issue.md": _issue(fields, hide(_log(about)), code, _ORDERS[tracker]), **made}


def _hiding(folder: Path) -> Callable[..., str]:
    """A function that takes this machine's folders, its name and its user's out of a text, but for some words."""
    places = [Project.find().root, folder.absolute(), Path.cwd(), Path.home(), shipped.FOLDER]
    paths = {str(path) for each in places for path in (each, each.resolve()) if len(path.parts) > 1}
    names = {platform.node(), platform.node().partition(".")[0]}
    with suppress(OSError, KeyError):
        names.add(getpass.getuser())

    def hide(text: str, but: Collection[str] = ()) -> str:
        for path in sorted(paths, key=len, reverse=True):
            text = re.sub(re.escape(path) + r"(?![\w.-])/?", "", text)
        for name in sorted(names - _NOBODY - set(but), key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "(hidden)", text)
        return text

    return hide


def _words(code: str) -> set[str]:
    """The names that a Python program has: one that is a user's too must stay."""
    tokens = tokenize.generate_tokens(StringIO(code).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def _plain(value: Any, hide: Callable[[str], str]) -> Any:
    """A JSON value without paths of a machine: of an absolute one the last part is left."""
    if isinstance(value, dict):
        return {key: _plain(each, hide) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, hide) for each in value]
    if isinstance(value, str):
        is_path = re.fullmatch(r"(~|/|\.\.?/)[^\n]*", value)
        return hide(Path(value).name if is_path else value)
    return value


def _code(run: Run, about: Subject) -> str:
    """repro.py."""
    scenario = about.worse.scenario
    text = run.scripts.get(scenario.name)
    project = Project.find()
    if text is None:
        paths = [each / f"{scenario.name}.py" for each in project.scenario_folders]
        found = next((path for path in paths if path.is_file()), None)
        if found is None:
            raise UsageError(
                f"The run's scenario {scenario.name} is not in this project, so there is no code to paste.",
                "Set HARNESS_PROJECT to the project in which it was measured.",
            )
        text = found.read_text(encoding="utf-8")
    sides = [
        {
            "label": about.label(side),
            "arguments": {
                axis: value
                for axis, value in side.cell.axes.items()
                if axis not in scenario.settings and axis not in scenario.environ and axis in scenario.axes
            },
            "environ": {axis: side.cell.axes[axis] for axis in scenario.environ if side.cell.axes.get(axis)},
        }
        for side in about.sides
    ]
    of = STEP if about.of.startswith(PRINTED) or (scenario.script and about.of != PEAK) else about.of
    kit = project.root / "scenarios" / "kit"
    kit = kit if kit.is_dir() else shipped.FOLDER / "scenarios" / "kit"
    head = f"{scenario.title.rstrip('.')}.\n\nMeasured: {_sentence(about)}\n\n{_how_to_run(about)}"
    return standalone(scenario, text, kit, sides, of=of, about=head)


def _sentence(about: Subject) -> str:
    """What was measured, in a sentence."""
    return f"{about.sentence} ({', '.join(about.shared)})." if about.shared else f"{about.sentence}."


def _how_to_run(about: Subject) -> str:
    """The lines that make the environments and run repro.py."""
    lines = []
    for each in about.environments:
        lines += _environment_lines(each)
    pythons = [f"{side.environment.name}/bin/python" for side in about.sides]
    lines.append(" ".join([pythons[0], "repro.py", *(pythons if len(about.environments) > 1 else [])]))
    return "\n".join(f"    {line}" for line in lines)


def _environment_lines(environment: Environment) -> list[str]:
    name, file = environment.name, f"requirements-{environment.name}.txt"
    return [
        f"uv venv --seed --python {environment.python} {name}",
        f"uv pip install --python {name} $(grep -E '^(setuptools|wheel)==' {file})",
        f"uv pip install --python {name} --no-deps --no-build-isolation -r {file}",
    ]


def _requirements(run: Run, environment: Environment) -> str:
    return "".join(f"{name}=={version}\n" for name, version in sorted(pins(run, environment.name).items()))


def _docker(run: Run, about: Subject) -> list[str]:
    """The lines that run the sides in containers: one for each environment."""
    if len(about.environments) == 1:
        return [_container(run, about.worse, "python repro.py")]
    return [_container(run, side, f"python repro.py --only {place}") for place, side in enumerate(about.sides)]


def _container(run: Run, side: Side, command: str) -> str:
    file = f"requirements-{side.environment.name}.txt"
    install = (
        f'pip install -q $(grep -E "^(setuptools|wheel)==" {file}) && '
        f"pip install -q --no-deps --no-build-isolation -r {file} && {command}"
    )
    gpus = ["--gpus", "all"] if run.plan.limits.gpus else []
    image = side.environment.gpu_image or f"python:{side.environment.python}-slim-bookworm"
    return " ".join(["docker run --rm", *gpus, '-v "$PWD":/bundle -w /bundle', image, "sh -c", shlex.quote(install)])


def _notebook(about: Subject, code: str, required: Mapping[str, str]) -> str:
    """A notebook that makes the environments and runs repro.py, in Colab or elsewhere; no line of it is a magic."""
    texts = {"repro.py": code, **required}
    environments = {each.name: each.python for each in about.environments}
    bin_python = [f"{side.environment.name}/bin/python" for side in about.sides]
    cells = [
        ("markdown", f"**{about.worse.scenario.title}**\n\n{_sentence(about)}\n\nRun all cells."),
        (
            "code",
            f"# the script, and the packages of each environment\nFILES = {json.dumps(texts, indent=1)}\n"
            "for name, text in FILES.items():\n    with open(name, 'w', encoding='utf-8') as file:\n"
            "        file.write(text)",
        ),
        ("code", _MAKE.replace("@environments@", repr(environments))),
        (
            "code",
            f"run({', '.join(map(repr, [bin_python[0], 'repro.py', *(bin_python if len(environments) > 1 else [])]))})",
        ),
    ]
    made = []
    for number, (kind, text) in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell{number}", "metadata": {}, "source": text}
        made.append({**cell, "execution_count": None, "outputs": []} if kind == "code" else cell)
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


#: The cell that makes virtual environments: the release's own Python is rarely the notebook's.
_MAKE = """\
import importlib.util
import subprocess
import sys


def run(*command):
    print("$", *command, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    print(done.stdout)
    done.check_returncode()


if importlib.util.find_spec("uv") is None:
    run(sys.executable, "-m", "pip", "install", "--quiet", "uv")
for name, python in @environments@.items():
    packages = "requirements-" + name + ".txt"
    with open(packages) as file:
        tools = [line for line in file.read().split() if line.startswith(("setuptools==", "wheel=="))]
    uv = [sys.executable, "-m", "uv"]
    run(*uv, "venv", "--quiet", "--allow-existing", "--python", python, name)
    if tools:
        run(*uv, "pip", "install", "--quiet", "--python", name, *tools)
    run(*uv, "pip", "install", "--quiet", "--python", name, "--no-deps", "--no-build-isolation", "-r", packages)"""


def _issue(fields: Mapping[str, str], log: str, code: str, order: Sequence[tuple[str, str]]) -> str:
    """The issue's text: the form's fields in its order; what is too long for it is left to the attachment."""
    long = {"code": fenced(code, "python"), "log": fenced(log, "text")}
    for left_out in ((), ("log",), ("log", "code")):
        shown = {**fields, **long, **dict.fromkeys(left_out, "It is in the attachment, bundle.zip.")}
        shown["code"] += f"\n\n{fields['run']}"
        text = "\n\n".join(f"### {title}\n\n{shown[key]}" for title, key in order) + "\n"
        if len(text) < MOST:
            break
    return text


_ORDERS: Mapping[str, Sequence[tuple[str, str]]] = {
    # .github/ISSUE_TEMPLATE/tensorflow_issue_template.yml
    "tensorflow": (
        ("Issue type", "type"),
        ("Have you reproduced the bug with TensorFlow Nightly?", "nightly"),
        ("Source", "source"),
        ("TensorFlow version", "version"),
        ("Custom code", "custom"),
        ("OS platform and distribution", "os"),
        ("Mobile device", "not here"),
        ("Python version", "python"),
        ("Bazel version", "not here"),
        ("GCC/compiler version", "not here"),
        ("CUDA/cuDNN version", "cuda"),
        ("GPU model and memory", "gpu"),
        ("Current behavior?", "current"),
        ("Expected behavior", "expected"),
        ("Standalone code to reproduce the issue", "code"),
        ("Relevant log output", "log"),
    ),
    # .github/ISSUE_TEMPLATE/20-performance-issue.md, as it was until the folder was left out
    "keras": (
        ("Have I written custom code", "custom"),
        ("OS platform and distribution", "os"),
        ("TensorFlow installed from", "source"),
        ("TensorFlow and Keras version", "versions"),
        ("Reproduced with the nightly?", "nightly"),
        ("Python version", "python"),
        ("Bazel version", "not here"),
        ("CUDA/cuDNN version", "cuda"),
        ("GPU model and memory", "gpu"),
        ("Exact command to reproduce", "command"),
        ("Describe the current behavior", "current"),
        ("Describe the expected behavior", "expected"),
        ("Standalone code to reproduce the issue", "code"),
        ("Source code / logs", "log"),
    ),
}


def _fields(results: Results, about: Subject) -> dict[str, str]:
    run, environments = results.run, about.environments
    gpus = [gpu.name for launch in results.launches for gpu in launch.gpus] if run.plan.limits.gpus else []
    system = run.host.get("system", "") if run.backend.name == "local" else "Debian 12, in a container"
    kernel, cpu = run.host.get("kernel", ""), run.host.get("cpu", "")
    memory = run.host.get("memory_bytes")
    cuda = [f"CUDA {each.cuda}, cuDNN {each.cudnn} ({each.name})" for each in environments if each.cuda and gpus]
    commands = _how_to_run(about)
    return {
        "type": "Performance",
        "nightly": _nightly(results, about),
        "source": "binary",
        "version": _versions(run, environments, ["tensorflow"]),
        "versions": _versions(run, environments, ["tensorflow", "keras"]),
        "custom": "Yes: the code below.",
        "os": ", ".join(filter(None, [system, kernel, cpu, f"{format.bytes_(memory)} of memory" if memory else ""])),
        "python": ", ".join(dict.fromkeys(each.python for each in environments)),
        "cuda": "; ".join(cuda) or _NONE,
        "gpu": ", ".join(dict.fromkeys(gpus)) or f"{_NONE}: it was measured on the CPU",
        "not here": _NONE,
        "current": _current(results, about),
        "expected": _expected(about),
        "command": fenced(commands, "shell"),
        "run": _again(run, about, commands),
    }


def _versions(run: Run, environments: Sequence[Environment], packages: Sequence[str]) -> str:
    told = []
    for each in environments:
        has = pins(run, each.name)
        release = next((name for name in TENSORFLOW if name in has), "tensorflow")
        known = [
            f"{release if package == 'tensorflow' else package} {version}"
            for package in packages
            if (version := installed(package, has) or (each.tensorflow if package == "tensorflow" else ""))
        ]
        told.append(" and ".join(known) + (f" ({each.name})" if len(environments) > 1 else ""))
    return "; ".join(told)


def _nightly(results: Results, about: Subject) -> str:
    """Whether the newest nightly of the run shows it too."""
    for name in reversed(nightlies(results)):
        there = moved(results, about, name)
        if there is not None:
            version = installed("tensorflow", pins(results.run, name))
            return f"{'Yes' if there.is_shown else 'No'}, with {version}: {_sentence(there)}"
    return "No: no nightly was measured."


def _current(results: Results, about: Subject) -> str:
    run = results.run
    lines = [_sentence(about), ""]
    what = "time per step" if about.of == STEP else about.of
    lines += [f"| | {what} | rounds |", "| --- | --- | --- |"]
    for side in about.sides:
        interval = side.centre.interval
        between = f" (95 %: {about.amount(interval.low)} to {about.amount(interval.high)})" if interval else ""
        lines.append(f"| {about.label(side)} | {about.amount(side.centre.value)}{between} | {len(side.values)} |")
    lines += [
        "",
        "Each round is a fresh process of each side, in an order that is shuffled; the ratio is of the rounds' pairs.",
    ]
    if about.ratio is not None and about.ratio.interval is None:
        lines.append("Of one round there is no interval: measure more of them before this is pasted.")
    elif about.better is not None and not about.is_shown:
        lines.append(f"It is not shown that {about.label(about.worse)} takes longer.")
    lines += ["", *_claimed(about)] if about.claim else []
    lines += ["", f"Measured with harness {run.harness}, run {run.id}."]
    return "\n".join(lines)


def _claimed(about: Subject) -> list[str]:
    """What the issue says, and what of it was found in which environment."""
    told = about.claim
    assert told
    claim = told.claim
    low, high = claim.range
    size = f"{low:g} to {high:g} times" if claim.ratio else f"{about.amount(low)} to {about.amount(high)}"
    lines = [f"{claim.issue.url} says: {claim.reported} ({size}; {claim.hardware or 'hardware not told'}).", ""]
    lines += ["| environment | outcome | measured |", "| --- | --- | --- |"]
    for place in told.places:
        if place.outcome is Outcome.NOT_MEASURED:
            continue
        shown = ""
        if place.estimate is not None:
            number = format.ratio if claim.ratio else lambda each: about.amount(each.value)
            shown = number(place.estimate)
        lines.append(f"| {place.environment} | {place.outcome} | {shown or place.why} |")
    if told.fixed:
        lines += ["", f"It is not seen from {told.fixed.environment} on."]
    return lines


def _expected(about: Subject) -> str:
    if about.better is None:
        return "That it does not take that much."
    return f"{about.label(about.worse)} takes no longer than {about.label(about.better)}."


def _again(run: Run, about: Subject, commands: str) -> str:
    """How repro.py is run: in virtual environments, and in containers."""
    parts = [
        "`repro.py` is the code above; the packages of each environment are below, as `requirements-NAME.txt`.",
        fenced(commands, "shell"),
        "In containers:",
        fenced("\n".join(_docker(run, about)), "shell"),
    ]
    settings = [f"{axis}={about.worse.cell.axes[axis]}" for axis in about.worse.scenario.settings]
    if settings:
        parts.append(f"Not in `repro.py`: the setting {', '.join(settings)}, under which it was measured.")
    for each in about.environments:
        text = fenced(_requirements(run, each), "text")
        parts.append(f"<details><summary>requirements-{each.name}.txt</summary>\n\n{text}\n\n</details>")
    return "\n\n".join(parts)


def _log(about: Subject) -> str:
    """What each round gave."""
    numbers = sorted({number for side in about.sides for number in side.values})
    return "\n".join(
        f"round {number}: "
        + "; ".join(
            f"{about.label(side)}: {about.amount(side.values[number])}" for side in about.sides if number in side.values
        )
        for number in numbers
    )

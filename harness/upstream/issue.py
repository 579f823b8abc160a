"""The text of an upstream issue, with the fields of the issue form, and the commands that run the script."""

import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.claims import ClaimPlace, ClaimResult
from harness.analysis.environments import pins
from harness.analysis.results import Results
from harness.backends import registry
from harness.model.defaults import LEVEL
from harness.model.environment import TENSORFLOW, Device, Environment, installed
from harness.model.run import Run
from harness.model.scenario import DEVICE, STEP
from harness.model.texts import format_exact
from harness.report import format
from harness.report.blocks import Block, Code, Column, Folded, Line, Table, Text, tabulate
from harness.report.markdown import render_blocks, render_template
from harness.report.sections import measurement
from harness.upstream.bundle_subject import IssueSide, Subject, find_nightlies, move_subject

#: The maximum length of the text in characters. It is below GitHub's limit, so that users can add text.
MOST = 60_000

_NONE = "none"


def issue(results: Results, subject: Subject, code: str, hide: Callable[[str], str]) -> str:
    """Return the text of the issue, in the layout of `templates/issue.md.j2`.

    If the text is too long, the log, or the log and the code, are only in the attachment. `hide` removes the
    names of this machine and its user from each field except `code`.
    """
    texts = {
        key: render_blocks([_hide_names(block, hide) for block in blocks])
        for key, blocks in _make_fields(results, subject).items()
    }
    texts["code"] = render_blocks([Code(code, "python")])
    for omitted_keys in ((), ("log",), ("log", "code")):
        attached = dict.fromkeys(omitted_keys, "It is in the attachment, bundle.zip.")
        text = render_template("issue.md.j2", **{**texts, **attached})
        if len(text) < MOST:
            break
    return text


def _hide_names(block: Block, hide: Callable[[str], str]) -> Block:
    """Return the block without names. In rendered text, `hide` would miss names with escaped characters."""
    match block:
        case Text(words=str(words)):
            return replace(block, words=hide(words))
        case Code():
            return replace(block, text=hide(block.text))
        case Folded():
            return replace(block, blocks=[_hide_names(child, hide) for child in block.blocks])
        case Table():
            lines = [[replace(entry, text=hide(entry.text)) for entry in line.entries] for line in block.lines]
            return replace(block, lines=[Line(entries) for entries in lines])
    raise TypeError(f"an issue can't have a {type(block).__name__}")


def sentence(subject: Subject) -> str:
    """Return the result in a sentence."""
    return f"{subject.clause} ({', '.join(subject.shared)})." if subject.shared else f"{subject.clause}."


def list_commands(subject: Subject) -> str:
    """Return the commands that run repro.py, in virtual environments and in containers."""
    venv, docker = (
        textwrap.indent("\n".join(lines), " " * 4)
        for lines in (_list_venv_commands(subject), _list_docker_commands(subject))
    )
    return f"Run it in virtual environments:\n\n{venv}\n\nIn containers:\n\n{docker}"


def _list_venv_commands(subject: Subject) -> list[str]:
    lines = []
    for environment in subject.environments:
        name, file = environment.name, f"requirements-{environment.name}.txt"
        lines += [
            f"uv venv --seed --python {environment.python} {name}",
            f"uv pip install --python {name} $(grep -oE '^(setuptools|wheel)==[^ ]+' {file})",
            f"uv pip install --python {name} --no-deps --no-build-isolation -r {file}",
        ]
    pythons = [f"{side.environment.name}/bin/python" for side in subject.sides]
    return [*lines, " ".join([pythons[0], "repro.py", *(pythons if len(subject.environments) > 1 else [])])]


def requirements(packages: Mapping[str, str]) -> str:
    """Return the text of a requirements file for packages and their versions."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))


def _list_docker_commands(subject: Subject) -> list[str]:
    """Return the commands that run the sides in containers, one for each environment."""
    if len(subject.environments) == 1:
        return [_format_docker_command(subject.worse, "python repro.py")]
    return [
        _format_docker_command(side, f"python repro.py --only {number}") for number, side in enumerate(subject.sides)
    ]


def _format_docker_command(side: IssueSide, command: str) -> str:
    file = f"requirements-{side.environment.name}.txt"
    install = (
        f'pip install -q $(grep -oE "^(setuptools|wheel)==[^ ]+" {file}) && '
        f"pip install -q --no-deps --no-build-isolation -r {file} && {command}"
    )
    gpus = ["--gpus", "all"] if side.cell.device is Device.GPU else []
    image = side.environment.gpu_image or f"python:{side.environment.python}-slim-bookworm"
    return " ".join(["docker run --rm", *gpus, '-v "$PWD":/bundle -w /bundle', image, "sh -c", shlex.quote(install)])


def _make_fields(results: Results, subject: Subject) -> dict[str, Sequence[Block]]:
    """Return the contents of each field but `code`, and of the part `packages` that follows the code."""
    run, environments = results.run, subject.environments
    on_gpu = subject.worse.cell.device is Device.GPU
    gpus = [gpu.name for launch in results.launches for gpu in launch.gpus] if on_gpu else []
    is_contained = any(entry.name == run.backend.name and entry.in_containers for entry in registry.ENTRIES)
    system = "Debian 12, in a container" if is_contained else run.host.get("system", "")
    kernel, cpu = run.host.get("kernel", ""), run.host.get("cpu", "")
    memory = run.host.get("memory_bytes")
    cuda = [
        f"CUDA {environment.cuda}, cuDNN {environment.cudnn} ({environment.name})"
        for environment in environments
        if environment.cuda and gpus
    ]
    texts = {
        "type": "Performance",
        "nightly": _describe_nightly(results, subject),
        "source": "binary",
        "version": _format_versions(run, environments),
        "custom": "Yes: the code below.",
        "os": ", ".join(filter(None, [system, kernel, cpu, f"{format.bytes_(memory)} of memory" if memory else ""])),
        "python": ", ".join(dict.fromkeys(environment.python for environment in environments)),
        "cuda": "; ".join(cuda) or _NONE,
        "gpu": ", ".join(dict.fromkeys(gpus)) or f"{_NONE}: it was measured on the CPU",
        "expected": (
            f"{subject.label(subject.worse)} takes no longer than {subject.label(subject.better)}."
            if subject.better
            else "A smaller value."
        ),
    }
    return {
        **{key: [Text(text)] for key, text in texts.items()},
        "current": list(_describe_current(results, subject)),
        "packages": list(_describe_packages(run, subject)),
        "log": [Code(_format_log(subject), "text")],
    }


def _format_versions(run: Run, environments: Sequence[Environment]) -> str:
    """Return the versions of TensorFlow and Keras: `tensorflow 2.16.1 and keras 3.0.5 (tf2.16)`."""
    texts = []
    for environment in environments:
        pinned = pins(run, environment.name)
        release = next((name for name in TENSORFLOW if name in pinned), "tensorflow")
        versions = [f"{release} {installed('tensorflow', pinned) or environment.tensorflow}"]
        if keras := installed("keras", pinned):
            versions.append(f"keras {keras}")
        texts.append(" and ".join(versions) + (f" ({environment.name})" if len(environments) > 1 else ""))
    return "; ".join(texts)


def _describe_nightly(results: Results, subject: Subject) -> str:
    """Return the answer to the form's question whether the run's newest nightly has the problem too."""
    for name in reversed(find_nightlies(results)):
        nightly_subject = move_subject(results, subject, name)
        if nightly_subject.has_results:
            version = installed("tensorflow", pins(results.run, name))
            return f"{'Yes' if nightly_subject.is_shown else 'No'}, with {version}: {sentence(nightly_subject)}"
    return "No: no nightly was measured."


def _describe_current(results: Results, subject: Subject) -> Iterator[Block]:
    yield Text(sentence(subject))
    columns = [
        Column[IssueSide]("", subject.label),
        Column[IssueSide](
            "time per step" if subject.of == STEP else subject.of,
            lambda side: (
                f"{subject.amount(side.mean.value)}{subject.format_interval(side.mean, LEVEL)}" if side.mean else ""
            ),
            is_number=True,
        ),
        Column[IssueSide]("rounds", lambda side: str(len(side.values)), is_number=True),
    ]
    yield tabulate("Measured", columns, [side for side in subject.sides if side.mean])
    yield Text(measurement.describe(results))
    yield Text(
        "In each round, each side runs in a fresh process, in shuffled order. The ratio compares the two sides of "
        "each round."
    )
    if subject.ratio is not None and subject.ratio.interval is None:
        yield Text("One round isn't enough for a confidence interval. Measure more rounds before you submit this text.")
    elif subject.better is not None and not subject.is_shown:
        yield Text(f"The measurement doesn't establish that {subject.label(subject.worse)} takes longer.")
    if subject.claim:
        yield from _describe_claim(subject, subject.claim)
    yield Text(f"Measured with harness {results.run.harness}, run {results.run.id}.")


def _describe_claim(subject: Subject, claim_result: ClaimResult) -> Iterator[Block]:
    """Yield the claim of the issue, and its outcome in each environment."""
    claim = claim_result.claim
    low, high = claim.range
    claimed_range = (
        f"{format_exact(low)} to {format_exact(high)} times"
        if claim.ratio
        else f"{subject.amount(low)} to {subject.amount(high)}"
    )
    yield Text(f"{claim.issue.url} reports: {claim.reported} ({claimed_range}; {claim.origin or 'hardware unknown'}).")

    def describe_measured(place: ClaimPlace) -> str:
        if place.estimate is None:
            return place.why
        return format.ratio(place.estimate) if claim.ratio else subject.amount(place.estimate.value)

    columns = [
        Column[ClaimPlace]("environment", lambda place: place.environment),
        Column[ClaimPlace]("outcome", lambda place: place.outcome),
        Column[ClaimPlace]("measured", describe_measured),
    ]
    places = [place for place in claim_result.places if place.outcome is not ClaimOutcome.NOT_MEASURED]
    yield tabulate("Outcomes", columns, places)
    if claim_result.fixed:
        fixed_in = claim_result.fixed.environment
        yield Text(f"The difference isn't seen in {fixed_in}: it was {claim_result.fixed_between}.")


def _describe_packages(run: Run, subject: Subject) -> Iterator[Block]:
    """Yield the packages that repro.py needs in each environment, and the settings that it doesn't apply."""
    yield Text(
        "The code above is repro.py. Its first lines show the commands that run it. The packages of each environment "
        "are below, as requirements-NAME.txt."
    )
    cell = subject.worse.cell
    settings = [f"{axis}={cell.axes[axis]}" for axis in subject.worse.scenario.settings if axis != DEVICE]
    if settings:
        yield Text(f"repro.py doesn't apply the setting {', '.join(settings)}, which the measurement used.")
    for environment in subject.environments:
        text = requirements(pins(run, environment.name, cell.device))
        yield Folded(f"requirements-{environment.name}.txt", [Code(text, "text")])


def _format_log(subject: Subject) -> str:
    """Return the values of each round as lines of text."""
    numbers = sorted({number for side in subject.sides for number in side.values})
    return "\n".join(
        f"round {number}: "
        + "; ".join(
            f"{subject.label(side)}: {subject.amount(side.values[number])}"
            for side in subject.sides
            if number in side.values
        )
        for number in numbers
    )

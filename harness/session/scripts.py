"""Requests to measure a plain script or a notebook."""

import fnmatch
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.environments.adhoc import add_requested
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.environments.requested import Files, parse_requested, sort_packages
from harness.environments.requirement_files import PackageFile, read
from harness.model.defaults import ROUNDS, SCRIPT_BUDGET
from harness.model.environment import Device, find_unmet
from harness.model.errors import UsageError
from harness.model.launch import Interleave
from harness.model.scenario import CPUS, OWN, PROGRAM, STEP, WHOLE
from harness.model.settings import find_thread_setting, is_free
from harness.model.texts import joined
from harness.project import Project
from harness.scenarios import links, notebooks, script_checks, script_files, script_sources, scripts
from harness.scenarios.catalog import find_scenario_files, load_scenario
from harness.scenarios.scripts import Script
from harness.session import trust
from harness.session.request import Request

#: The maximum number of files in a script's folder that a message lists.
SHOWN_FILES = 10

#: Well-known packages that are only added on request: they take gigabytes, or need a compiler.
_NOT_ADDED = {"torch", "torchvision", "horovod", "mpi4py", "theano"}

#: The package for scripts with benchmarks for pytest. This version also runs on Python 3.7.
_PYTEST = "pytest-benchmark==4.0.0"


def make_request(script: Script, asked: Request) -> tuple[Request, Sequence[str]]:
    """Return the request that runs a script, and sentences about it, such as omitted parts of a notebook.

    `script` has the path and the options of `harness run`. If the file is a scenario, it runs as a scenario. If it is
    a link, its code is downloaded. If it is a text with several programs, the axis `program` of the request selects
    some of them by their first lines.

    Raises UsageError if no environment is given or a file can't be read, FileError for errors in a file, and
    CannotRunHereError if a link can't be downloaded.
    """
    path = script.path
    if not asked.environments:
        raise UsageError(
            "No environment is specified.",
            f"Example: harness run {path} -e tf2.12 -e tf2.13. To list the environments: harness images list",
        )
    downloads = [f"{path} is downloaded."] if links.is_link(path) else []
    path = links.fetch(path) if downloads else path
    if scripts.has_header(path):
        return _request_scenario(path, asked, script), ()
    project = Project.find()
    asked = replace(asked, environments=_expand_requirements(asked.environments, project))
    source = script_sources.read(path, on_gpu=bool(asked.gpu or asked.gpus))
    programs, choice = _choose_programs(source, path, asked.axes.get(PROGRAM, ()))
    asked = replace(asked, axes={name: values for name, values in asked.axes.items() if name != PROGRAM})
    _check_options(path, asked.axes, script.functions)
    script = replace(
        script,
        path=path,
        name=source.name,
        text=next(iter(programs.values())),
        programs=programs if len(programs) > 1 else {},
        is_command=source.is_command,
    )
    script, sentences = _check_script(script, asked.environments, project)
    script, runner_sentences = scripts.add_runner(script)
    environments, added = _add_needed(script, asked, project)
    asked, sentences = replace(asked, environments=environments), [*sentences, *added]
    kind = trust.get_folder(trust.classify_file(path, project))
    scenario_path = scripts.write(script, kind, [file.stem for file in find_scenario_files(project)])
    sentences = [*downloads, *source.sentences, *choice, *sentences, *runner_sentences]
    return _add_script(asked, scenario_path), [*sentences, *_describe_threads(path, script.text, asked)]


def _request_scenario(path: Path, asked: Request, script: Script) -> Request:
    """Return the request that runs a scenario. Raises UsageError for an option of scripts."""
    script_options = [*script.arguments, *script.grep, *script.compare, *script.functions, *script.scan, *script.files]
    script_options += [script.stdin] if script.stdin else []
    if script_options:
        raise UsageError(
            f"{path} is a scenario (its header has [tool.harness]), so it doesn't accept {script_options[0]!r}.",
            f"Select its axes: harness matrix -s {path} -a AXIS=VALUE",
        )
    return replace(asked, scenarios=[str(path)])


def _add_script(asked: Request, scenario_path: Path) -> Request:
    """Return the request with the generated scenario of a script, and the lengths for scripts."""
    is_open = asked.rounds is None and asked.budget is None and asked.precision is None
    return replace(
        asked,
        scenarios=[str(scenario_path)],
        # each launch runs the script once, so there are no pilots and no interleaving
        warmup=0.0,
        measure=1.0,
        interleave=Interleave.LAUNCHES,
        rounds=ROUNDS if is_open else asked.rounds,
        budget=SCRIPT_BUDGET if is_open else asked.budget,
        budget_is_wish=is_open,
    )


def _describe_threads(path: Path, text: str, asked: Request) -> list[str]:
    """Return a sentence about the number of threads of a script whose launches are pinned to one core."""
    setting = find_thread_setting(text)
    if not setting or asked.cpus or asked.gpu or asked.gpus or CPUS in asked.axes:
        return []
    return [
        f"{path.name} has the setting {setting}, but each launch is pinned to 1 core, so more threads can't make it "
        "faster. To use all cores, pass --cpus all. To compare numbers of cores, pass -a cpus=1,2."
    ]


def read_scan(texts: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the values of each option of the script. Raises UsageError."""
    scan: dict[str, list[str]] = {}
    for text in texts:
        option, _, values = text.strip().lstrip("-").partition("=")
        scan[option] = list(dict.fromkeys(value.strip() for value in values.split(",") if value.strip()))
        if not re.fullmatch(r"[A-Za-z][\w-]*", option, re.ASCII) or len(scan[option]) < 2:
            raise UsageError(
                f"Invalid --scan {text!r}: expected an option of the script and at least two values.",
                "Example: --scan batch_size=32,64 adds --batch_size 32 or --batch_size 64 to the script's arguments.",
            )
    return scan


def _check_script(script: Script, environments: Sequence[str], project: Project) -> tuple[Script, list[str]]:
    """Return a script with its files and its needs, and sentences about files and doubtful names. Raises FileError."""
    texts, path = [*(script.programs.values() or [script.text])], script.path
    listed = script_files.map_files(script.files, path)
    for file in script.files:
        for target, source in script_files.map_files([file], path).items():
            if listed[target].expanduser().resolve() != source.expanduser().resolve():
                text = f"--with {file}: launches would get {listed[target]} and {source} as the same file, {target}."
                raise UsageError(text, "Rename one of the files.")
    beside = script_files.find_beside(path, "\n".join(texts))
    found_files = [file for file in beside if not script_files.map_files([file], path).keys() <= listed.keys()]
    files = [*script.files, *found_files]
    names = {name for file in files for name in (file.stem, file.name)}
    catalog = load_environments(project)
    strict = all(fnmatch.filter(catalog, name) for name in environments)
    sentences = [sentence for text in texts for sentence in script_checks.check_names(path, text, names)]
    needs = [
        need
        for text in texts
        for need in script_checks.list_needs(text, names, strict=strict, compat_v1=script.compat_v1)
    ]
    patterns = notebooks.make_time_patterns(script.text) if len(texts) == 1 else []
    script = replace(script, files=files, needs=needs, grep=[*script.grep, *patterns])
    return script, [*sentences, *_describe_files(found_files, path)]


def _choose_programs(
    source: script_sources.ScriptSource, path: Path, chosen: Sequence[str]
) -> tuple[Mapping[int, str], list[str]]:
    """Return the chosen programs of a file, or all if the file compares them, and a sentence about the choice.

    Raises UsageError if a line isn't the start of a program, or if it isn't clear which program to run.
    """
    programs = source.programs
    lines = list(map(str, programs))
    selected = [line for line in lines if any(fnmatch.fnmatch(line, pattern) for pattern in chosen)]
    to_choose = f"To run one of them: -a {PROGRAM}={lines[0]}. To compare them: -a {PROGRAM}={','.join(lines)}"
    message = f"{path} has {len(programs)} programs, which start at lines {joined(lines)}"
    if len(programs) > 1 and (len(selected) < len(chosen) or not (selected or source.compares)):
        raise UsageError(f"{message}.", to_choose)
    if len(programs) == 1 or selected:
        return {int(line): programs[int(line)] for line in selected or lines}, []
    return programs, [f"{message}. The text compares them, so they are compared. {to_choose.partition('. ')[0]}."]


def _check_options(path: Path, axes: Iterable[str], functions: Sequence[str]) -> None:
    """Raise UsageError for options that a plain script can't have."""
    if not all(name.strip() for name in functions):
        raise UsageError("Invalid --function '': expected the name of a function.", "Example: --function train_step")
    own_axes = [axis for axis in axes if not is_free(axis)]
    if own_axes:
        raise UsageError(
            f"{path} is a plain script, and -a {own_axes[0]} needs a scenario with this axis.",
            "To create a scenario for the code of the script: harness scenarios new NAME",
        )


def _describe_files(files: Sequence[Path], path: Path) -> list[str]:
    """Return a sentence about the files that launches get although nobody listed them, if there are any."""
    names = [file.relative_to(path.absolute().parent).as_posix() for file in files]
    more_files = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    shown = f"{', '.join(names[:SHOWN_FILES])}{more_files}"
    hiding = [name for name in names if name.removesuffix(".py") in sys.stdlib_module_names]
    hidden = f" Files that hide modules of Python's standard library: {joined(hiding)}."
    return [f"Launches also get these files from the script's folder: {shown}.{hidden * bool(hiding)}"] if names else []


def _expand_requirements(environments: Sequence[str], project: Project) -> list[str]:
    """Return the environments, with the packages of files such as requirements.txt instead of their paths.

    The packages of a file without TensorFlow are added to the other environments. Raises UsageError and
    CannotRunHereError.
    """
    requested = list(map(parse_requested, environments))
    files = [read(value.path.expanduser()) for value in requested if isinstance(value, Files)]
    bases = [str(value) for value in requested if not isinstance(value, Files)]
    if not files:
        return bases
    if not bases and not any(file.tensorflow for file in files):
        reasons = [file.unpinned for file in files if file.unpinned] or ["The package file doesn't contain TensorFlow."]
        raise UsageError(reasons[0], "Pass a release too, such as -e tf2.15")
    catalog = load_environments(project)
    additions = [file for file in files if not file.tensorflow]
    bases = [text for base in bases for text in fnmatch.filter(catalog, base) or [base]] if additions else bases
    combinations = [(base, "+", [*additions]) for base in bases]
    combinations += [(file.tensorflow, ",", [file, *additions]) for file in files if file.tensorflow]
    return [_add_packages(base, separator, packages, project) for base, separator, packages in combinations]


def _add_packages(base: str, separator: str, files: Sequence[PackageFile], project: Project) -> str:
    """Return an environment with the packages in files that apply to its Python and that it doesn't already have."""
    catalog, python = load_environments(project), ""
    if any(file.depends_on_python for file in files):
        environments, (name,) = add_requested(catalog, [parse_requested(base)])
        if name not in environments:
            return base  # an unknown name is reported later
        python = environments[name].python
    packages = [text for file in files for text in file.list_requirements(python)]
    if base in catalog:
        packages = find_unmet(packages, load_lock(project, catalog[base], Device.CPU).lock.pins)
    return separator.join([base, *(sort_packages(packages, base) if separator == "+" else packages)])


def _add_needed(script: Script, asked: Request, project: Project) -> tuple[list[str], list[str]]:
    """Return the environments with the well-known packages that the script needs, and sentences about added ones."""
    catalog, environments, sentences = load_environments(project), list(asked.environments), list[str]()
    runner = [_PYTEST] if script.has_runner and not script.arguments else []
    packages = [*(requirements[0] for requirements, _, advice in script.needs if not advice), *runner]
    if not packages or not _NOT_ADDED.isdisjoint(packages):
        return environments, []
    device = Device.GPU if asked.gpu or asked.gpus else Device.CPU
    environments = [name for text in environments for name in fnmatch.filter(catalog, text) or [text]]
    for index, name in enumerate(environments):
        environment = catalog.get(name)
        if environment and device in environment.devices and not environment.gpu_image:
            missing = find_unmet(packages, load_lock(project, environment, device).lock.pins)
        else:
            missing = [] if "pytest-benchmark" in name else runner
        environments[index] = "+".join([name, *missing])
        if missing:
            sentence = f"{script.path.name} needs {joined(missing)}, which {name} doesn't have."
            sentences.append(f"{sentence} So the environment is {environments[index]}.")
    return environments, sentences


def make_measured_scenario(
    path: Path, *, arguments: Sequence[str] = (), files: Sequence[Path] = ()
) -> tuple[Path, str, Sequence[str]]:
    """Return the scenario for a plain script, the quantity that a search compares, and sentences about the script.

    The quantity is the time of marked steps or, without marks, of the script without imports. Raises UsageError and
    FileError.
    """
    if scripts.has_header(path):
        return path, STEP, ()
    script = Script(path=path, arguments=arguments, files=files)
    script_request, sentences = make_request(script, Request(environments=["any"]))
    (scenario,) = script_request.scenarios
    has_steps = WHOLE in load_scenario(Path(scenario)).quantities
    return Path(scenario), STEP if has_steps else OWN, sentences


def find_v1_names(request: Request) -> str:
    """Return a clause on the names of a script that TensorFlow 2 doesn't have, if `tensorflow.compat.v1` has them."""
    needs = load_scenario(Path(request.scenarios[0])).needs
    is_v2 = any(not re.match(r"tf1|tensorflow(?:-\w+)?==1\.", text) for text in request.environments)
    return next((need.reason for need in needs if is_v2 and need.advice == script_checks.V1_ADVICE), "")

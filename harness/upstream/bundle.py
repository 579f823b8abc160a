"""The bundle of a run: a script that runs without harness, its packages, and the text of an upstream issue."""

import getpass
import json
import platform
import re
import tokenize
import zipfile
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from harness import package_data
from harness.analysis.environments import pins
from harness.analysis.results import Results
from harness.files import write_atomically
from harness.model.environment import Device
from harness.model.errors import UsageError, explain_unwritable
from harness.model.run import Run
from harness.model.scenario import DEVICE, PEAK, PERCENTILES, PRINTED, STEP
from harness.project import Project
from harness.session import read
from harness.session.versions import find_files_with_hash
from harness.store import codec
from harness.upstream.bundle_subject import Axes, Subject, select, subject
from harness.upstream.issue import issue, list_commands, requirements, sentence
from harness.upstream.standalone import make_standalone

#: Common names of users and machines, which don't identify anybody and aren't hidden.
_GENERIC_NAMES = {"", "root", "user", "ubuntu", "debian", "runner", "admin", "localhost"}


def write(
    folder: Path, scenarios: Sequence[str] = (), environments: Sequence[str] = (), axes: Axes | None = None
) -> list[Path]:
    """Write the bundle of a run into its folder, as files and as a zip file. Returns the paths of issue.md and the zip.

    By default, the bundle is about the main comparison of the run. `scenarios`, `environments` and `axes` select one or
    two other cells. If these have no result, the bundle has no issue.md, and the path of the script is returned
    instead.

    Raises UsageError for a folder that doesn't contain a run, and for an invalid selection. Raises NothingSelectedError
    if the run has no result, and CannotRunHereError if the files can't be written.
    """
    results = read(folder)
    if results.run.plan.profile_calls:
        raise UsageError(
            f"{folder} has profiles instead of measurements.", "Pass the folder of a run of harness matrix."
        )
    has_selection = bool(scenarios or environments or axes)
    topic = select(results, scenarios, environments, axes or {}) if has_selection else subject(results)
    if len({side.cell.device for side in topic.sides}) > 1:
        raise UsageError(
            "A bundle is about one device, but these cells were measured on the CPU and on a GPU.",
            f"Select one with -a {DEVICE}={Device.CPU} or -a {DEVICE}={Device.GPU}.",
        )
    texts = files(results, folder, topic)
    zip_data = BytesIO()
    with zipfile.ZipFile(zip_data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            # all files have the same time stamp, so that the same run always gives the same zip file
            archive.writestr(zipfile.ZipInfo(f"bundle/{name}", (1980, 1, 1, 0, 0, 0)), text)
    with explain_unwritable(f"{folder}/bundle"):
        (folder / "bundle").mkdir(exist_ok=True)
        for name, text in texts.items():
            write_atomically(folder / "bundle" / name, text)
        write_atomically(folder / "bundle.zip", zip_data.getvalue())
    return [folder / "bundle" / next(iter(texts)), folder / "bundle.zip"]


def files(results: Results, folder: Path, topic: Subject) -> dict[str, str]:
    """Return the files of a bundle by name, without the names of this machine and its user."""
    run = results.run
    hide = _make_hider(folder)
    code = _make_code(run, topic)
    code = hide(code, _find_names(code))
    requirement_files = {
        f"requirements-{environment.name}.txt": requirements(pins(run, environment.name, topic.worse.cell.device))
        for environment in topic.environments
    }
    contents = {
        "repro.py": code,
        **requirement_files,
        "run.json": json.dumps(remove_paths(json.loads(codec.dump(run)), hide), indent=2) + "\n",
    }
    return {"issue.md": issue(results, topic, code, hide), **contents} if topic.has_results else contents


def _make_hider(folder: Path) -> Callable[..., str]:
    """Return a function that removes folders of this machine, and the names of the machine and its user, from a text.

    The second argument of the function contains words that must stay.
    """
    folders = [Project.find().root, folder.absolute(), Path.cwd(), Path.home(), package_data.FOLDER]
    paths = {str(path) for root in folders for path in (root, root.resolve()) if len(path.parts) > 1}
    names = {platform.node(), platform.node().partition(".")[0]}
    with suppress(OSError, KeyError):
        names.add(getpass.getuser())

    def hide(text: str, kept_words: Collection[str] = ()) -> str:
        for path in sorted(paths, key=len, reverse=True):
            text = re.sub(re.escape(path) + r"(?![\w.-])/?", "", text)
        for name in sorted(names - _GENERIC_NAMES - set(kept_words), key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "(hidden)", text)
        return text

    return hide


def _find_names(code: str) -> set[str]:
    """Return the names in a Python program. They must stay, even if the user has the same name."""
    tokens = tokenize.generate_tokens(StringIO(code).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def remove_paths(value: Any, hide: Callable[[str], str]) -> Any:
    """Return a JSON value without folders of this machine. A path is reduced to its file name."""
    if isinstance(value, dict):
        return {key: remove_paths(element, hide) for key, element in value.items()}
    if isinstance(value, list):
        return [remove_paths(element, hide) for element in value]
    if isinstance(value, str):
        is_path = re.fullmatch(r"(~|/|\.\.?/)[^\n]*", value)
        return hide(Path(value).name if is_path else value)
    return value


def _make_code(run: Run, topic: Subject) -> str:
    """Return the text of repro.py."""
    scenario = topic.worse.scenario
    project = Project.find()
    text = run.scripts.get(scenario.name)
    if text is None:
        text = _find_code(run, scenario.name, project)
    sides = [
        {
            "label": topic.label(side),
            "arguments": {
                axis: value
                for axis, value in side.cell.anywhere.axes.items()
                if axis not in scenario.settings and axis not in scenario.environ and axis in scenario.axes
            },
            "environ": {axis: side.cell.axes[axis] for axis in scenario.environ if side.cell.axes.get(axis)},
        }
        for side in topic.sides
    ]
    is_step_time = topic.of.startswith(PRINTED) or topic.of in PERCENTILES or (scenario.script and topic.of != PEAK)
    quantity = STEP if is_step_time else topic.of
    kit = project.root / "scenarios" / "kit"
    kit = kit if kit.is_dir() else package_data.FOLDER / "scenarios" / "kit"
    header = f"{scenario.title.rstrip('.')}.\n\nMeasured: {sentence(topic)}\n\n{list_commands(topic)}"
    return make_standalone(scenario, text, kit, sides, of=quantity, about=header)


def _find_code(run: Run, name: str, project: Project) -> str:
    """Return the text of a project's scenario as it was measured. Raises UsageError if it can't be found."""
    paths = [folder / f"{name}.py" for folder in project.scenario_folders]
    for path in paths:
        # an older run has no hash, so the file in the working tree is used
        files = find_files_with_hash(path, run.own.get(name, ""), run.commit)
        if files:
            return files[path.name].decode("utf-8-sig")
    if not any(path.is_file() for path in paths):
        raise UsageError(
            f"The run's scenario {name} isn't in this project, so its code can't be shown.",
            "Set HARNESS_PROJECT to the project of the run.",
        )
    raise UsageError(
        f"The file of the scenario {name} changed after the run. The measured file is neither on this machine nor in "
        f"git ({run.commit or 'no commit'}), so its code can't be shown.",
        "Restore the file, or measure again.",
    )

"""Requests to measure two versions of scenario files from git."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness import toml
from harness.files import hash_files
from harness.machine import git
from harness.model.errors import HarnessError, NothingSelectedError, UsageError
from harness.model.scenario import SIDE
from harness.plan.selection import resolve
from harness.project import Project
from harness.scenarios import versions
from harness.scenarios.catalog import find_scenario_files
from harness.session import trust
from harness.session.request import Request


def make_request(asked: Request, base: str, head: str = "") -> tuple[Request, Sequence[str]]:
    """Return the request that measures the scenarios at the git commit `base` against `head`, or the working tree.

    Scenarios that are unchanged, or that exist on only one side, are left out. The second value contains sentences
    about these scenarios. Raises UsageError without a scenario, without a repository or for an unknown commit,
    FileError for an invalid version of a file, CannotRunHereError without git, and NothingSelectedError if nothing is
    left.
    """
    if not asked.scenarios:
        raise UsageError(
            "--base compares two versions of scenarios, but no scenario is specified.",
            f"Pass the files of scenarios: harness matrix --base {base} -s scenarios/NAME.py",
        )
    sentences, scenarios = [], []
    for path in _find_files(asked.scenarios):
        root = _find_top(path)
        before, after = (_read_scenario(root, path, ref) for ref in (base, head))
        if not before and not after:
            raise UsageError(f"{path} exists neither in {base} nor in {head or 'the working tree'}.")
        if not (before and after):
            side = base if before else head or "the working tree"
            sentences.append(f"{path} is only in {side}, so it is not measured.")
        elif before == after:
            sentences.append(f"{path} is the same in {base} and {head or 'the working tree'}, so it is not measured.")
        else:
            kind = trust.get_folder(trust.classify_commits(root, [base, head]))
            scenarios.append(str(versions.write_side_by_side(path.stem, before, after, kind)))
    if not scenarios:
        raise NothingSelectedError(
            " ".join([*sentences, "No scenario has two versions to compare."]),
            "Choose other commits with --base and --head.",
        )
    axes = {axis: values for axis, values in asked.axes.items() if axis != SIDE}
    if axes != asked.axes:
        raise UsageError(f"-a {SIDE} would select only one of the two versions.", f"Omit -a {SIDE}.")
    return replace(asked, scenarios=scenarios), sentences


def find_files_with_hash(path: Path, digest: str, commit: str) -> Mapping[str, bytes] | None:
    """Return the files of a scenario, by name, as a run measured them: from the working tree or from git.

    `digest` is the beginning of the run's hash of these files, and `commit` is the run's commit, which ends with `+` if
    files were changed. Returns None if neither has files with this hash.
    """
    for ref in ("", commit.removesuffix("+")):
        with suppress(HarnessError):
            files = _read_scenario(_find_top(path) if ref else Path.cwd(), path, ref)
            if files and hash_files(dict(files)).startswith(digest):
                return files
    return None


def _find_files(typed: Sequence[str]) -> list[Path]:
    """Return the scenario files for names, globs and files. Raises UsageError for an unknown name."""
    project = Project.find()
    # leave out the files of an installed harness, which have no versions in git
    files = (path for path in find_scenario_files(project) if not project.own or path.parent == project.own)
    by_name = {path.stem: path for path in files}
    paths: list[Path] = []
    for text in typed:
        is_file = text.endswith(".py")
        paths += [Path(text)] if is_file else [by_name[name] for name in resolve([text], list(by_name), "scenario")]
    return list(dict.fromkeys(paths))


def _find_top(path: Path) -> Path:
    """Return the top folder of the working tree that contains a file. Raises UsageError outside a repository."""
    folder = path.resolve().parent
    return git.find_top(folder if folder.is_dir() else Path.cwd())


def _read_scenario(root: Path, path: Path, ref: str) -> Mapping[str, bytes]:
    """Return a scenario's files by name, at `ref` or in the working tree `root`; empty if it doesn't exist there."""
    main_file = _read_file(root, path, ref)
    if main_file is None:
        return {}
    text = main_file.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    location = path if not ref else Path(f"{ref}:{path}")
    tables = toml.read_header(text, location).values.get("tool")
    header = tables.get("harness") if isinstance(tables, dict) else None
    file_names = header.get("files", []) if isinstance(header, dict) else []
    files = {f"{path.stem}.py": main_file}
    for name in file_names if isinstance(file_names, list) else []:
        data = _read_file(root, path.parent / str(name), ref)
        if data is None:
            raise UsageError(f"{location} names the file {name}, which is missing.")
        files[str(name)] = data
    return files


def _read_file(root: Path, path: Path, ref: str) -> bytes | None:
    if not ref:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"The scenario {path} cannot be read: {error.strerror}.") from None
    commit = git.resolve_commit(root, ref)
    resolved_path = path.resolve()
    if not resolved_path.is_relative_to(root):
        raise UsageError(f"{path} is not in the repository {root}.")
    process = git.run_git(root, "cat-file", "blob", f"{commit}:{resolved_path.relative_to(root).as_posix()}")
    return None if process.returncode else process.stdout

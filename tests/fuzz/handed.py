"""Readers of inputs besides runs: package files, values of -e, and files that the scripts in .github read."""

import json
import runpy
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.environments import adhoc, index, requirement_files
from harness.environments import catalog as environments
from harness.environments.requested import parse_requested
from harness.files import parse_json
from harness.history import nightly_file
from harness.history.folder import History
from harness.history.issues import read_issues
from harness.model.errors import CannotRunHereError, HarnessError
from harness.session.options import split_names
from tests.cli.conftest import BAKE

SCRIPTS = Path(__file__).parents[2] / ".github"

Reader = Callable[[bytes, Path], None]


def make_package_reader(name: str) -> Reader:
    def read(data: bytes, folder: Path) -> None:
        (folder / name).write_bytes(data)
        file = requirement_files.read(folder / name)
        for python in ("", "3.6", "3.11"):
            file.list_requirements(python)
        assert isinstance(file.depends_on_python, bool)

    return read


def environment(data: bytes, folder: Path) -> None:
    catalog = _load_catalog()
    error = CannotRunHereError("no index")
    with patch.object(index, "run_uv", side_effect=error):
        for text in split_names([data.decode(errors="surrogateescape")], "-e"):
            adhoc.add_requested(catalog, [parse_requested(text)])


@cache
def _load_catalog() -> dict[str, environments.Environment]:
    return {entry.name: entry for entry in environments.parse(BAKE, "x")}


def nightly(data: bytes, folder: Path) -> None:
    path = folder / "nightly.toml"
    path.write_bytes(data)
    with patch.dict("os.environ", GITHUB_RUN_ID="1", GITHUB_REPOSITORY="a/b"):
        for night in nightly_file.read_nightly_file(path).nights:
            json.dumps(list(_load_script("nightly/plan")["jobs_of"](night, 4)))


def handed_over(data: bytes, folder: Path) -> None:
    """Read the same bytes as decisions, notes, issues and a summary."""
    (folder / "issues.json").write_bytes(data)
    with suppress(HarnessError):
        read_issues(folder / "issues.json")
    history = History(folder / "history")
    for name in ("2026-11", "notes", "decisions"):
        path = history.path / name / "x.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert all(series.points for series in history.series())
    assert all(note.when for note in history.notes())
    assert all(decision.when for decision in history.decisions())


def command(data: bytes, folder: Path) -> None:
    """Make the command for the comment of a pull request, from names and numbers only."""
    try:
        words = _load_script("pull-request/render")["words_of"](parse_json(data))
    except (AttributeError, KeyError, TypeError, ValueError):  # as the script expects
        return
    assert all(set(word) <= SAFE for word in words), words


def artifact(data: bytes, folder: Path) -> None:
    """Check artifacts of which one file has the bytes."""
    script = _load_script("artifacts")
    for name in ("2026-11-21T04-10-00Z-3f2a/run.json", "night", "failure", "decisions.jsonl"):
        job = folder / Path(name).name / "cpu--lab"
        (job / name).parent.mkdir(parents=True, exist_ok=True)
        (job / name).write_bytes(data)
        with suppress(script["Refused"]):
            script["check"](job)


SAFE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,-^+")


@cache
def _load_script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SCRIPTS / name))

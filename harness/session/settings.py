"""The settings of a project and of this machine, and the file with the settings of a project.

Sources in the order of precedence: the command line, an environment variable, the project's file, and the default. The
file is harness.toml, or pyproject.toml with a table `tool.harness`. It is in the current folder or in a parent folder
of the same git repository.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from harness.scenarios.validation import TomlTable, make_invalid_error, make_validator, validate
from harness.toml import read, read_file


def _only_in_environment(reason: str) -> BeforeValidator:
    def refuse(_: object) -> None:
        raise make_invalid_error(f"this file can't contain it, because {reason}", "Set the environment variable.")

    return BeforeValidator(refuse)


_Names = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
_Text = Annotated[str, Field(min_length=1)]
_LENGTH = re.compile(r"[0-9]+(\.[0-9]+)?(ms|s|m|h)")
_Budget = Annotated[str, make_validator(_LENGTH.fullmatch, "expected a length of time such as 90s, 10m or 1h")]
_Executed = Annotated[str, _only_in_environment("harness runs what it names")]
_Own = Annotated[str, _only_in_environment("it differs from machine to machine")]


class ProjectSettings(TomlTable):
    """The settings. The environment variable of a setting is HARNESS_NAME. The descriptions are for cli.md."""

    environments: _Names = Field(
        [], description="`-e` of `matrix`, `run` and `profile`", examples=['NAME = ["tf2.15"]']
    )
    scenarios: _Names = Field([], description="`-s` of `matrix` and `profile`")
    baseline: _Text = Field(
        "", description="`--reference` of `matrix`, `run` and `profile`, unless `-e` is passed without it"
    )
    budget: _Budget = Field("", description="`--budget` of `matrix` and `run`", examples=['NAME = "10m"'])
    results: _Text = Field("results", description="the folder for runs: `--results` of each command")
    history: _Text = Field("", description="the folder of the [history](../how-to/track-history.md)")
    record: bool = Field(True, description="whether [runs are added to the history](../how-to/track-history.md#record)")
    project: _Text = Field("", description="the folder with `docker-bake.hcl` and `scenarios/`")
    registry: _Text = Field(
        "", description="the [registry of images](environments.md#use-a-registry), with a `/` at the end"
    )
    engine_seconds: int = Field(60, ge=1, description="how many seconds harness waits for an answer of Docker Engine")
    cache_dir: _Executed = Field("", description="the folder for local environments and the parsed catalog")
    data_dir: _Own = Field("", description="the folder for the machine id, the signing key, the lock and the history")
    wheels: _Executed = Field("", description="the packages of an [offline installation](environments.md#work-offline)")
    machine: _Own = Field("", description="the name of this machine in reports")
    machine_id: _Own = Field("", description="the [id of this machine](../how-to/track-history.md#machine-id)")
    machine_lock: _Own = Field("", description="a lock file that several users of this machine share")
    ssh_command: _Executed = Field("", description="the command for `--on ssh://…`, instead of `ssh`")
    debug: _Own = Field("", description="`1` shows the traceback of an internal error")


def get_variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return "REGISTRY" if name == "registry" else f"HARNESS_{name.upper()}"


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The file of a project, and its values by setting."""

    path: Path
    values: Mapping[str, Any]

    def export(self) -> None:
        """Set missing environment variables for this process and its children. Options aren't among them."""
        for name, value in {"record": True, **self.values}.items():
            if name not in ("environments", "scenarios", "baseline", "budget"):
                os.environ.setdefault(get_variable(name), str(int(value) if isinstance(value, bool) else value))
        if os.environ["HARNESS_RECORD"] == "1":
            results = os.environ.get("HARNESS_RESULTS") or str(self.path.parent / "results")
            os.environ.setdefault("HARNESS_HISTORY", str(Path(results) / "history"))


def load(path: Path) -> ProjectFile:
    """Return the settings in a file. Raises FileError."""
    root = () if path.name == "harness.toml" else ("tool", "harness")
    document = read(read_file(path), path, root=root)
    table = document.values
    for name in root:
        table = table.get(name, {})
    settings = validate(ProjectSettings, table, document.findings, root)
    document.findings.check()
    assert settings
    values = {name: getattr(settings, name) for name in table}
    for name in values.keys() & {"results", "history", "project"}:
        values[name] = str(path.parent / values[name])
    if "scenarios" in values:
        places = {name: path.parent / name for name in values["scenarios"]}
        values["scenarios"] = [str(place) if place.is_file() else name for name, place in places.items()]
    return ProjectFile(path, values)

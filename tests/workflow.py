"""Runs a workflow of GitHub Actions here: its jobs in their order, each step's own script, artifacts as folders.

What comes from a marketplace (checkout, setup, artifacts) is done by copying; a `uses: ./` is read and its steps run.
Also runs a script of a workflow, with programs in a folder of the test.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from harness.history.folder import History
from harness.history.states import find_changes
from harness.history.summary import load_summary
from harness.model.history import Decision
from tests.cli.conftest import stored
from tests.commands import git
from tests.conftest import ROOT
from tests.factories import cells, nightly_run, rounds
from tests.github import REPOSITORY, TOKEN

Context = Mapping[str, Any]


def write_program(path: Path, lines: str) -> None:
    """Write a program of these lines of a shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


def install_harness(folder: Path) -> None:
    """Write a program `harness` that runs the harness of PYTHONPATH."""
    write_program(folder / "harness", f'exec "{sys.executable}" -m harness "$@"')


def run_script(
    script: Path | str,
    *arguments: Path | str,
    programs: Path | None = None,
    cwd: Path | None = None,
    text: str | None = None,
    **environ: str | Path,
) -> subprocess.CompletedProcess[str]:
    """Run a script of the repository, with a folder of programs that comes first on the PATH, and a text as input."""
    path = f"{programs}:{os.environ['PATH']}" if programs else os.environ["PATH"]
    shared = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, "GITHUB_STEP_SUMMARY": os.devnull}
    return subprocess.run(
        [script, *arguments],
        cwd=cwd,
        env={**shared, **environ},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def push_history(folder: Path, remote: Path) -> None:
    """Push a history of 20 nightly runs of the machine `lab`, in which a slowdown since the 13th was confirmed."""
    planned = cells()
    folders = []
    for day in range(1, 21):
        seconds = {cell: 0.01 * (1.1 if day > 12 and cell == planned[-1] else 1.0) for cell in planned}
        night = nightly_run(f"2026-10-{day:02}")
        folders.append(stored(folder / "results", night, rounds(seconds, 5, 0.002, day)))
    branch = folder / "branch"
    history = History(branch)
    for path in folders:
        history.add(load_summary(path))
    (change,) = [change for change in find_changes(history.series()) if change.ratio > 1.0]
    when = "2026-10-21T04:10:00+00:00"
    history.decide(Decision(change.key, change.since, change.suspects, True, "run-c", when, 1.1, 1.09, 1.11))
    git(branch, "init", "-q", "-b", "harness-history")
    git(branch, "add", ".")
    git(branch, "commit", "-qm", "seed")
    git(branch, "push", "-q", remote, "harness-history")


@dataclass
class JobResult:
    """A job as it went: `result` as GitHub says it, the summary page, what its steps printed, and its outputs."""

    result: str
    summary: str = ""
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)


@dataclass
class Runner:
    """Where jobs run: `project` is what is checked out, `place` a folder for all that jobs make.

    `environ` is what every step has besides; `prepare` gets the temporary folder of each job before its first step.
    `called` is the repository of the workflow, if the project has only the caller of it. `event` is added to GITHUB.
    """

    project: Path
    place: Path
    environ: Mapping[str, str]
    prepare: Callable[[Path], None]
    called: Path | None = None
    event: Context = field(default_factory=dict)
    jobs: dict[str, JobResult] = field(default_factory=dict)

    @property
    def artifacts(self) -> Path:
        return self.place / "artifacts"

    def run(self, name: str, inputs: Context | None = None, only: str = "") -> dict[str, JobResult]:
        """Run a workflow of the project; returns its jobs by name, those of a matrix as `measure: NIGHT MACHINE`.

        With `only`, that job alone, as if those that it needs had gone well.
        """
        workflow = yaml.safe_load(((self.called or self.project) / ".github" / "workflows" / name).read_text())
        self.artifacts.mkdir(parents=True, exist_ok=True)
        needs: dict[str, Any] = {}
        for job, definition in workflow["jobs"].items():
            if only and job != only:
                needs[job] = {"result": "success", "outputs": {}}
                continue
            names = definition.get("needs", [])
            results_before = {need: needs[need] for need in ([names] if isinstance(names, str) else names)}
            context = {
                "inputs": {**_defaults(workflow), **(inputs or {})}, "needs": results_before,
                "github": {**GITHUB, **self.event}, "job": JOB, "vars": VARIABLES, "secrets": {},
            }  # fmt: skip
            if not _is_true(definition.get("if", "success()"), context):
                self.jobs[job], needs[job] = JobResult("skipped"), {"result": "skipped", "outputs": {}}
                continue
            if "uses" in definition:
                before = {*self.jobs}
                if "with" in definition:
                    self.run(
                        Path(definition["uses"]).name,
                        {key: _value(text, context) for key, text in definition["with"].items()},
                    )
                else:  # a workflow that has tests of its own
                    self.jobs[job] = JobResult("success")
                results = [job.result for name, job in self.jobs.items() if name not in before]
                needs[job] = {"result": "failure" if "failure" in results else "success", "outputs": {}}
                continue
            matrix = definition.get("strategy", {}).get("matrix", {}).get("include")
            rows = _value(matrix, context) if matrix else [None]
            jobs = []
            for row in rows:
                title = f"{job}: {row['night']} {row['machine']}" if row else job
                matrix_context = {**context, "matrix": row or {}}
                self.jobs[title] = self._job(title, definition, matrix_context, workflow.get("env", {}))
                jobs.append(self.jobs[title])
            results = [result.result for result in jobs]
            needs[job] = {"result": "failure" if "failure" in results else "success", "outputs": jobs[-1].outputs}
        return self.jobs

    def _job(self, name: str, definition: Context, context: Context, environ: Mapping[str, str]) -> JobResult:
        place = self.place / "jobs" / re.sub(r"\W+", "-", name)
        workspace, temporary = place / "work", place / "temp"
        for folder in (workspace, temporary):
            folder.mkdir(parents=True)
        self.prepare(temporary)
        files = {name: place / name for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.touch()
        labels = _value(definition["runs-on"], context)
        hosted = "self-hosted" not in labels
        shared = {
            **os.environ, **self.environ, **environ, **{key: str(path) for key, path in files.items()},
            "ARTIFACTS": str(self.artifacts), "RUNNER_TEMP": str(temporary),
            "RUNNER_ENVIRONMENT": "github-hosted" if hosted else "self-hosted",
        }  # fmt: skip
        job = JobResult("success")
        within = {**context, "runner": {"temp": str(temporary)}}
        steps, fine = self._steps(definition["steps"], within, workspace, shared, job)
        job.result = "success" if fine else "failure"
        job.summary = files["GITHUB_STEP_SUMMARY"].read_text()
        job.outputs = {key: _value(text, {"steps": steps}) for key, text in definition.get("outputs", {}).items()}
        return job

    def _steps(
        self,
        definitions: Sequence[Context],
        context: Context,
        workspace: Path,
        environ: Mapping[str, str],
        job: JobResult,
    ) -> tuple[dict[str, Any], bool]:
        """Run steps; returns their outcomes and outputs by id, and whether all went well."""
        steps: dict[str, Any] = {}
        fine = True
        for step in definitions:
            # its condition is about the steps before it, and not about other jobs
            here = {**context, "steps": steps, "failed": not fine}
            outcome = "skipped"
            condition = step.get("if", "success()")
            # without a function, GitHub adds success()
            if (fine or "()" in condition) and _is_true(condition, {**here, "needs": {}}):
                outcome = "success" if self._step(step, here, workspace, environ, job) else "failure"
                fine = fine and outcome == "success"
            if "id" in step:
                lines = Path(environ["GITHUB_OUTPUT"]).read_text().splitlines()
                outputs = {} if outcome == "skipped" else dict(line.split("=", 1) for line in lines)
                steps[step["id"]] = {"outcome": outcome, "outputs": outputs}
        return steps, fine

    def _step(
        self, step: Context, context: Context, workspace: Path, environ: Mapping[str, str], job: JobResult
    ) -> bool:
        parameters = {key: _value(value, context) for key, value in step.get("with", {}).items()}
        variables = {key: _text(_value(value, context)) for key, value in step.get("env", {}).items()}
        uses = step.get("uses", "")
        if "run" in step:
            path = [*Path(environ["GITHUB_PATH"]).read_text().splitlines(), environ["PATH"]]
            process = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=workspace, env={**environ, "PATH": ":".join(path), **variables}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
            )  # fmt: skip
            job.log += process.stdout
            return process.returncode == 0
        if uses.startswith("actions/checkout@"):
            source = self.called if self.called and "repository" in parameters else self.project
            shutil.copytree(source, workspace / parameters.get("path", "."), dirs_exist_ok=True, symlinks=True)
        elif uses.startswith(("actions/setup-python@", "actions/deploy-pages@")):
            pass
        elif uses.startswith(("actions/upload-artifact@", "actions/upload-pages-artifact@")):
            source = workspace / parameters["path"]
            if source.exists():
                artifact = self.artifacts / parameters.get("name", "github-pages")
                (shutil.copytree if source.is_dir() else _copy_into)(source, artifact)
        elif uses.startswith("actions/download-artifact@"):
            matching = [path for path in self.artifacts.iterdir() if fnmatchcase(path.name, parameters["pattern"])]
            for artifact in matching:  # a single one gets no folder of its name
                folder = workspace / parameters["path"] / (artifact.name if len(matching) > 1 else "")
                shutil.copytree(artifact, folder, dirs_exist_ok=True)
        elif uses.startswith("./"):
            action = yaml.safe_load((workspace / uses / "action.yml").read_text())
            defaults = {key: value.get("default", "") for key, value in action["inputs"].items()}
            within = {**context, "inputs": {**defaults, **parameters}}
            here = {**environ, "GITHUB_ACTION_PATH": str(workspace / uses)}
            return self._steps(action["runs"]["steps"], within, workspace, here, job)[1]
        else:
            raise AssertionError(f"no stand-in for {uses}")
        return True


GITHUB = {
    "token": TOKEN,
    "repository": REPOSITORY,
    "ref": "refs/heads/main",
    "actor": "someone",
    "event_name": "pull_request",
}
JOB = {"workflow_repository": REPOSITORY, "workflow_sha": "0" * 40}
VARIABLES = {"PUBLISH_DOCUMENTATION": "true"}


def _defaults(workflow: Context) -> Context:
    """Return the defaults of the inputs of a workflow that others call."""
    call = workflow[True].get("workflow_call") if isinstance(workflow[True], dict) else None
    return {name: value.get("default") for name, value in (call or {}).get("inputs", {}).items()}


def _copy_into(file: Path, folder: Path) -> None:
    folder.mkdir()
    shutil.copy(file, folder)


def _text(value: Any) -> str:
    return {True: "true", False: "false", None: ""}.get(value, value) if not isinstance(value, str) else value


def _value(value: Any, context: Context) -> Any:
    """Return a value of a workflow with its expressions resolved; one that is a whole expression is what that is."""
    if not isinstance(value, str):
        return [_value(entry, context) for entry in value] if isinstance(value, list) else value
    expression = re.fullmatch(r"\$\{\{\s*([^}]+?)\s*\}\}", value)
    if expression:
        return _look_up(expression[1], context)
    return re.sub(r"\$\{\{\s*(.+?)\s*\}\}", lambda match: _text(_look_up(match[1], context)), value)


def _look_up(expression: str, context: Context) -> Any:
    if " || " in expression:
        return next((value for part in expression.split(" || ") if (value := _look_up(part, context))), "")
    if " && " in expression:
        condition, value = expression.rsplit(" && ", 1)
        return _look_up(value, context) if _is_true(condition, context) else ""
    if expression[0] == "'":
        return expression.strip("'")
    if expression == "false":
        return False
    call = re.fullmatch(r"fromJSON\((.+)\)", expression)
    if call:
        return json.loads(_look_up(call[1], context))
    value: Any = context
    for part in expression.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value


def _is_true(condition: str, context: Context) -> bool:
    """Whether an `if` holds: terms that are joined by `&&`, or alternatives by `||`. Nothing here is cancelled."""
    inner = re.sub(r"^\$\{\{\s*|\s*\}\}$", "", condition)
    if " || " in inner:
        return any(_is_true(part, context) for part in inner.split(" || "))
    for term in inner.split("&&"):
        match term.strip():
            case "!cancelled()" | "always()":
                continue
            case "failure()":
                if not context.get("failed"):
                    return False
            case "success()":
                results = [value["result"] for value in context.get("needs", {}).values()]
                if context.get("failed") or any(result != "success" for result in results):
                    return False
            case other:
                name, sign, literal = re.fullmatch(r"(\S+) (==|!=) '(.*)'", other).groups()  # type: ignore[union-attr]
                if (_look_up(name, context) == literal) is not (sign == "=="):
                    return False
    return True

"""Runs a workflow of GitHub Actions here: its jobs in their order, each step's own script, artifacts as folders.

What comes from a marketplace (checkout, setup, artifacts) is done by copying; a `uses: ./` is read and its steps run.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.github import REPOSITORY, TOKEN

Context = Mapping[str, Any]


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
    `called` is the repository of the workflow, if the project has only the caller of it.
    """

    project: Path
    place: Path
    environ: Mapping[str, str]
    prepare: Callable[[Path], None]
    called: Path | None = None
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
            wanted = definition.get("needs", [])
            needed = {entry: needs[entry] for entry in ([wanted] if isinstance(wanted, str) else wanted)}
            context = {
                "inputs": {**_defaults(workflow), **(inputs or {})}, "needs": needed, "github": GITHUB, "job": JOB,
                "vars": VARIABLES, "secrets": {},
            }  # fmt: skip
            if not _is_true(definition.get("if", "success()"), context):
                self.jobs[job], needs[job] = JobResult("skipped"), {"result": "skipped", "outputs": {}}
                continue
            if "uses" in definition:
                before = {*self.jobs}
                if "with" in definition:
                    values = {key: _value(text, context) for key, text in definition["with"].items()}
                    self.run(Path(definition["uses"]).name, values)
                else:  # a workflow that has tests of its own
                    self.jobs[job] = JobResult("success")
                needs[job] = _summarize([result for name, result in self.jobs.items() if name not in before], {})
                continue
            matrix = definition.get("strategy", {}).get("matrix", {}).get("include")
            results = []
            for row in _value(matrix, context) if matrix else [None]:
                title = f"{job}: {row['night']} {row['machine']}" if row else job
                row_context = {**context, "matrix": row or {}}
                self.jobs[title] = self._job(title, definition, row_context, workflow.get("env", {}))
                results.append(self.jobs[title])
            needs[job] = _summarize(results, results[-1].outputs)
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
            "RUNNER_TEMP": str(temporary), "RUNNER_ENVIRONMENT": "github-hosted" if hosted else "self-hosted",
        }  # fmt: skip
        result = JobResult("success")
        within = {**context, "runner": {"temp": str(temporary)}}
        steps, fine = self._steps(definition["steps"], within, workspace, shared, result)
        result.result = "success" if fine else "failure"
        result.summary = files["GITHUB_STEP_SUMMARY"].read_text()
        result.outputs = {key: _value(text, {"steps": steps}) for key, text in definition.get("outputs", {}).items()}
        return result

    def _steps(
        self,
        definitions: Sequence[Context],
        context: Context,
        workspace: Path,
        environ: Mapping[str, str],
        result: JobResult,
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
                outcome = "success" if self._step(step, here, workspace, environ, result) else "failure"
                fine = fine and outcome == "success"
            if "id" in step:
                lines = Path(environ["GITHUB_OUTPUT"]).read_text().splitlines()
                outputs = {} if outcome == "skipped" else dict(line.split("=", 1) for line in lines)
                steps[step["id"]] = {"outcome": outcome, "outputs": outputs}
        return steps, fine

    def _step(
        self, step: Context, context: Context, workspace: Path, environ: Mapping[str, str], result: JobResult
    ) -> bool:
        inputs = {key: _value(value, context) for key, value in step.get("with", {}).items()}
        variables = {key: _text(_value(value, context)) for key, value in step.get("env", {}).items()}
        uses = step.get("uses", "")
        if "run" in step:
            path = [*Path(environ["GITHUB_PATH"]).read_text().splitlines(), environ["PATH"]]
            completed = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=workspace, env={**environ, "PATH": ":".join(path), **variables}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
            )  # fmt: skip
            result.log += completed.stdout
            return completed.returncode == 0
        if uses.startswith("actions/checkout@"):
            source = self.called if self.called and "repository" in inputs else self.project
            shutil.copytree(source, workspace / inputs.get("path", "."), dirs_exist_ok=True, symlinks=True)
        elif uses.startswith(("actions/setup-python@", "actions/deploy-pages@")):
            pass
        elif uses.startswith(("actions/upload-artifact@", "actions/upload-pages-artifact@")):
            file = workspace / inputs["path"]
            if file.exists():
                artifact = self.artifacts / inputs.get("name", "github-pages")
                (shutil.copytree if file.is_dir() else _copy_into)(file, artifact)
        elif uses.startswith("actions/download-artifact@"):
            for artifact in sorted(self.artifacts.iterdir()):
                if fnmatchcase(artifact.name, inputs["pattern"]):
                    shutil.copytree(artifact, workspace / inputs["path"] / artifact.name, dirs_exist_ok=True)
        elif uses.startswith("./"):
            action = yaml.safe_load((workspace / uses / "action.yml").read_text())
            defaults = {key: declaration.get("default", "") for key, declaration in action["inputs"].items()}
            within = {**context, "inputs": {**defaults, **inputs}}
            here = {**environ, "GITHUB_ACTION_PATH": str(workspace / uses)}
            return self._steps(action["runs"]["steps"], within, workspace, here, result)[1]
        else:
            raise AssertionError(f"no stand-in for {uses}")
        return True


GITHUB = {"token": TOKEN, "repository": REPOSITORY, "ref": "refs/heads/main", "actor": "someone"}
JOB = {"workflow_repository": REPOSITORY, "workflow_sha": "0" * 40}
VARIABLES = {"PUBLISH_DOCUMENTATION": "true"}


def _defaults(workflow: Context) -> Context:
    """Return the defaults of the inputs of a workflow that others call."""
    call = workflow[True].get("workflow_call") if isinstance(workflow[True], dict) else None
    return {name: declaration.get("default") for name, declaration in (call or {}).get("inputs", {}).items()}


def _summarize(results: Sequence[JobResult], outputs: Mapping[str, str]) -> Context:
    """Return what jobs that need this one see of it."""
    return {"result": "failure" if "failure" in [job.result for job in results] else "success", "outputs": outputs}


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
    if expression in ("false", "''"):
        return False if expression == "false" else ""
    call = re.fullmatch(r"fromJSON\((.+)\)", expression)
    if call:
        return json.loads(_look_up(call[1], context))
    result: Any = context
    for part in expression.split("."):
        result = result.get(part, "") if isinstance(result, dict) else ""
    return result


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

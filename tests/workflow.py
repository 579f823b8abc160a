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
        for job, asked in workflow["jobs"].items():
            if only and job != only:
                needs[job] = {"result": "success", "outputs": {}}
                continue
            wanted = [asked["needs"]] if isinstance(asked.get("needs"), str) else asked.get("needs", [])
            known = {entry: needs[entry] for entry in wanted}
            context = {
                "inputs": {**_defaults(workflow), **(inputs or {})}, "needs": known, "github": GITHUB, "job": JOB,
                "vars": VARIABLES, "secrets": {},
            }  # fmt: skip
            if not _is_true(asked.get("if", "success()"), context):
                self.jobs[job], needs[job] = JobResult("skipped"), {"result": "skipped", "outputs": {}}
                continue
            if "uses" in asked:
                before = {*self.jobs}
                if "with" in asked:
                    self.run(
                        Path(asked["uses"]).name, {key: _value(text, context) for key, text in asked["with"].items()}
                    )
                else:  # a workflow that has tests of its own
                    self.jobs[job] = JobResult("success")
                results = [each.result for name, each in self.jobs.items() if name not in before]
                needs[job] = {"result": "failure" if "failure" in results else "success", "outputs": {}}
                continue
            matrix = asked.get("strategy", {}).get("matrix", {}).get("include")
            rows = _value(matrix, context) if matrix else [None]
            ran = []
            for row in rows:
                told = f"{job}: {row['night']} {row['machine']}" if row else job
                self.jobs[told] = self._job(told, asked, {**context, "matrix": row or {}}, workflow.get("env", {}))
                ran.append(self.jobs[told])
            results = [entry.result for entry in ran]
            needs[job] = {"result": "failure" if "failure" in results else "success", "outputs": ran[-1].outputs}
        return self.jobs

    def _job(self, name: str, asked: Context, context: Context, environ: Mapping[str, str]) -> JobResult:
        place = self.place / "jobs" / re.sub(r"\W+", "-", name)
        workspace, temporary = place / "work", place / "temp"
        for folder in (workspace, temporary):
            folder.mkdir(parents=True)
        self.prepare(temporary)
        files = {name: place / name for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.touch()
        labels = _value(asked["runs-on"], context)
        hosted = "self-hosted" not in labels
        shared = {
            **os.environ, **self.environ, **environ, **{key: str(path) for key, path in files.items()},
            "RUNNER_TEMP": str(temporary), "RUNNER_ENVIRONMENT": "github-hosted" if hosted else "self-hosted",
        }  # fmt: skip
        ran = JobResult("success")
        within = {**context, "runner": {"temp": str(temporary)}}
        steps, fine = self._steps(asked["steps"], within, workspace, shared, ran)
        ran.result = "success" if fine else "failure"
        ran.summary = files["GITHUB_STEP_SUMMARY"].read_text()
        ran.outputs = {key: _value(text, {"steps": steps}) for key, text in asked.get("outputs", {}).items()}
        return ran

    def _steps(
        self, asked: Sequence[Context], context: Context, workspace: Path, environ: Mapping[str, str], ran: JobResult
    ) -> tuple[dict[str, Any], bool]:
        """Run steps; returns their outcomes and outputs by id, and whether all went well."""
        steps: dict[str, Any] = {}
        fine = True
        for step in asked:
            # its condition is about the steps before it, and not about other jobs
            here = {**context, "steps": steps, "failed": not fine}
            outcome = "skipped"
            condition = step.get("if", "success()")
            # without a function, GitHub adds success()
            if (fine or "()" in condition) and _is_true(condition, {**here, "needs": {}}):
                outcome = "success" if self._step(step, here, workspace, environ, ran) else "failure"
                fine = fine and outcome == "success"
            if "id" in step:
                lines = Path(environ["GITHUB_OUTPUT"]).read_text().splitlines()
                outputs = {} if outcome == "skipped" else dict(line.split("=", 1) for line in lines)
                steps[step["id"]] = {"outcome": outcome, "outputs": outputs}
        return steps, fine

    def _step(self, step: Context, context: Context, workspace: Path, environ: Mapping[str, str], ran: JobResult) -> bool:
        given = {key: _value(value, context) for key, value in step.get("with", {}).items()}
        own = {key: _text(_value(value, context)) for key, value in step.get("env", {}).items()}
        uses = step.get("uses", "")
        if "run" in step:
            path = [*Path(environ["GITHUB_PATH"]).read_text().splitlines(), environ["PATH"]]
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=workspace, env={**environ, "PATH": ":".join(path), **own}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
            )  # fmt: skip
            ran.log += done.stdout
            return done.returncode == 0
        if uses.startswith("actions/checkout@"):
            source = self.called if self.called and "repository" in given else self.project
            shutil.copytree(source, workspace / given.get("path", "."), dirs_exist_ok=True, symlinks=True)
        elif uses.startswith(("actions/setup-python@", "actions/deploy-pages@")):
            pass
        elif uses.startswith(("actions/upload-artifact@", "actions/upload-pages-artifact@")):
            found = workspace / given["path"]
            if found.exists():
                kept = self.artifacts / given.get("name", "github-pages")
                (shutil.copytree if found.is_dir() else _copy_into)(found, kept)
        elif uses.startswith("actions/download-artifact@"):
            for kept in sorted(self.artifacts.iterdir()):
                if fnmatchcase(kept.name, given["pattern"]):
                    shutil.copytree(kept, workspace / given["path"] / kept.name, dirs_exist_ok=True)
        elif uses.startswith("./"):
            action = yaml.safe_load((workspace / uses / "action.yml").read_text())
            defaults = {key: each.get("default", "") for key, each in action["inputs"].items()}
            within = {**context, "inputs": {**defaults, **given}}
            here = {**environ, "GITHUB_ACTION_PATH": str(workspace / uses)}
            return self._steps(action["runs"]["steps"], within, workspace, here, ran)[1]
        else:
            raise AssertionError(f"no stand-in for {uses}")
        return True


GITHUB = {"token": TOKEN, "repository": REPOSITORY, "ref": "refs/heads/main", "actor": "someone"}
JOB = {"workflow_repository": REPOSITORY, "workflow_sha": "0" * 40}
VARIABLES = {"PUBLISH_DOCUMENTATION": "true"}


def _defaults(workflow: Context) -> Context:
    """Return the defaults of the inputs of a workflow that others call."""
    call = workflow[True].get("workflow_call") if isinstance(workflow[True], dict) else None
    return {name: each.get("default") for name, each in (call or {}).get("inputs", {}).items()}


def _copy_into(file: Path, folder: Path) -> None:
    folder.mkdir()
    shutil.copy(file, folder)


def _text(value: Any) -> str:
    return {True: "true", False: "false", None: ""}.get(value, value) if not isinstance(value, str) else value


def _value(value: Any, context: Context) -> Any:
    """Return a value of a workflow with its expressions resolved; one that is a whole expression is what that is."""
    if not isinstance(value, str):
        return [_value(entry, context) for entry in value] if isinstance(value, list) else value
    whole = re.fullmatch(r"\$\{\{\s*([^}]+?)\s*\}\}", value)
    if whole:
        return _look_up(whole[1], context)
    return re.sub(r"\$\{\{\s*(.+?)\s*\}\}", lambda found: _text(_look_up(found[1], context)), value)


def _look_up(expression: str, context: Context) -> Any:
    if " || " in expression:
        return next((value for part in expression.split(" || ") if (value := _look_up(part, context))), "")
    if expression in ("false", "''"):
        return False if expression == "false" else ""
    call = re.fullmatch(r"fromJSON\((.+)\)", expression)
    if call:
        return json.loads(_look_up(call[1], context))
    found: Any = context
    for part in expression.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return found


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

"""Write docs/stored.json, the index of everything that is stored: `python -m bench.stored` (in `make reference`)."""

import json
import shlex
import tarfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import upstream
from bench.examples import LAUNCHES, find_examples
from bench.observatory.records import ConfirmedStep, read_steps
from harness import session
from harness.environments.catalog import load_environments
from harness.project import Project
from harness.report import format
from harness.scenarios.catalog import find_scenario_files, load_scenario
from harness.upstream.stored import PLACE, StoredEntry, describe, hash_text

#: An example of results on a busy machine, and one of different work: they answer nothing about TensorFlow.
_LEFT_OUT = ("busy", "different-work")


def make_document() -> dict[str, Any]:
    """Return the index as JSON values."""
    project = Project.find()
    paths = find_scenario_files(project)
    entries = [entry for folder in find_examples() for entry in _make_example_entries(folder)]
    steps = map(_make_step_entry, read_steps())
    return {
        "scenarios": {
            path.stem: {"hash": hash_text(path.read_bytes()), **describe(load_scenario(path))} for path in paths
        },
        "results": make_results(),
        "entries": [asdict(entry) for entry in [*entries, *steps, *_make_release_entries(project)]],
    }


def make_results() -> dict[str, dict[str, str]]:
    """Return the result of each claim by issue, scenario and text."""
    return {f"{row['issue']} {row['scenario']} {row['reported']}": _describe(row) for row in upstream.read_rows()}


def _describe(row: upstream.Row) -> dict[str, str]:
    """Return the result of a claim, as the program shows it."""
    at, newest = row["at"], row["elsewhere"][-1] if row["elsewhere"] else None
    measured = f"{upstream.measure(at, row['claimed'])}, " if at["value"] is not None else ""
    fixed = upstream.fixed_between(row)
    return {
        "outcome": at["outcome"],
        "value": upstream.format_value(at["value"], row["claimed"]) if at["value"] is not None else "-",
        "measured": f"{measured}{at['environment']}",
        "newest": f"{newest['environment']}: {newest['outcome']}" if newest else "",
        "fixed": f"fixed between {fixed}" if fixed else "",
        "date": row["date"],
        "machine": row["machine"],
    }


def _make_example_entries(folder: Path) -> Iterator[StoredEntry]:
    """Yield an entry for each comparison of an example."""
    with TemporaryDirectory() as temporary, tarfile.open(folder / LAUNCHES) as archive:
        archive.extractall(temporary, filter="data")
        results = session.read(Path(temporary))
        if results.run.plan.profile_calls or folder.name in _LEFT_OUT:
            return
        document = json.loads(session.export(Path(temporary), "json"))
    titles = {scenario.name: scenario.title for scenario in results.run.scenarios}
    for entry in document["comparisons"]:
        compared = entry["compared"]
        ratio, interval = compared["ratio"], (compared["ratio"] or {}).get("interval")
        if not interval:
            continue
        ends = " to ".join(format.number(interval[end]) for end in ("low", "high"))
        axes = compared["cell"]["axes"]
        quantity = "" if entry["of"] == "step" else f" ({entry['of']})"
        yield StoredEntry(
            kind="example",
            name=f"{folder.name}/{entry['scenario']}",
            title=f"{titles[entry['scenario']]}: {entry['what']}{quantity}",
            result=f"{compared['verdict'] or 'no verdict'}: {format.number(ratio['value'])}× ({ends})",
            date=results.run.started[:10],
            machine=str(results.run.host.get("cpu", "")),
            command=shlex.join(results.run.command),
            words=" ".join([folder.name, *axes.values(), compared["cell"]["environment"], *axes]),
        )


def _make_step_entry(step: ConfirmedStep) -> StoredEntry:
    ends = f"{format.number(step.low)} to {format.number(step.high)}"
    names = [function.name for function in step.functions]
    return StoredEntry(
        kind="step",
        name=f"{step.scenario} {step.after}",
        title=step.title,
        result=f"{format.number(step.ratio)}× ({ends}) from {step.before}, {step.state}. {step.cause}",
        date=step.measured,
        machine=step.machine,
        command=step.command,
        words=" ".join([step.line, step.issue, *step.axes.values(), *names, *step.files, "nightly regression"]),
    )


def _make_release_entries(project: Project) -> Iterator[StoredEntry]:
    for environment in load_environments(project).values():
        keras = f", Keras {environment.keras}" if environment.keras else ""
        yield StoredEntry(
            kind="release",
            name=environment.name,
            title=f"TensorFlow {environment.tensorflow}{keras}, Python {environment.python}",
            result="",
            date=environment.released,
            machine="",
            command=f"harness run train.py -e {environment.name}",
            words="release version environment image",
        )


def write() -> None:
    """Write the index."""
    PLACE.write_text(json.dumps(make_document(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()

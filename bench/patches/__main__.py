"""Judge forty patches: `python -m bench.patches judge FOLDER`, `… truth FOLDER`, and then `… table FOLDER`.

Without a folder, `table` prints the stored results. `judge` makes a repository with two commits for each patch, and
judges it as docs/how-to/measure-a-pull-request.md says. `truth` measures a patch exactly, for a comparison: both
versions by turns in one process. `table` prints Markdown.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import session
from harness.analysis.results import Results

HERE = Path(__file__).parent
KINDS = ("true", "null", "cheat")

#: The threshold of the usual rule: the means of a few launches of one version, and of as many of the other one.
USUAL, USUAL_LAUNCHES = 0.05, 5

#: The number of turns with which `truth` measures, and the seconds of one version in a turn.
TURNS, TURN = 201, 0.01


def find_patches() -> list[Path]:
    """Return the patches of all kinds; the folder of a patch is its kind."""
    return [path for kind in KINDS for path in sorted((HERE / kind).glob("*.diff"))]


def make_repository(patch: Path, folder: Path) -> str:
    """Make a repository with the module before and after a patch, and return the module's name."""
    module = patch.read_text().split("\n", 1)[0].removeprefix("--- a/").removesuffix(".py")
    folder.mkdir(parents=True)
    (folder / f"{module}.py").write_bytes((HERE / "modules" / f"{module}.py").read_bytes())
    (folder / "inputs.py").write_bytes((HERE / "inputs.py").read_bytes())
    (folder / "bench.py").write_text((HERE / "scenario.txt").read_text().replace("MODULE", module))
    _git(folder, "init", "--quiet")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message", "The module")
    _git(folder, "apply", str(patch))
    _git(folder, "commit", "--quiet", "--all", "--message", patch.stem)
    return module


def _git(folder: Path, *words: str) -> None:
    author = ["-c", "user.name=patches", "-c", "user.email=patches@example.com"]
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True)


def judge(patch: Path, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Judge a patch, and return the verdict, and the ratio by the usual rule on the same launches."""
    place = (folder / patch.parent.name / patch.stem).absolute()
    module = make_repository(patch, place)
    command = [sys.executable, "-m", "harness", "matrix", "--base", "HEAD~", "--head", "HEAD", "-s", "bench.py"]
    command += ["-e", options.environment, "--budget", options.budget, "--json", "--exit-verdict", "--trust"]
    started = time.monotonic()
    process = subprocess.run(
        [*command, *options.matrix], cwd=place, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    seconds = time.monotonic() - started
    record = {"kind": patch.parent.name, "name": patch.stem, "module": module, "seconds": round(seconds)}
    lines = process.stdout.splitlines()
    try:
        verdict = json.loads(lines[-1])
        results = session.read(place / verdict["run"])
    except (IndexError, ValueError, KeyError):
        return record | {"verdict": "error", "error": process.stderr[-500:]}
    return record | verdict | {"exit": process.returncode, "usual": _judge_usually(results)}


def _judge_usually(results: Results) -> float | None:
    """Return the ratio of the means of the first launches of the two versions; None without one."""
    means: dict[str, list[float]] = {}
    for launch in sorted(results.launches, key=lambda launch: (launch.round, launch.order)):
        if launch.round and launch.samples and launch.role.value == "measure":
            means.setdefault(dict(launch.cell.axes)["side"], []).append(launch.mean)
    base, head = (means.get(side, [])[:USUAL_LAUNCHES] for side in ("base", "head"))
    return round(statistics.fmean(head) / statistics.fmean(base), 4) if base and head else None


def find_truth(patch: Path, folder: Path) -> dict[str, Any]:
    """Return the ratio of the times of both versions by turns in this process, with the quartiles of the turns."""
    place = folder / "truth" / patch.stem
    module = make_repository(patch, place)
    sys.path.insert(0, str(place))
    inputs = _load(place / "inputs.py", "inputs")
    after = _load(place / f"{module}.py", "after")
    before = _load(HERE / "modules" / f"{module}.py", "before")
    data = inputs.make(module, 1)
    once = min(_time(before.compute, data, 1) for _ in range(5))
    repeats = max(1, round(TURN / once))
    ratios = []
    for turn in range(TURNS):
        sides = (before, after) if turn % 2 else (after, before)
        times = {side.__name__: _time(side.compute, data, repeats) for side in sides}
        ratios.append(times["after"] / times["before"])
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"name": patch.stem, "ratio": round(middle, 4), "quartiles": [round(low, 4), round(high, 4)]}


def _load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _time(work: Any, data: Any, repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        work(data)
    return (time.perf_counter() - started) / repeats


def tabulate(folder: Path) -> Iterator[str]:
    """Yield the lines of the results as Markdown."""
    truths = {entry["name"]: entry for entry in _read(folder / "truth.jsonl")}
    yield "| patch | module | exact ratio | verdict | ratio | time | usual rule |"
    yield "| --- | --- | ---: | --- | ---: | ---: | ---: |"
    for kind in KINDS:
        yield f"| **{kind}** | | | | | | |"
        for record in _read(folder / "verdicts.jsonl"):
            if record["kind"] == kind:
                yield _tabulate_record(record, truths.get(record["name"]))


def _tabulate_record(record: dict[str, Any], truth: dict[str, Any] | None) -> str:
    low, high = record.get("interval") or (None, None)
    ratio = f"{record['ratio']:.3f} ({low:.3f} to {high:.3f})" if low is not None else "-"
    exact = f"{truth['ratio']:.3f}" if truth else "-"
    if record["kind"] == "cheat":
        ratio, exact = f"{record['ratio']:.2g}", "-"
    usual = record.get("usual")
    word = "-" if usual is None else "faster" if usual < 1 - USUAL else "slower" if usual > 1 + USUAL else "same"
    name = record["name"].replace("-", " ")
    return f"| {name} | {record['module']} | {exact} | {record['verdict']} | {ratio} | {record['seconds']} s | {word} |"


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge the patches that have no stored result yet, or print the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.patches", description=__doc__)
    parser.add_argument("command", choices=["judge", "truth", "table"])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    parser.add_argument("-e", dest="environment", default="tf2.21")
    parser.add_argument("--budget", default="90s")
    options, options.matrix = parser.parse_known_args(arguments)
    if options.command == "table":
        print("\n".join(tabulate(options.folder)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / ("truth.jsonl" if options.command == "truth" else "verdicts.jsonl")
    stored = {entry["name"] for entry in _read(path)}
    for patch in find_patches():
        if patch.stem in stored:
            continue
        if options.command == "truth":
            record = find_truth(patch, options.folder)
        else:
            record = judge(patch, options.folder, options)
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(record, flush=True)


if __name__ == "__main__":
    main()

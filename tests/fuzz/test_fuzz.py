"""Whatever a file holds, reading it ends in a sentence: no other exception, and in a campaign no input over a second.

`HARNESS_FUZZ` is a factor for the number of inputs below (0.1 by default), and `HARNESS_FUZZ_SEED` draws others. An
input that broke something is written to the test's folder. Move it to corpus/TARGET/, whose files are tried first.
"""

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest

from harness import session
from harness.analysis.results import Results
from harness.backends.events import Events
from harness.environments.catalog import load_environments, parse
from harness.files import get_cache_dir, get_data_dir
from harness.fleet.check import Interference, SlotCheck, load_stored
from harness.history.summary import summarize
from harness.machine.identity import load_machine
from harness.model.errors import HarnessError
from harness.model.history import Decision
from harness.model.run import Machine
from harness.project import Project
from harness.report import sections
from harness.scenarios.catalog import load_scenario, load_suites
from harness.store.codec import dump
from tests import factories
from tests.backends.test_events import WELL_FORMED
from tests.cli.conftest import BAKE
from tests.conftest import ROOT
from tests.fuzz import handed, mutants
from tests.history.series import KEY

CORPUS = Path(__file__).parent / "corpus"
TIMES, SEED = float(os.environ.get("HARNESS_FUZZ", "0.1")), os.environ.get("HARNESS_FUZZ_SEED", "0")

#: One passing run of so many has its report made too: that takes a hundred times as long as reading it.
REPORTED = 20


def header(data: bytes, folder: Path) -> None:
    path = folder / "x.py"
    path.write_bytes(data)
    load_scenario(path)


def suites(data: bytes, folder: Path) -> None:
    (folder / "scenarios").mkdir(exist_ok=True)
    (folder / "scenarios" / "suites.toml").write_bytes(data)
    load_suites(Project(folder))


def bake(data: bytes, folder: Path) -> None:
    (folder / "docker-bake.hcl").write_bytes(data)
    load_environments(Project(folder))


def cached(data: bytes, folder: Path) -> None:
    (folder / "docker-bake.hcl").write_text(BAKE)
    entry = get_cache_dir() / "catalog" / f"{hashlib.sha256(BAKE.encode()).hexdigest()}.json"
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_bytes(data)
    load_environments(Project(folder))


def machine_json(data: bytes, folder: Path) -> None:
    get_data_dir().mkdir(parents=True, exist_ok=True)
    (get_data_dir() / "machine.json").write_bytes(data)
    load_machine()


def fleet_json(data: bytes, folder: Path) -> None:
    get_data_dir().mkdir(parents=True, exist_ok=True)
    (get_data_dir() / "fleet.json").write_bytes(data)
    load_stored().get("cpu")


def _checked() -> bytes:
    tried = [Interference(2, 1.01, 0.99, 1.02)]
    return json.dumps({"cpu": asdict(SlotCheck(2, tried, 0.03, "step old", 2, "2026-11-25T00:00:00+00:00"))}).encode()


def events(data: bytes, folder: Path) -> None:
    Events().feed(data)


def run_json(data: bytes, folder: Path) -> None:
    report(data, _launches(), folder)


def launches(data: bytes, folder: Path) -> None:
    report(_run(), data, folder)


def report(run: bytes, launches: bytes, folder: Path) -> None:
    (folder / "run.json").write_bytes(run)
    (folder / "launches.jsonl").write_bytes(launches)
    results = session.read(folder)
    if hashlib.sha256(run + launches).digest()[0] % REPORTED == 0:
        sections.build(results)


@cache
def _run() -> bytes:
    card = {"index": 0, "name": "A", "memory_bytes": 1, "power_limit_watts": 300.0, "pcie_width": 8, "mig": ["1g.5gb"]}
    host = {"cpu": "x", "cores": 2, "memory_bytes": 8 * 2**30, "gpus": [card]}
    return dump(factories.run(controlled=True, scripts={"step": "print()"}, host=host))


@cache
def _launches() -> bytes:
    observed = {"observations": {"traces": 2, "losses": [1, 2.5]}, "fingerprint": {"parameters": 3, "out": [0.5]}}
    fields = {
        "phases": factories.PHASES,
        "resources": factories.RESOURCES,
        "memory": [(1, 100)],
        "pins": {"numpy": "1"},
    }
    two_rounds = factories.rounds(dict.fromkeys(factories.cells(), 0.01), 2, **observed, **fields)
    return b"".join(dump(launch) + b"\n" for launch in two_rounds)


#: Values of -e.
ENVIRONMENTS = [
    *(b"tf1.14,tf2.0+numpy==1.21.6", b"tensorflow==2.0.0,keras==2.3.1", b"tf-nightly@2026-11-01+keras-nightly"),
    *(b"tf2.15@py3.9,py3.11", b"tf2.0+keras@pr/12", b"latest", b"tensorflow>=2.1,<2.3[and-cuda]"),
]


@cache
def _handed_over() -> Sequence[bytes]:
    issue = {"number": 1, "title": "t", "body": "b", "state": "OPEN", "stateReason": "", "closedAt": None}
    planned = factories.cells()
    measured = factories.run(planned, controlled=True, machine=Machine("m-1", "lab"))
    summary = summarize(Results(measured, factories.rounds(dict.fromkeys(planned, 0.01), 3)))
    decision = asdict(Decision(KEY, "r", ["r"], True, "r", "2026-11-22", 1.1, 1.0, 1.2, command=["harness"]))
    documents = (decision, {"when": "2026-11-22", "text": "driver"}, [issue])
    return [*(json.dumps(document).encode() for document in documents), dump(summary)]


def _scenarios() -> Sequence[bytes]:
    return [(ROOT / "scenarios" / name).read_bytes() for name in ("matmul_loop.py", "function_power.py")]


@dataclass(frozen=True)
class Target:
    """What is read, what is mutated, whether lines of it are JSON, and how many inputs there are."""

    read: Callable[[bytes, Path], None]
    originals: Callable[[], Sequence[bytes]]
    inputs: int
    is_json: bool = False


ARTIFACT_RUN = b'{"id": "2026-11-21T04-10-00Z-3f2a", "machine": {"name": "lab"}}'

TARGETS = {
    "header": Target(header, _scenarios, 1_500),
    "suites": Target(suites, lambda: [(ROOT / "scenarios" / "suites.toml").read_bytes()], 200),
    "bake": Target(bake, lambda: [BAKE.encode()], 1_500),
    "cached": Target(
        cached, lambda: [json.dumps([asdict(entry) for entry in parse(BAKE, "x")]).encode()], 300, is_json=True
    ),
    "machine": Target(machine_json, lambda: [b'{"id": "m-0123", "name": "quiet"}'], 300, is_json=True),
    "fleet": Target(fleet_json, lambda: [_checked()], 300, is_json=True),
    "events": Target(events, lambda: [b"".join(WELL_FORMED)], 14_500, is_json=True),
    "run": Target(run_json, lambda: [_run()], 1_000, is_json=True),
    **{
        path.name: Target(handed.make_package_reader(path.name), lambda path=path: [path.read_bytes()], 1_000)  # type: ignore[misc]
        for path in sorted((ROOT / "tests" / "environments" / "package_files").iterdir())
    },
    "environment": Target(handed.environment, lambda: ENVIRONMENTS, 1_000),
    "nightly": Target(handed.nightly, lambda: [(ROOT / ".github" / "nightly.toml").read_bytes()], 1_000),
    "handed-over": Target(handed.handed_over, _handed_over, 1_000, is_json=True),
    "artifact": Target(handed.artifact, lambda: [ARTIFACT_RUN, b"2026-11-21T04-10-00Z-3f2a\n"], 1_000),
    "command": Target(handed.command, lambda: [_run()], 1_000, is_json=True),
    "launches": Target(launches, lambda: [_launches()], 1_000, is_json=True),
}


def mutant(target: Target, draw: random.Random) -> bytes:
    data = draw.choice(target.originals())
    if not target.is_json or draw.random() < 0.2:
        return mutants.of_bytes(data, draw)
    lines = data.splitlines()
    number = draw.randrange(len(lines))
    return b"\n".join([*lines[:number], mutants.of_json(lines[number], draw), *lines[number + 1 :], b""])


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_almost_right_ends_in_a_sentence(name, tmp_path, record_property):
    target, slowest = TARGETS[name], 0.0
    count = int(target.inputs * TIMES)
    record_property("inputs", count)
    saved = [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]
    for number in range(-len(saved), count):
        data = saved[number] if number < 0 else mutant(target, random.Random(f"{SEED} {name} {number}"))
        began = time.process_time()
        try:
            target.read(data, tmp_path)
        except HarnessError:
            pass
        except Exception:
            (tmp_path / "input").write_bytes(data)
            print(f"The input that broke it: {tmp_path / 'input'}")
            raise
        slowest = max(slowest, time.process_time() - began)
    if TIMES > 1:
        assert slowest < 1.0

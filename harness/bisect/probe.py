"""Measures what a search asks for, as small runs in the search's own folder, and takes up those that are there.

The runs are the state: steps.jsonl says in which order what was asked, and a search that is begun again in the same
folder gets the same answers from the stored launches, up to where it ended.
"""

import json
import math
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import session
from harness.analysis.comparisons import Compared, compare, ratios
from harness.analysis.observations import GIT_VERSION
from harness.analysis.quantities import PIECE, calls_looked_at, growth_difference, growths, launches_of
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.analysis.verdicts import Verdict, Withheld
from harness.backends import registry
from harness.bisect.comparison import LOOK_ALPHA, LookResult
from harness.bisect.request import BisectRequest
from harness.catalog.adhoc import with_asked
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.machine.lock import machine_to_itself
from harness.model.defaults import SEARCH_MEASURE, SEARCH_WARMUP
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, HarnessError, UsageError
from harness.model.launch import Interleave, Launch
from harness.model.scenario import GROWTH, STEP, Cell
from harness.plan.selection import resolve
from harness.session.planning import UNPILOTED
from harness.session.request import Request


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """A stored run of one cell in several environments, `names` by what -e takes; `of` is the quantity."""

    results: Results
    names: Mapping[str, str]
    of: str = STEP

    @classmethod
    def of_quantity(cls, results: Results, names: Mapping[str, str], of: str) -> "ProbeRun":
        """The run with the quantity's values for its samples, where it has a logarithm."""
        if of not in (STEP, GROWTH):
            results = Results(results.run, launches_of(of, results.launches, results.run.plan.clock))
        return cls(results, names, of)

    def _cell(self, text: str) -> Cell | None:
        name = self.names.get(text)
        return next((cell for cell in self.results.found.cells if cell.environment == name), None)

    def values(self, text: str) -> dict[int, float]:
        """The quantity's value of each round in an environment, in its own unit; none where it gave none."""
        cell = self._cell(text)
        if cell is None:
            return {}
        if self.of == GROWTH:
            return growths(self.results.found.numbers.get(cell, ()))
        return dict(self.results.found.series.get(cell, {}))

    def differences(self, text: str, fixed: str) -> list[float]:
        """The log of value(text) / value(fixed), of growth their difference, of each round that has both."""
        ours, theirs = self.values(text), self.values(fixed)
        both = sorted(ours.keys() & theirs.keys())
        if self.of == GROWTH:
            return [ours[number] - theirs[number] for number in both]
        return [math.log(ours[number] / theirs[number]) for number in both]

    def why_not(self, text: str) -> str:
        """Why an environment gave no number; empty where it gave one."""
        if self.values(text):
            return ""
        cell, found = self._cell(text), self.results.found
        if cell is None:
            return "it was not measured"
        if cell in found.unavailable:
            return found.unavailable[cell].reason.rstrip(".")
        launch = found.culprit(cell)
        return (launch.error or launch.status.value).rstrip(".") if launch else f"it has no {self.of}"

    def judged(self, text: str, fixed: str) -> LookResult | None:
        """What is shown of an environment against another; None if no round has both."""
        cell, other = self._cell(text), self._cell(fixed)
        if cell is None or other is None or not self.differences(text, fixed):
            return None
        found, run = self.results.found, self.results.run
        if self.of == GROWTH:
            return _grown(self, text, fixed, found.pythons(cell.environment, other.environment))
        (compared,) = compare([(cell, other)], found, run.plan.margin)
        (ratio,) = ratios([(cell, other)], found, LOOK_ALPHA)
        if compared is None:
            return None
        value = f"{(ratio or compared.ratio).value:.3g}"
        what = f"takes ×{value} the time of" if self.of == STEP else f"has ×{value} the {self.of} of"
        return _of_compared(compared, ratio, f"{text} {what} {fixed}", run.plan.margin)

    def after(self, earlier: "ProbeRun") -> "ProbeRun":
        """The rounds of both, the earlier ones first, as those of one run."""
        done = max((each.round for each in earlier.launches), default=0)
        later = [replace(each, round=each.round + done) if each.round else each for each in self.launches]
        return replace(self, results=Results(self.results.run, [*earlier.launches, *later]))

    def build(self, text: str) -> str:
        """The commit that an environment's TensorFlow was built from, as `git describe` tells it; empty if unknown."""
        cell = self._cell(text)
        told = (each.observations.get(GIT_VERSION) for each in self.results.launches if each.cell == cell)
        return next((str(each) for each in told if each), "")

    @property
    def launches(self) -> Sequence[Launch]:
        """All launches, pilots too."""
        return self.results.launches


def _of_compared(compared: Compared, ratio: Estimate | None, what: str, margin: float) -> LookResult:
    """What a comparison shows, by its `ratio` at the level of a look; a bias that was found widens that.

    Work that differs, or a control that does, takes the verdict of a table away, and leaves the interval to judge.
    """
    takes = ratio or compared.ratio
    shift = compared.bias.distance if compared.bias else 0.0
    low, high = (takes.interval.low, takes.interval.high) if takes.interval else (0.0, math.inf)
    lost = "the control differs from itself" if compared.withheld is Withheld.CONTROL else ""
    return LookResult(
        value=takes.value,
        low=low * math.exp(-shift),
        high=high * math.exp(shift),
        rounds=takes.rounds,
        floor=math.log1p(margin),
        what=what,
        remark=compared.verdict if compared.verdict is Verdict.DIFFERENT_WORK else lost,
        pythons=compared.pythons,
    )


def _grown(measured: ProbeRun, text: str, fixed: str, pythons: tuple[str, str] | None) -> LookResult | None:
    """How much more memory each call keeps; what counts as none is the allocator's pieces over the calls looked at."""
    found = growth_difference(measured.values(text), measured.values(fixed), 1.0 - LOOK_ALPHA)
    if found is None or found.interval is None:
        return None
    calls = min((calls_looked_at(launch) for launch in measured.launches if launch.memory), default=1.0)
    return LookResult(
        value=found.value,
        low=found.interval.low,
        high=found.interval.high,
        rounds=found.rounds,
        floor=PIECE / max(calls, 1.0),
        what=f"{text} keeps {found.value:+,.0f} bytes a call beside {fixed}",
        is_ratio=False,
        pythons=pythons,
    )


class Probing:
    """The runs of a search, in its folder; `listener` hears what they do. Everything it makes, it makes once."""

    def __init__(self, folder: Path, asked: BisectRequest, listener: session.Listener, *, wait: bool = False) -> None:
        self.folder = folder
        self.asked = asked
        self.spent = 0.0
        self.launched = 0
        self.runs: list[str] = []
        self._measured: list[ProbeRun] = []
        self._listener = listener
        self._wait = wait
        self._stored = self._read()
        self._project = Project.find()
        self._ready: dict[str, str] = {}

    def measure(self, kind: str, texts: Sequence[str], rounds: int, *, verdict: bool = False) -> ProbeRun:
        """So many rounds of the cell in these environments, the first being the reference; as a `kind` of step.

        With `verdict` the reference has a control. Raises what session.plan and session.run raise, and
        KeyboardInterrupt where the run was interrupted.
        """
        key = json.dumps([kind, list(texts), rounds])
        if self._stored[key]:
            stored = self._stored[key].pop(0)
            return self._taken(session.read(self.folder / stored["run"]), stored["names"])
        names = {text: self._requirement(text).environment.name for text in texts}
        asked = self.asked
        planned = session.plan(
            Request(
                scenarios=[asked.scenario],
                axes={axis: [value] for axis, value in asked.axes.items()},
                environments=texts,
                rounds=rounds,
                backend=asked.backend,
                cpus=asked.cpus,
                timeout=asked.timeout,
                margin=asked.margin,
                warmup=SEARCH_WARMUP,
                measure=SEARCH_MEASURE,
                interleave=None if asked.of == STEP else Interleave.LAUNCHES,
                results=self.folder,
            )
        )
        self._refuse_several(planned.cells)
        plan = replace(planned.plan, piloted=asked.of not in UNPILOTED)
        if not verdict:
            plan = replace(plan, groups=[replace(group, control=None) for group in plan.groups])
        planned = replace(planned, plan=plan)
        ended = session.run(planned, self._listener, wait=self._wait)
        if ended.broken_off:
            raise ended.broken_off
        if ended.interrupted:
            raise KeyboardInterrupt
        self._write({"key": key, "run": ended.folder.name, "names": names})
        return self._taken(ended.results, names)

    def why_not(self, text: str, *, alone: bool = True) -> str:
        """Make an environment unless it is there; why it cannot be had, empty where it can.

        `alone`: no other run may measure meanwhile; it is False while one of ours does.
        """
        if text not in self._ready:
            key = json.dumps(["why not", text])
            if self._stored[key]:
                self._ready[text] = self._stored[key][0]["why"]
            else:
                self._ready[text] = why = self._made(text, alone)
                if why and "does not answer" not in why:
                    self._write({"key": key, "why": why})
        return self._ready[text]

    def estimated(self, environments: int, rounds: int, *, verdict: bool = False) -> float:
        """What so many rounds of so many environments would take, in seconds, by what launches took until now."""
        each = self.spent / self.launched if self.launched else 0.0
        return each * rounds * (environments + verdict)

    def pins(self, text: str) -> Mapping[str, str]:
        """The packages of an environment, by its lock."""
        return self._requirement(text).lock.pins

    def python(self, text: str) -> str:
        """The Python of an environment, X.Y."""
        return self._requirement(text).environment.python

    def kept(self, name: str, value: Any) -> Any:
        """What the search was told under this name when it began first, else this JSON value, which is kept."""
        key = json.dumps(["kept", name])
        if not self._stored[key]:
            self._write({"key": key, "value": value})
            self._stored[key].append({"value": value})
        return self._stored[key][0]["value"]

    def builds(self) -> dict[str, str]:
        """The commits that TensorFlow was built from, by what -e takes, of all that was measured."""
        return {text: build for each in self._measured for text in each.names if (build := each.build(text))}

    def knows(self, name: str) -> bool:
        """Whether something is kept under this name."""
        return bool(self._stored[json.dumps(["kept", name])])

    def _requirement(self, text: str) -> Requirement:
        environments, (name,) = with_asked(load_environments(self._project), [text])
        resolve([name], list(environments), "environment")
        return load_lock(self._project, environments[name], Device.CPU)

    def _made(self, text: str, alone: bool) -> str:
        held: AbstractContextManager[None] = nullcontext()
        if alone:
            held = machine_to_itself(self._listener.say if self._wait else None)
        try:
            requirement = self._requirement(text)
        except HarnessError as error:
            return _line(error)
        backend, _ = registry.choose(self.asked.backend, self._project.root, f"bisect-{secrets.token_hex(2)}")
        if not backend.unprepared([requirement]):
            return ""
        with held:
            backend.check_room([requirement])
            try:
                with self._listener.preparing() as progress:
                    made = backend.prepare([requirement], progress)
            except CannotRunHereError as error:
                return _line(error)
        missing = made.unavailable.get(requirement.environment.name)
        return _line(missing) if missing else ""

    def _taken(self, results: Results, names: Mapping[str, str]) -> ProbeRun:
        measured = ProbeRun.of_quantity(results, names, self.asked.of)
        self.runs.append(results.run.id)
        self._measured.append(measured)
        self.launched += len(measured.launches)
        self.spent += sum(launch.seconds for launch in measured.launches)
        return measured

    def _refuse_several(self, cells: Sequence[Cell]) -> None:
        axes = {tuple(cell.axes.items()) for cell in cells}
        if len(axes) > 1:
            open_axes = [axis for axis in cells[0].axes if len({cell.axes[axis] for cell in cells}) > 1]
            raise UsageError(
                f"A search measures one cell, and these are {len(axes)}: {', '.join(open_axes)} is open.",
                f"Choose one value of each: {' '.join(f'-a {axis}={cells[0].axes[axis]}' for axis in open_axes)}",
            )

    def _read(self) -> dict[str, list[dict[str, Any]]]:
        steps: dict[str, list[dict[str, Any]]] = defaultdict(list)
        path = self.folder / "steps.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
            try:
                step = json.loads(line)
            except ValueError:  # the torn end of a search that was killed
                continue
            steps[step["key"]].append(step)
        return steps

    def _write(self, step: Mapping[str, Any]) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / "steps.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(step) + "\n")
        except OSError as error:
            raise CannotRunHereError(
                f"{self.folder} cannot be written: {error.strerror}.", "Choose another folder with --results."
            ) from None


def _line(error: HarnessError) -> str:
    """An error as a reason, in a line."""
    return " ".join(error.message.split()).rstrip(".")[:300]

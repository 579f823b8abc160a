"""The folder of a search. bisect.json contains the request, and steps.jsonl contains the steps in order.

A resumed search takes the same steps, and reads the results of its earlier steps from the stored runs.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.bisect.request import BisectRequest
from harness.files import append, parse_json, read, write_atomically
from harness.model.errors import UsageError, explain_unwritable
from harness.session.starting import make_run_id
from harness.store.signature import is_from_here, sign

#: The advice if the folder of a search cannot be written.
_ADVICE = "Choose another folder with --results."


def create_folder(request: BisectRequest) -> Path:
    """Create the folder of a new search, with its request. Raises CannotRunHereError if it can't be written."""
    folder = request.results / f"bisect-{make_run_id(datetime.now(UTC))}"
    with explain_unwritable(f"The results folder {folder}", _ADVICE):
        document = json.dumps({"schema": 1, **asdict(request)}, indent=2, default=str) + "\n"
        write_atomically(folder / "bisect.json", sign(document.encode()))
    return folder


def read_request(folder: Path, budget: float | None = None) -> BisectRequest:
    """Return the request of a stored search. If given, `budget` (seconds) replaces its budget. Raises UsageError."""
    path = folder / "bisect.json"
    try:
        data = read(Path(path.name), within=folder)
    except OSError:
        raise UsageError(
            f"{folder} isn't the folder of a search: bisect.json is missing.",
            "Pass one of the folders results/bisect-…",
        ) from None
    if not is_from_here(data):
        raise UsageError(
            f"{folder} was not started by this user on this machine, or its bisect.json has changed since. So resuming "
            "this search could run another user's request.",
            "Start your own search: harness bisect",
        )
    try:
        fields = {key: value for key, value in parse_json(data).items() if key not in ("schema", "signature")}
        request = BisectRequest(**{**fields, "results": Path(fields["results"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is corrupt: {error}.") from None
    return replace(request, budget=budget) if budget else request


class StepLog:
    """The stored steps of a search. A step is a JSON object with a key that names its kind."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "steps.jsonl"
        self._steps: dict[str, list[dict[str, Any]]] = defaultdict(list)
        text = self._path.read_text(encoding="utf-8", errors="replace") if self._path.is_file() else ""
        self._is_torn = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                step = parse_json(line)
                self._steps[step["key"]].append(step)
            except (ValueError, TypeError, KeyError):  # incomplete last line, if the search was killed
                continue

    @property
    def runs(self) -> list[str]:
        """The ids of the runs of steps that `next` hasn't returned."""
        return [step["run"] for steps in self._steps.values() for step in steps if "run" in step]

    def next(self, key: Sequence[Any]) -> dict[str, Any] | None:
        """Return the next stored step with this key, and remove it from this log; None if there is none."""
        steps = self._steps[json.dumps(key)]
        return steps.pop(0) if steps else None

    def append(self, key: Sequence[Any], **fields: Any) -> None:
        """Store a step. Raises CannotRunHereError if the folder can't be written."""
        with explain_unwritable(f"The results folder {self._path.parent}", _ADVICE):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            line = json.dumps({"key": json.dumps(key), **fields}).encode()
            append(self._path, b"\n" + line if self._is_torn else line)
            self._is_torn = False

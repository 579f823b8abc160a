"""A run's free-form facts as pairs of label and text; keys that nobody foresaw are shown by their names."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model.run import Run
from harness.report.format import bytes_


@dataclass(frozen=True, slots=True)
class Machine:
    """Where launches ran: empty or 0 what is not known. `engine` is what launched them; `host` and `backend` are all
    that was recorded, as label and text."""

    cpu: str
    cores: int
    memory: str
    gpus: Sequence[str]
    engine: str
    host: Sequence[tuple[str, str]]
    backend: Sequence[tuple[str, str]]


def pairs(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and text of every fact that says something: `memory_bytes` becomes `memory`, in a unit."""
    told = [(_label(key), _text(key, value)) for key, value in facts.items()]
    return [(name, text) for name, text in told if text]


def machine(run: Run) -> Machine:
    """The machine that launches ran on: the engine's where that is another one than this."""
    remote = run.backend.is_remote
    facts = run.backend.told() if remote else run.host
    memory = facts.get("memory_bytes")
    cards = run.host.get("gpus")
    return Machine(
        cpu=str(facts.get("cpu") or facts.get("architecture") or ""),
        cores=int(facts.get("cpus" if remote else "cores") or 0),
        memory=bytes_(memory) if isinstance(memory, int | float) and memory else "",
        gpus=[str(card.get("name", "")) for card in cards] if isinstance(cards, list) else [],
        engine=run.backend.engine or run.backend.name,
        host=pairs(run.host),
        backend=pairs(run.backend.told()),
    )


def cpus(numbers: Iterable[int]) -> str:
    """CPU numbers with runs joined: `0-3, 8`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(str(end) for end in span) for span in spans)


def _label(key: str) -> str:
    words = key.removesuffix("_bytes").replace("_", " ")
    return {"cpu": "CPU", "gpus": "GPUs", "gpu telemetry": "GPU telemetry", "gpus by": "GPUs by"}.get(words, words)


def _text(key: str, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if key.endswith("_bytes") and isinstance(value, int | float):
        return bytes_(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(str(item) for item in value)
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return "; ".join(", ".join(f"{label} {text}" for label, text in pairs(item)) for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

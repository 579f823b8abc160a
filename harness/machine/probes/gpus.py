"""What launches on a GPU need: a driver, a way into containers, and a GPU that nothing else uses."""

from dataclasses import asdict

from harness.machine.probes.finding import Finding, Level
from harness.model.gpu import Card, GpuHost, shown


def driver(host: GpuHost, *, wanted: bool) -> Finding:
    """The driver; that there is none is bad where a GPU is `wanted`, and else not known to matter."""
    if host.absent:
        return Finding(
            "GPU", Level.BAD if wanted else Level.UNKNOWN, {"absent": host.absent, "wanted": wanted}, kind="no GPU"
        )
    cuda = shown(host.cuda) if host.cuda else None
    return Finding("NVIDIA driver", Level.GOOD, {"version": host.driver, "cuda": cuda})


def access(way: str, *, error: str = "", wanted: bool) -> Finding:
    """By which way the engine gives GPUs to containers, or the `error` with which it does not."""
    level = Level.GOOD if not error else Level.BAD if wanted else Level.WARN
    return Finding("GPU access", level, {"way": way, "error": error})


def card(found: Card) -> Finding:
    """One GPU: what it is, and what else computes on it."""
    others = [asdict(process) for process in found.processes]
    facts = {
        "index": found.index,
        "model": found.name,
        "capability": shown(found.capability),
        "memory": found.memory_bytes,
        "processes": others,
        "partitioned": found.is_partitioned,
    }
    level = Level.WARN if others or found.is_partitioned else Level.GOOD
    return Finding(f"GPU {found.index}", level, facts, kind="GPU")

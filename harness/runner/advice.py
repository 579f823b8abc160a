"""One line of advice for each way in which a launch can end without a number."""

from harness.model.launch import Outcome, Status

_ADVICE = {
    Status.OK: "",
    Status.FAILED: "Its error output is in details.md and report.html; to see all of it, run the scenario by hand in "
    "the environment.",
    Status.TIMEOUT: "Give it longer with --timeout, or choose a smaller model or data.",
    Status.OOM: "Give it more with --memory, or choose a smaller model or data.",
    Status.NOT_AVAILABLE: "Choose an environment that has what it needs.",
    Status.CPU_FALLBACK: "Its error output says what TensorFlow missed; what this machine has: harness doctor --gpu",
    # what to type names the run's folder, which whoever shows it knows
    Status.INTERRUPTED: "",
}


def advice(outcome: Outcome) -> str:
    """What to do about a launch that ended so; empty where nothing was wrong with it."""
    return _ADVICE[outcome.status]

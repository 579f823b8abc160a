"""What rounds cost, in seconds of launching."""

from collections import defaultdict
from collections.abc import Sequence

from harness.model.launch import Launch


def seconds_per_round(launches: Sequence[Launch]) -> dict[str, float]:
    """By group, the mean over its rounds of what its launches took, in seconds; 0 in runs that did not record it."""
    rounds: dict[str, dict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    for launch in launches:
        rounds[launch.group][launch.round, launch.attempt] += launch.seconds
    return {group: sum(each.values()) / len(each) for group, each in rounds.items()}

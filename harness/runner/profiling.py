"""A pass under the profiler: every cell once, in launches of their own that enter no statistic."""

from harness.model.launch import Launch, Role
from harness.plan.groups import order
from harness.runner.walk import SHORT, Slot, Walk


def profile(walk: Walk) -> list[Launch]:
    """Launch every cell of the walk's plan, which has `profile_calls`; returns the launches.

    Cells are launched in an order drawn from the seed, as in a round: a machine that gets slower meanwhile changes
    seconds, and hardly shares.
    """
    return [
        walk.launch(Slot(group.name, 0, 0, place, Role.PROFILE), cell, SHORT)
        for group in walk.plan.groups
        for place, cell in enumerate(order(walk.plan.seed, group.name, 0, group.cells))
    ]

"""Which slots a request means, of this machine or of a cluster."""

import os
from collections.abc import Sequence

from harness.fleet import check
from harness.fleet.coordinator import Engine
from harness.fleet.ray import RayCluster
from harness.fleet.slots import LocalSlots
from harness.machine.slots import Slot, divided
from harness.model.errors import UsageError
from harness.model.gpu import Card
from harness.model.launch import Limits
from harness.session.planning import Planned
from harness.session.request import AUTO, LaunchRequest, Request


def is_asked(request: LaunchRequest) -> bool:
    """Whether a request is for slots rather than for the machine as a whole."""
    return isinstance(request, Request) and bool(request.slots or request.spread or request.on.startswith("ray"))


def chosen(planned: Planned, *, wait: bool = False) -> Engine:
    """The slots that a plan's request asks for.

    Raises UsageError for more than there are, and CannotRunHereError where their interference was not measured, or is
    beyond what counts as no difference.
    """
    request = planned.request
    assert isinstance(request, Request)
    asked = None if request.slots in ("", AUTO) else int(request.slots)
    cards = slot_cards(planned)
    if request.spread and len(cards) < 2:
        raise UsageError("--spread is for several GPUs.", "Name them, such as --gpus 0,1.")
    wanted = asked or (len(cards) if request.spread else None)
    what = kind(planned.plan.limits)
    if request.on:
        return _cluster(request, what, wanted, wait=wait)
    count = check.allowed(what, wanted)
    return LocalSlots(len(divided(count, os.sched_getaffinity(0), cards)), wait=wait)


def _cluster(request: Request, kind: str, wanted: int | None, *, wait: bool) -> Engine:
    """The Ray cluster that is asked for: RAY_ADDRESS's where none is named, else one of this machine alone."""
    address = request.on if request.on != "ray" else "auto" if os.environ.get("RAY_ADDRESS") else "local"
    if address == "local":
        return RayCluster("local", check.allowed(kind, wanted or (None if request.slots else 1)), kind, wait=wait)
    if request.slots or request.spread:
        raise UsageError(
            f"--slots is of this machine, and --on {request.on} takes the slots that its nodes offer.",
            "Leave --slots out.",
        )
    return RayCluster(address, kind=kind, wait=wait)


def slot_cards(planned: Planned) -> Sequence[Card]:
    """The GPUs that slots have, one each. Raises UsageError where they are of several models."""
    cards = planned.cards if planned.request.gpus else planned.gpu_host.cards
    models = {card.name: card for card in cards}
    if len(models) > 1:
        named = "; ".join(f"{card.index}: {card.name}" for card in models.values())
        raise UsageError(
            f"Slots have one GPU each, and these are of several models ({named}): what a group measures would depend "
            "on its slot.",
            "Name GPUs of one model with --gpus.",
        )
    return cards


def kind(limits: Limits) -> str:
    """What kind of slots: what one of them disturbs in another depends on it."""
    return "gpu" if limits.gpus else "cpu"


def slots_of(planned: Planned, count: int | None) -> list[Slot]:
    """This machine in so many slots for a plan."""
    return divided(count, os.sched_getaffinity(0), slot_cards(planned))

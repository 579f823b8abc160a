"""What a session takes from `harness.cli` until it stands below, and asks of backends that do not tell it yet.

The backend's choice, GPUs, the look beforehand; and which environments are not ready, without preparing any.
"""

from collections.abc import Sequence
from pathlib import Path

from harness.backends.environments import Environments
from harness.backends.image import State, states
from harness.backends.listing import list_images
from harness.cli import gpus, preflight
from harness.cli.choice import BackendName, choose
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError

__all__ = ["BackendName", "choose", "gpus", "preflight", "unprepared"]


def unprepared(name: BackendName, root: Path, needed: Sequence[Requirement]) -> tuple[BackendName, list[str]]:
    """The backend that `name` means, and the environments that it would build or install first.

    Raises CannotRunHereError where no engine answers, though one was asked for.
    """
    if name is not BackendName.LOCAL:
        try:
            found = states(root, list(needed), list_images)
        except CannotRunHereError:
            if name is BackendName.DOCKER:
                raise
        else:
            missing = [each for each, (state, _) in zip(needed, found, strict=True) if state is not State.BUILT]
            return BackendName.DOCKER, [each.environment.name for each in missing]
    made = Environments(root)
    return BackendName.LOCAL, [each.environment.name for each in needed if not made.is_ready(each)]

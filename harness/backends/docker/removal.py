"""Removal of containers, even if the engine doesn't respond, or is still creating a container."""

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.backends.docker.engine import Engine, get_timeout, is_late, raise_as_sentences
from harness.backends.docker.specification import OWNER_LABEL, RUN_LABEL, get_owner
from harness.machine.lock import get_run_lock_path, is_held
from harness.model.errors import CannotRunHereError
from harness.model.texts import counted

if TYPE_CHECKING:
    from docker import APIClient

#: How many seconds to wait for the removal of a container, after a launch and after an interrupted launch. After that,
#: the removal continues in the background.
REMOVAL_SECONDS = 60.0
INTERRUPTED_SECONDS = 5.0

#: How many seconds a removal is repeated, unless this process ends first.
_RETRY_SECONDS = 900.0


def remove(api: "APIClient", name: str, seconds: float, *, patience: float = 0.0) -> bool:
    """Remove a container and its processes. Return whether it was removed within `seconds`.

    If the removal takes longer, or the engine doesn't respond, it continues in the background. `patience` is the number
    of seconds that the engine may still need to create the container.
    """
    was_tried, is_removed = threading.Event(), threading.Event()
    threading.Thread(target=_repeat_removal, args=(api, name, patience, was_tried, is_removed), daemon=True).start()
    was_tried.wait(seconds)
    return is_removed.is_set()


def _repeat_removal(
    api: "APIClient", name: str, patience: float, was_tried: threading.Event, is_removed: threading.Event
) -> None:
    """Repeat the removal until it succeeds, then set both events. If no engine is running, set only `was_tried`."""
    from docker.errors import APIError, NotFound
    from requests.exceptions import RequestException

    start_time = time.monotonic()
    while (elapsed := time.monotonic() - start_time) < _RETRY_SECONDS:
        try:
            api.remove_container(name, force=True, v=True)
            break
        except NotFound:
            if elapsed >= patience:
                break
            time.sleep(0.05)
        except (APIError, RequestException) as error:  # for example, the container is already being removed
            if isinstance(error, RequestException) and not isinstance(error, APIError) and not is_late(error):
                was_tried.set()
            time.sleep(min(1.0, 0.05 + elapsed / 10))
    else:
        return
    is_removed.set()
    was_tried.set()


def remove_containers(engine: Engine, run: str) -> int:
    """Remove the containers of a run, and return their number.

    Without a run, remove the containers of all ended runs of this user. Raises CannotRunHereError if some remain.
    """
    label = f"{RUN_LABEL}={run}" if run else RUN_LABEL
    with raise_as_sentences("remove containers"):
        containers = engine.api.containers(all=True, filters={"label": label})
    if not run:
        containers = [container for container in containers if _is_ours_and_ended(container["Labels"])]
    deadline = time.monotonic() + min(REMOVAL_SECONDS, get_timeout())
    remaining = [
        container
        for container in containers
        if not remove(engine.api, container["Id"], max(0.0, deadline - time.monotonic()))
    ]
    if remaining:
        raise CannotRunHereError(
            f"Docker Engine is still removing {counted(len(remaining), 'container')}.",
            f"To check that no container is left: harness clean {run}".rstrip(),
        )
    return len(containers)


def _is_ours_and_ended(labels: Mapping[str, str]) -> bool:
    """Return whether the run in a container's label belongs to this user, and isn't running."""
    return labels.get(OWNER_LABEL, get_owner()) == get_owner() and not is_held(get_run_lock_path(labels[RUN_LABEL]))

"""Removal of a container, even if the engine doesn't respond, or is still creating the container."""

import threading
import time
from typing import TYPE_CHECKING

from harness.backends.docker.engine import is_late

if TYPE_CHECKING:
    from docker import APIClient

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

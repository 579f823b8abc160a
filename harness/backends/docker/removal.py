"""Removal of a container, even if the engine doesn't respond, or is still creating the container."""

import threading
import time
from typing import TYPE_CHECKING

from harness.backends.docker.engine import is_late

if TYPE_CHECKING:
    from docker import APIClient

#: For how many seconds a removal is repeated, unless this process ends before.
_RETRY_SECONDS = 900.0


def remove(api: "APIClient", name: str, seconds: float, *, patience: float = 0.0) -> bool:
    """Remove a container and its processes. Return whether it was removed within `seconds`.

    If the removal takes longer, or the engine doesn't respond, it continues in the background. `patience` is the number
    of seconds that the engine may still need to create the container.
    """
    tried, gone = threading.Event(), threading.Event()
    threading.Thread(target=_repeat, args=(api, name, patience, tried, gone), daemon=True).start()
    tried.wait(seconds)
    return gone.is_set()


def _repeat(api: "APIClient", name: str, patience: float, tried: threading.Event, gone: threading.Event) -> None:
    """Repeat the removal until the container is removed. Set `gone` and `tried` then, or `tried` without an engine."""
    from docker.errors import APIError, NotFound
    from requests.exceptions import RequestException

    started = time.monotonic()
    while (passed := time.monotonic() - started) < _RETRY_SECONDS:
        try:
            api.remove_container(name, force=True, v=True)
            break
        except NotFound:
            if passed >= patience:
                break
            time.sleep(0.05)
        except (APIError, RequestException) as error:  # for example, the container is already being removed
            if isinstance(error, RequestException) and not isinstance(error, APIError) and not is_late(error):
                tried.set()
            time.sleep(min(1.0, 0.05 + passed / 10))
    else:
        return
    gone.set()
    tried.set()

"""Prepares the machines of a fleet before anything is measured: each one launches every cell once, and briefly.

So each machine has its images or environments, and a machine that can't measure is known before a long run.
"""

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from harness.fleet import dispatch
from harness.fleet.parcel import pack
from harness.fleet.places import Place
from harness.model.errors import CannotRunHereError, Exit
from harness.session.listener import Listener
from harness.session.planning.planned import Planned
from harness.session.request import Request
from harness.session.starting import make_run_id

#: The measurement time of a launch, in seconds.
MEASURE = 0.05


def prepare_places(planned: Planned, listener: Listener) -> list[tuple[str, bool]]:
    """Launch each cell of a plan once on each machine of `--on`, all machines at the same time. Nothing is kept.

    Return a line about each machine, and whether it can measure. Raises UsageError for invalid machines, and
    CannotRunHereError if a cluster doesn't answer.
    """
    request = dispatch.check_request(planned)
    short = replace(request, on="", slots="", rounds=1, warmup=0.0, measure=MEASURE, results=Request().results)
    parcel, short = pack(short, planned.scenarios.values())
    words = [*short.command()[1:], "--wait"]
    places = dispatch.open_places(request.on, 1, parcel, listener, words=words)
    with ThreadPoolExecutor(len(places)) as pool:
        try:
            return list(pool.map(lambda place: _prepare(place, words), places))
        except BaseException:
            for place in places:
                place.stop()
            raise


def _prepare(place: Place, words: Sequence[str]) -> tuple[str, bool]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            code, message = place.measure(f"check-{make_run_id(datetime.now(UTC))}", words, Path(folder) / "run", None)
        except CannotRunHereError as error:
            code, message = Exit.CANNOT_RUN_HERE, str(error)
    if code == Exit.OK:
        return f"{place.name}: ready after {time.monotonic() - started:.0f} s", True
    return f"{place.name}: {message or f'exit code {code}'}", False

"""`--slots`: several slots of this machine at once, each with a process of its own."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import connection

from harness.fleet.coordinator import Place
from harness.fleet.unit import Message, Started, Unit, kept
from harness.machine.identity import machine


class LocalSlots:
    """An engine: so many slots of this machine."""

    def __init__(self, slots: int, *, wait: bool = False) -> None:
        who = machine()
        self._wait = wait
        self._places = [Place(who.id, slots, who.name or "this machine") for _ in range(slots)]
        self._started: dict[Place, Started] = {}

    def __enter__(self) -> "LocalSlots":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for started in self._started.values():
            started.close()
        self._started.clear()

    def places(self) -> Sequence[Place]:
        """All of them, always."""
        return self._places

    def start(self, place: Place, unit: Unit) -> None:
        """Begin a unit in a place that does nothing."""
        if place in self._started:
            self._started.pop(place).close()
        place.unit = replace(unit, wait=self._wait)
        self._started[place] = Started(place.unit)

    def take(self) -> list[tuple[Place, Message]]:
        """What has happened since."""
        busy = {started.connection: place for place, started in self._started.items() if place.unit}
        ready = connection.wait(list(busy), 1.0)
        return [
            (place, message)
            for one, place in busy.items()
            if one in ready
            for message in self._started[place].take(0.0)
        ]

    def stop(self) -> None:
        """Have all units end what they measure."""
        for place, started in self._started.items():
            if place.unit:
                started.stop()

    def forget(self, run: str) -> None:
        """Remove what units of the run have kept."""
        shutil.rmtree(kept(run), ignore_errors=True)

"""`--on ray`: the slots of a Ray cluster, each with an agent that starts the processes of its units.

Slots are custom resources named `slot`: Ray hands them out, and counts no CPU and no GPU itself, whose division is the
harness's own (machine/slots.py). Nothing is tried again by Ray: what is lost comes to the coordinator. What happens is
fetched from the agents as it happens, which works through Ray's client too (it has no streaming generators).
"""

import contextlib
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.fleet import check
from harness.fleet.coordinator import Place
from harness.fleet.unit import Message, Started, Unit, kept
from harness.machine.identity import machine
from harness.model.errors import CannotRunHereError, HarnessError
from harness.model.texts import counted

#: The custom resource that a node offers as often as it has slots.
RESOURCE = "slot"

#: What to do about a cluster that does not answer.
SILENT = "Type `ray status` on its head node: --on takes the port of Ray's client there, usually 10001."

#: How long agents may take to start before the run goes on without them, and how often new nodes are looked for.
START, LOOK = 120.0, 5.0

#: How long an agent waits for something to happen before it says that nothing has; and what is waited for an answer.
POLL, ANSWER = 2.0, 10.0

#: The object store of a cluster that is started here: nothing large goes through it. Ray's least is 75 MiB.
STORE_BYTES = 80 * 2**20


class Agent:
    """What stands in a slot of a node, in a process of Ray's."""

    def __init__(self, slots: int, kind: str) -> None:
        self._slots, self._kind = slots, kind
        self._started: Started | None = None

    def who(self) -> tuple[str, str, str]:
        """The id and the name of its machine; and why its slots cannot be used, empty where they can."""
        try:
            here = machine()
            check.allowed(self._kind, self._slots)
        except HarnessError as error:
            return os.uname().nodename, "", str(error)
        return here.id, here.name, ""

    def start(self, unit: Unit) -> None:
        """Begin a unit; the one before it has ended."""
        self.close()
        self._started = Started(unit)

    def take(self) -> list[Message]:
        """What has happened since, as soon as anything has, or after some time."""
        return self._started.take(POLL) if self._started else []

    def stop(self) -> None:
        """Have the unit end what it measures."""
        if self._started:
            self._started.stop()

    def close(self) -> None:
        """See the last unit's end."""
        if self._started:
            self._started.close()
            self._started = None

    def forget(self, run: str) -> None:
        """Remove what units of the run have kept here."""
        self.close()
        shutil.rmtree(kept(run), ignore_errors=True)


class RayCluster:
    """An engine: all slots of a Ray cluster.

    `address` is `local` (a cluster that is started here, with `slots` slots, and ends with the run), `auto` (that of
    RAY_ADDRESS, or the one whose node this is), or what `ray.init` takes. `kind` is that of the slots (fleet/check.py).
    """

    def __init__(self, address: str, slots: int = 1, kind: str = "cpu", *, wait: bool = False) -> None:
        self._address, self._slots, self._kind, self._wait = address, slots, kind, wait
        self._places: list[Place] = []
        self._agents: dict[Place, Any] = {}
        self._nodes: dict[Place, str] = {}
        self._asked: dict[Any, Place] = {}  # by the answer that is waited for
        self._joining: dict[Any, tuple[Any, str, int]] = {}  # by answer: an agent, its node, and the node's slots
        self._refused: dict[str, str] = {}
        self._told: list[tuple[Place, Message]] = []
        self._looked = 0.0

    def __enter__(self) -> "RayCluster":
        # before Ray is imported: its processes ask nobody, and tell nobody
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise CannotRunHereError(
                "--on ray needs Ray.", "Install it into the harness's environment: python -m pip install ray"
            ) from None
        self._ray: Any = ray
        new: dict[str, Any] = {
            "num_cpus": 0,
            "num_gpus": 0,
            "resources": {RESOURCE: self._slots},
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        }
        self._knock()
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(
                self._address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                **(new if self._address == "local" else {}),
            )
        except (OSError, RuntimeError, ValueError, TimeoutError) as error:
            told = next(iter(str(error).splitlines()), type(error).__name__)
            raise CannotRunHereError(f"The Ray cluster {self._address} does not answer: {told}", SILENT) from None
        finally:
            signal.signal(signal.SIGTERM, before)  # Ray has its own, which ends the process
        try:
            self._wait_for_agents()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _knock(self) -> None:
        """Raise CannotRunHereError where nobody answers at the cluster's address: Ray would try for minutes."""
        address = os.environ.get("RAY_ADDRESS", "") if self._address == "auto" else self._address
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if not port.isdecimal():
            return
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()
        except (OSError, OverflowError) as error:
            told = getattr(error, "strerror", None) or str(error)
            raise CannotRunHereError(f"The Ray cluster {address} does not answer: {told}.", SILENT) from None

    def __exit__(self, *_: object) -> None:
        for agent in [*self._agents.values(), *(agent for agent, _, _ in self._joining.values())]:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._ray.kill(agent)
        self._ray.shutdown()

    def places(self) -> Sequence[Place]:
        """The slots whose agents have answered."""
        return self._places

    def start(self, place: Place, unit: Unit) -> None:
        """Begin a unit in a place that does nothing."""
        place.unit = replace(unit, wait=self._wait)
        self._agents[place].start.remote(place.unit)
        self._ask(place)

    def take(self) -> list[tuple[Place, Message]]:
        """What has happened since."""
        self._look()
        if self._asked and not self._told:
            ready, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=1.0)
            if ready:
                ready, _ = self._ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)
            for answer in ready:
                self._hear(self._asked.pop(answer), answer)
        elif not self._told:
            time.sleep(0.1)
        told, self._told = self._told, []
        return told

    def stop(self) -> None:
        """Have all units end what they measure."""
        for place, agent in self._agents.items():
            if place.unit:
                agent.stop.remote()

    def forget(self, run: str) -> None:
        """Remove what units of the run have kept."""
        answers = [agent.forget.remote(run) for agent in self._agents.values()]
        self._ray.wait(answers, num_returns=len(answers), timeout=ANSWER)

    def _ask(self, place: Place) -> None:
        self._asked[self._agents[place].take.remote()] = place

    def _hear(self, place: Place, answer: Any) -> None:
        """An agent has answered, or its death has."""
        try:
            messages: list[Message] = self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            self._remove(place, _why(error))
            return
        self._told += [(place, message) for message in messages]
        if not any(name in ("over", "lost") for name, _ in messages):
            self._ask(place)

    def _remove(self, place: Place, why: str) -> None:
        self._places.remove(place)
        del self._agents[place], self._nodes[place]
        if place.unit:
            self._told.append((place, ("lost", (why,))))

    def _wait_for_agents(self) -> None:
        """Until those of all nodes have answered, or some have and the others took too long."""
        begun = time.monotonic()
        self._look()
        while self._joining and time.monotonic() - begun < START:
            self._join(1.0)
            self._look()
        if self._places:
            return
        if self._refused:
            raise CannotRunHereError("\n".join(self._refused.values()))
        if self._joining:
            waiting = counted(len(self._joining), "slot")
            raise CannotRunHereError(
                f"{waiting} of the Ray cluster did not answer in {START:g} s: others may use them."
            )
        raise CannotRunHereError(
            f"No node of the Ray cluster offers slots (the custom resource `{RESOURCE}`).",
            f"""On each machine: harness fleet check, then ray start … --resources='{{"{RESOURCE}": 2}}'""",
        )

    def _look(self) -> None:
        """Have an agent in each slot of each node; nodes come and go."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        alive = {node["NodeID"]: int(node["Resources"].get(RESOURCE, 0)) for node in self._ray.nodes() if node["Alive"]}
        for place, node in list(self._nodes.items()):
            if node not in alive and place.unit is None:
                self._remove(place, "")
        have = [*self._nodes.values(), *(node for _, node, _ in self._joining.values())]
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for node, slots in alive.items():
            if node in self._refused:
                continue
            for _ in range(slots - have.count(node)):
                kind: Any = self._ray.remote(Agent).options(
                    num_cpus=0,
                    resources={RESOURCE: 1},
                    max_restarts=0,
                    max_task_retries=0,
                    # `stop` comes while `take` waits
                    max_concurrency=2,
                    scheduling_strategy=strategy(node, soft=False),
                )
                agent = kind.remote(slots, self._kind)
                self._joining[agent.who.remote()] = (agent, node, slots)
        self._join(0.0)

    def _join(self, seconds: float) -> None:
        """Take in the agents that have answered."""
        if not self._joining:
            return
        ready, _ = self._ray.wait(list(self._joining), num_returns=len(self._joining), timeout=seconds)
        for answer in ready:
            agent, node, slots = self._joining.pop(answer)
            try:
                identity, name, refused = self._ray.get(answer)
            except self._ray.exceptions.RayError as error:
                self._refused[node] = f"A slot of the Ray cluster cannot be used: {_why(error)}"
                continue
            if refused:
                self._refused[node] = f"{name or identity}: {refused}"
                continue
            place = Place(identity, slots, name)
            self._places.append(place)
            self._agents[place], self._nodes[place] = agent, node


def _why(error: Exception) -> str:
    """The first line of what Ray says of a death."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")

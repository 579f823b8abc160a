"""Shows on stderr how environments are prepared: a live display on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from harness.model.backend import Stage, Step

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_ENDED = (Stage.READY, Stage.FAILED)


class PlainBuilding:
    """One line a step; what waits is not told."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, step: Step) -> None:
        """A step was taken."""
        if step.stage is not Stage.WAITING:
            print(step, file=sys.stderr, flush=True)


class LiveBuilding:
    """A line for each environment that waits or is worked on; what has ended leaves its line above.

    `clock` gives seconds.
    """

    def __init__(self, console: "Console", clock: Callable[[], float] = time.monotonic) -> None:
        from rich.live import Live

        self._clock = clock
        self._steps: dict[str, Step] = {}
        self._begun: dict[str, float] = {}
        self._console = console
        # what it draws tells the time, so it is drawn anew also when nothing happens
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, step: Step) -> None:
        """A step was taken."""
        from rich.text import Text

        if step.stage is Stage.WORKING:
            self._begun.setdefault(step.environment, self._clock())
        if step.stage not in _ENDED:
            self._steps[step.environment] = step
            return
        self._steps.pop(step.environment, None)
        self._begun.pop(step.environment, None)
        self._live.refresh()
        self._console.print(Text(str(step)))

    def _table(self) -> "Table":
        """What is worked on, then what waits, as far as the terminal has lines."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column()  # the one that gives way on a narrow terminal
        # the work of other threads goes on while this one draws
        steps = list(self._steps.values())
        working = [step for step in steps if step.stage is Stage.WORKING]
        waiting = [step for step in steps if step.stage is Stage.WAITING]
        for step in working:
            seconds = self._clock() - self._begun.get(step.environment, self._clock())
            words = Text(step.words, no_wrap=True, overflow="ellipsis")
            table.add_row(Text(step.environment), f"{seconds:.0f} s", words)
        room = max(0, self._console.height - len(working) - 2)
        for step in waiting[:room]:
            table.add_row(Text(step.environment), "", Text(step.words, style="dim"))
        if len(waiting) > room:
            table.add_row("", "", f"and {len(waiting) - room} more wait")
        return table


def show() -> LiveBuilding | PlainBuilding:
    """The display that fits where stderr goes; called with every step."""
    if not sys.stderr.isatty():
        return PlainBuilding()
    from rich.console import Console

    return LiveBuilding(Console(stderr=True))

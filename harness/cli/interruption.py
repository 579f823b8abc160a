"""Ways to end a command from outside, each answered at once."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

#: What ends a command: Ctrl-C, `kill`, and a terminal that is closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _stopping(count: int) -> str:
    return "Stopping…" if count == 1 else ""


@contextlib.contextmanager
def interruptible(words: Callable[[int], str] = _stopping) -> Iterator[None]:
    """SIGTERM and SIGHUP end what is done here as Ctrl-C does: what was begun is ended too.

    `words` gives what is said on stderr, at once, of the first signal, the second and so on. A signal that is ignored
    (nohup, a shell's background job) stays ignored.
    """
    count = 0

    def interrupt(*_: object) -> None:
        nonlocal count
        count += 1
        told = words(count)
        if told:
            # print may be what is interrupted, and cannot be begun a second time
            os.write(2, f"\n{told}\n".encode())
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in SIGNALS}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])

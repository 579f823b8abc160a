"""Commands to the worker while it runs: one per line, on the descriptor that was the process's standard input."""

import os

MEASURE, TURN, END = "measure", "turn", "end"

# The largest number of characters in a line with a command. It is enough for any number of samples.
LONGEST = 64
DIGITS = 9


class WordError(Exception):
    """The worker got an unknown command. The message is a sentence."""


class Words:
    """Reads commands from a file descriptor that nothing else in the process uses.

    `is_waiting` is true while it waits for a command.
    """

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._read = b""
        self.is_waiting = False

    def expect(self, word):
        """Wait for this command. Raises the errors of `next`, and WordError for another command."""
        line = self._line()
        if line != word.encode("ascii"):
            raise WordError("received the command {!r} instead of '{}'".format(line[:LONGEST], word))

    def next(self):
        """Wait for the next command. Return END, or for a turn its number of samples.

        Raises WordError for an unknown command, and KeyboardInterrupt if the sender has ended.
        """
        line = self._line()
        command, _, count = line.decode("ascii", "backslashreplace").partition(" ")
        if line == b"end":
            return END
        if line == b"turn":
            return 1
        if command == TURN and count.isdigit() and len(count) <= DIGITS:
            return max(1, int(count))
        raise WordError("unknown command {!r}: expected 'turn', 'turn N' or 'end'".format(line[:LONGEST]))

    def _line(self):
        """Wait for the next line."""
        self.is_waiting = True
        while b"\n" not in self._read and len(self._read) <= LONGEST:
            chunk = os.read(self._descriptor, LONGEST)
            if not chunk:
                raise KeyboardInterrupt
            self._read += chunk
        self.is_waiting = False
        line, _, self._read = self._read.partition(b"\n")
        return line


def take_standard_input():
    """Reserve standard input for commands, and return the new descriptor for it.

    From then on, standard input is empty for all other readers in this process and its children.
    """
    null_device = os.open(os.devnull, os.O_RDONLY)  # it gets number 0 if the process was started without standard input
    descriptor = os.dup(0)  # not inheritable (PEP 446)
    os.set_blocking(descriptor, True)
    os.dup2(null_device, 0)
    if null_device != 0:
        os.close(null_device)
    return descriptor

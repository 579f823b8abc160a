"""Commands to the worker while it runs: one word per line, on what was the process's standard input."""

import os

MEASURE, TURN, ALONE, END = "measure", "turn", "alone", "end"

# Longer lines aren't commands; a number of samples has at most as many digits as a wait of years needs.
LONGEST = 64
DIGITS = 9


class WordError(Exception):
    """The worker got an unknown command; the message is a sentence."""


class Words:
    """Reads words from a file descriptor that nothing else in the process knows."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._read = b""

    def expect(self, word):
        """Wait for this word. Raises as `next` does."""
        line = self._line()
        if line != word.encode("ascii"):
            raise WordError("the word {!r} came, and not '{}'".format(line[:LONGEST], word))

    def next(self):
        """Wait for the next command: TURN, END, and for ALONE the number of samples.

        Raises WordError for an unknown command, and KeyboardInterrupt if none can come because the sender is gone.
        """
        line = self._line()
        word, _, count = line.decode("ascii", "backslashreplace").partition(" ")
        if line in (b"turn", b"end"):
            return word
        if word == ALONE and count.isdigit() and len(count) <= DIGITS:
            return int(count)
        raise WordError("unknown word {!r}: expected 'turn', 'alone N' or 'end'".format(line[:LONGEST]))

    def _line(self):
        """Wait for the next line."""
        while b"\n" not in self._read and len(self._read) <= LONGEST:
            chunk = os.read(self._descriptor, LONGEST)
            if not chunk:
                raise KeyboardInterrupt
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return line


def take_standard_input():
    """Keep standard input for the words, and return the descriptor that now leads there.

    From then on whatever reads standard input, in this process or in a child, finds it empty.
    """
    nothing = os.open(os.devnull, os.O_RDONLY)  # descriptor 0 itself, where the process was started without one
    descriptor = os.dup(0)  # not inheritable (PEP 446)
    os.set_blocking(descriptor, True)
    os.dup2(nothing, 0)
    if nothing != 0:
        os.close(nothing)
    return descriptor

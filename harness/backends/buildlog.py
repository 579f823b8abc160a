"""What a builder prints (`docker buildx … --progress=plain`), read line by line.

    #9 [environment 2/4] RUN useradd …      a step begins
    #9 0.52 some output                     what it printed, and when
    #9 CACHED | DONE 1.2s | ERROR: …        how it ended
    #14 exporting to image                  a step of the builder's own

Steps overlap; which line belongs to which is told by its number. What cannot be read is passed over: another builder
may say more.
"""

import re
from collections import deque
from dataclasses import dataclass, field

from harness.backends.text import escaped, one_line

#: How many of a failed step's last lines an error shows, and how many characters of each.
LINES = 15
LENGTH = 500

#: How many characters of an instruction are shown.
_SHOWN = 72

# step 0 is no step: it says which builder it is
_LINE = re.compile(r"#(?P<number>[1-9]\d{0,8}) (?P<rest>.*)")
_STEP = re.compile(r"\[(?P<place>[^\]]*\d/\d+)\] (?P<instruction>\S.*)")
_OUTPUT = re.compile(r"\d+\.\d+ (?P<text>.*)")
_FLAGS = re.compile(r"^RUN (--[a-z]+=\S+\s+)*")
_ENDS = ("CACHED", "DONE", "CANCELED", "ERROR")


@dataclass
class _Step:
    words: str
    has_ended: bool = False
    was_told: bool = False
    output: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))


class BuildLog:
    """One build, from its builder's lines.

    A step is told when it takes time: when it says something, or when the builder says nothing for a while. What is in
    the cache ends at once, and is not told.
    """

    def __init__(self) -> None:
        self._steps: dict[int, _Step] = {}
        self._failed: _Step | None = None
        self._last: deque[str] = deque(maxlen=LINES)
        self._verdict = ""

    def feed(self, line: str) -> str:
        """Take the next line. Returns what the builder is doing where that is to be told, else nothing."""
        line = escaped(line.rstrip()[:LENGTH], keep="\t")
        if not line:
            return ""
        self._last.append(line)
        if line.startswith("ERROR: "):
            self._verdict = line
        match = _LINE.fullmatch(line)
        return self._feed_step(int(match["number"]), match["rest"]) if match else ""

    def idle(self) -> str:
        """The builder has said nothing for a while. Returns what it is doing where that is to be told, else nothing."""
        running = [step for step in self._steps.values() if not step.has_ended]
        return _tell(running[-1]) if running else ""

    def failure(self) -> str:
        """What to show of a build that failed: the step, its last lines and the verdict; else the last lines of all."""
        if self._failed is None:
            return "\n".join(self._last)
        return "\n".join(filter(None, [f"{self._failed.words}:", *self._failed.output, self._verdict]))

    def _feed_step(self, number: int, rest: str) -> str:
        step = self._steps.get(number)
        if step is None:
            self._steps[number] = _Step(_words(rest))
            return ""
        if rest.startswith(_ENDS):
            step.has_ended = True
            if rest.startswith("ERROR"):
                self._failed = self._failed or step
            return ""
        output = _OUTPUT.fullmatch(rest)
        if output is None:
            return ""
        step.output.append(output["text"])
        return _tell(step)


def _tell(step: _Step) -> str:
    if step.was_told:
        return ""
    step.was_told = True
    return step.words


def _words(text: str) -> str:
    """What a step does, without what says where its files come from: `environment 4/4: sh /tmp/install.sh …`."""
    found = _STEP.fullmatch(text)
    if found is None:
        return one_line(text, _SHOWN)
    return f"{found['place']}: {one_line(_FLAGS.sub('', found['instruction']), _SHOWN)}"
